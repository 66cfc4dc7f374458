"""This machine: commands run here, held back by a sandbox where one can be made.

Invariant: every process that is started ends with its command, its session or the machine, whichever is first.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from datetime import timedelta
from types import TracebackType
from typing import BinaryIO, Self

import anyio
import anyio.to_thread

from hermes.config import Settings
from hermes.config.variables import process_environment
from hermes.domain.clock import Clock
from hermes.domain.errors import LimitReached, Unavailable
from hermes.domain.machine import Command, Finished, Output, ProcessState, Protection
from hermes.domain.records import dataclass
from hermes.machines import shell
from hermes.machines.background import Background, Beside
from hermes.machines.capture import Capture
from hermes.machines.child import Child, open_child, pump
from hermes.machines.files import LocalFiles
from hermes.machines.launching import Launcher
from hermes.machines.network import Network
from hermes.machines.session import Session, open_session, remove_session
from hermes.net.address import parse_listed
from hermes.net.broker import Bounds, Broker, nobody
from hermes.net.checked import CheckedDial
from hermes.net.dial import Dial

_MOST_STDIN = 64 << 20
_WHY = 500
_NO_SETTINGS = re.compile(
    rb"could not (?:write|lock|set) [^\n]*config[^\n]*(?:busy|Read-only file system)|"
    rb"\.git/(?:hooks|config)[^\n]*(?:resource busy|Read-only file system)"
)
_SETTINGS_KEPT = (
    "the settings and hooks of a repository that was there before are kept from commands, as the person's own git "
    "obeys them. `git config --global NAME VALUE` works for this session, for user.email as for remote.NAME.url; for "
    "good it needs full_access, and the person is asked"
)


def open_local(
    settings: Settings, clock: Clock, *, environment: Mapping[str, str] | None = None, dial: Dial | None = None
) -> "LocalMachine":
    """Return this machine, to be entered: `async with open_local(settings, clock) as machine`.

    `dial` reaches the hosts that were judged; without it only the internet and what is listed are.
    """
    outer = process_environment() if environment is None else environment
    return LocalMachine(settings, clock, outer, dial or CheckedDial(parse_listed(settings.sandbox.listed)))


class LocalMachine:
    """Implements `Machine` on the machine that Hermes runs on. Entered once, left in the same task."""

    name = "local"

    def __init__(self, settings: Settings, clock: Clock, environment: Mapping[str, str], dial: Dial) -> None:
        self._settings = settings
        self._clock = clock
        self._environment = dict(environment)
        self._dial = dial
        self._sessions: dict[str, Session] = {}
        self._stack = AsyncExitStack()
        self.files = LocalFiles()

    async def __aenter__(self) -> Self:
        self._launcher = await anyio.to_thread.run_sync(Launcher.find, self._settings, self._environment)
        self._background = await self._stack.enter_async_context(Background(self._settings, self._clock))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._stack.__aexit__(kind, error, trace)
        finally:
            for session in self._sessions.values():
                remove_session(session)
            for network in self._launcher.spare:
                network.close()
            self._launcher.placeholders.close()

    @property
    def protection(self) -> Protection:
        """What holds a command back."""
        return self._launcher.ability.protection

    def describe(self) -> str:
        """One line for people."""
        return self._launcher.describe()

    async def run(self, command: Command, show: Output) -> Finished:
        """Run to the end, or to the time-out."""
        if len(command.stdin) > _MOST_STDIN:
            raise LimitReached(f"the input is larger than {_MOST_STDIN:,} bytes; write it to a file and read that")
        session = self._session(command.session)
        capture = self._capture(session, show)
        began = self._clock.monotonic()
        is_sandboxed = await self._prepare(command, session)
        broker = self._broker(command)
        mark = self._clock.new_id()
        notes: list[str] = []
        with _pipe() as (hearing, telling), ExitStack() as stack:
            stack.callback(capture.close)
            network = _lent(session, stack) if is_sandboxed else Network()
            launch = stack.enter_context(
                self._launcher.launch(
                    command, session, mark=mark, told=telling.fileno(), network=network, tell=notes.append
                )
            )
            beside = self._beside(command, session, capture, broker, network)
            async with open_child(launch) as running:
                telling.close()
                ending = await _run_to_end(running, command, capture, hearing.fileno(), beside)
        if not ending.said.startswith(shell.BEGUN) and ending.code and not ending.is_timed_out:
            why = capture.tail[-_WHY:].decode(errors="replace").strip() or f"exit {ending.code}"
            raise Unavailable(f"the command could not be started: {why}; try again, or look at `hermes doctor`")
        state = None if ending.is_timed_out else shell.parse_state(ending.said)
        if state is not None:
            session.leave(state, is_sandboxed=is_sandboxed)
        return Finished(
            exit_code=ending.code,
            output=capture.tail,
            total=capture.total,
            seconds=self._clock.monotonic() - began,
            cwd=state.cwd if state is not None else command.cwd,
            is_timed_out=ending.is_timed_out,
            spilled=capture.spilled,
            denied_hosts=broker.denied,
            notes=(*notes, *_explained(capture.tail, is_sandboxed=is_sandboxed)),
        )

    async def spawn(self, command: Command) -> ProcessState:
        """Start in the background."""
        session = self._session(command.session)
        if len(self._background.of(command.session, is_running=True)) >= self._settings.terminal.background:
            raise LimitReached(
                f"the session has {self._settings.terminal.background} background processes; end one of them first"
            )
        is_sandboxed = await self._prepare(command, session)
        mark = self._clock.new_id()
        with ExitStack() as stack:
            network = _lent(session, stack) if is_sandboxed else Network()
            capture = self._capture(session, None)
            stack.callback(capture.close)

            def tell(line: str) -> None:
                capture.take(f"\nhermes: {line}\n".encode("utf-8", "replace"))

            launch = stack.enter_context(
                self._launcher.launch(
                    command, session, mark=mark, told=None, network=network, tell=tell, has_stdin=True
                )
            )
            beside = self._beside(command, session, capture, self._broker(command), network)
            return await self._background.start(command, launch, capture, stack.pop_all(), beside)

    def processes(self, session: str) -> list[ProcessState]:
        """The background processes of a session, ended ones included."""
        return self._background.of(session)

    async def output(self, process: str, *, offset: int, limit: int) -> bytes:
        """Return a part of what a background process has printed."""
        return self._background.output(process, offset=offset, limit=limit)

    async def wait(self, process: str, at_most: timedelta) -> ProcessState:
        """Wait for the end, `at_most` so long."""
        return await self._background.wait(process, at_most)

    async def write(self, process: str, data: bytes, *, close: bool = False) -> None:
        """Write to the standard input of a background process."""
        await self._background.write(process, data, close=close)

    async def kill(self, process: str) -> ProcessState:
        """End a background process and all that it started."""
        return await self._background.kill(process)

    async def end_session(self, session: str) -> int:
        """End every process of a session; return how many there were."""
        ended = await self._background.end_session(session)
        gone = self._sessions.pop(session, None)
        if gone is not None:
            await anyio.to_thread.run_sync(remove_session, gone)
        return ended

    def _session(self, name: str) -> Session:
        if name not in self._sessions:
            self._sessions[name] = open_session(name, self._settings.home, self._launcher.network(), self._launcher.git)
        return self._sessions[name]

    async def _prepare(self, command: Command, session: Session) -> bool:
        """Get ready what a sandbox needs; say whether the command gets one."""
        is_sandboxed = self._launcher.is_sandboxed(command.mode)
        if is_sandboxed and session.network is not None:
            await session.network.prepare()
        return is_sandboxed

    def _broker(self, command: Command) -> Broker:
        bounds = Bounds(bytes=self._settings.sandbox.network_bytes)
        return Broker(command.may_connect or nobody, self._dial, bounds)

    def _beside(self, command: Command, session: Session, capture: Capture, broker: Broker, network: Network) -> Beside:
        guard = self._launcher.guard(command, session)

        async def beside(child: Child) -> None:
            async with anyio.create_task_group() as group:
                if network.listener is not None:
                    group.start_soon(broker.serve, network.listener)
                why = await guard.watch(child)
                capture.take(f"\nhermes: {why}\n".encode())
                child.kill()

        return beside

    def _capture(self, session: Session, show: Output | None) -> Capture:
        terminal = self._settings.terminal
        path = session.spill / f"{self._clock.new_id()}.txt"
        return Capture(path, limit=terminal.output_bytes, most=terminal.spill_bytes, show=show)


def _explained(output: bytes, *, is_sandboxed: bool) -> list[str]:
    """Say what a program could not know about why it failed."""
    return [_SETTINGS_KEPT] if is_sandboxed and _NO_SETTINGS.search(output) else []


@dataclass(frozen=True, slots=True)
class _Ending:
    code: int
    is_timed_out: bool
    said: bytes


@contextmanager
def _pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with os.fdopen(reading, "rb", buffering=0) as hearing, os.fdopen(writing, "wb", buffering=0) as telling:
        yield hearing, telling


def _lent(session: Session, stack: ExitStack) -> Network:
    return stack.enter_context(session.network.lend()) if session.network is not None else Network()


async def _run_to_end(running: Child, command: Command, capture: Capture, hearing: int, beside: Beside) -> _Ending:
    done, said = anyio.Event(), bytearray()
    code = 0

    def hear(data: bytes) -> None:
        # More than that is no state of ours; it is read on so that nobody waits for us.
        said.extend(data[: shell.STATE_LIMIT - len(said)])

    async def listen() -> None:
        nonlocal code
        code = await running.listen(capture.take)
        done.set()

    async def feed() -> None:
        await running.feed(command.stdin)
        running.close_stdin()

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        group.start_soon(pump, hearing, hear)
        group.start_soon(beside, running)
        if command.stdin:
            group.start_soon(feed)
        with anyio.move_on_after(command.timeout.total_seconds()):
            await done.wait()
        is_timed_out = not done.is_set()
        if is_timed_out:
            await running.end()
            await done.wait()
        group.cancel_scope.cancel()
    return _Ending(code, is_timed_out, bytes(said))
