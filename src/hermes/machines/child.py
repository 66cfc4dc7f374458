"""One child process and all that it starts: begun in a session of its own, heard to the end, ended as a whole.

Invariant: when `open_child` is left, nothing of what was started is alive, unless it hid from us outside a sandbox.
"""

import os
import pty
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.to_thread

from hermes.domain.errors import Unavailable
from hermes.domain.records import dataclass
from hermes.machines import family

_CHUNK = 1 << 16
_AFTERWARDS = 0.2
"""How long to listen to what outlives the command itself and still holds its output."""
GRACE = 5.0
_ASK_AGAIN, _ASK_SOON = 0.1, 0.01
_LAST_WAIT = 5.0


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start. `mark` is in the environment of everything it starts, so that it can be found again."""

    argv: Sequence[str]
    environment: Mapping[bytes, bytes]
    cwd: str
    mark: str
    is_sandboxed: bool
    is_pty: bool = False
    has_stdin: bool = False
    passed: tuple[int, ...] = ()


class Child:
    """A running child. Its output is read by one task."""

    def __init__(self, process: subprocess.Popen[bytes], launch: Launch, output: int, stdin: int | None) -> None:
        self._process = process
        self._launch = launch
        self._output = output
        self._stdin = stdin
        self._keepers: list[family.Identity] = []
        self.pid = process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended, as a shell says it: 128 and the signal for one that was killed."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    async def wait(self) -> int:
        """Wait for the end of the command itself."""
        if self._process.poll() is None:
            await _ended(self._process)
        code = self.exit_code
        return code if code is not None else 128

    async def listen(self, take: Callable[[bytes], None]) -> int:
        """Pass on the output until the command has ended; return its exit code. What holds the output afterwards is
        heard for a moment.
        """
        code = 0
        async with anyio.create_task_group() as group:
            scope = anyio.CancelScope()

            async def hear() -> None:
                with scope:
                    await pump(self._output, take)

            group.start_soon(hear)
            code = await self.wait()
            scope.deadline = anyio.current_time() + _AFTERWARDS
        return code

    async def feed(self, data: bytes) -> None:
        """Write to its standard input; what it does not want to read is dropped."""
        handle = self._stdin if self._stdin is not None else self._output
        rest = memoryview(data)
        with suppress(BrokenPipeError, OSError):
            while rest:
                await anyio.wait_writable(handle)
                with suppress(BlockingIOError):
                    rest = rest[os.write(handle, rest[:_CHUNK]) :]

    def close_stdin(self) -> None:
        """Tell it that there is no more input."""
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None
        elif self._launch.is_pty:
            with suppress(OSError):
                os.write(self._output, b"\x04")

    async def end(self) -> None:
        """End it and all that it started: ask, wait 5 seconds, kill."""
        asked: set[family.Identity] = set()
        until = anyio.current_time() + GRACE
        while self._process.poll() is None and anyio.current_time() < until:
            # What has only just begun, or is begun on the way out, is asked as well.
            # A shell is asked before what it waits for: else it would go on with its next line.
            for who in reversed(family.members(self.pid, is_sandboxed=self._launch.is_sandboxed)):
                if who not in asked:
                    family.send(who, signal.SIGTERM)
                    asked.add(who)
            with anyio.move_on_after(_ASK_AGAIN):
                await self.wait()
        self.kill()
        with anyio.move_on_after(_LAST_WAIT):
            await self.wait()
            while any(family.identify(who.pid) == who for who in self._keepers):  # noqa: ASYNC110 - no event tells of it
                await anyio.sleep(_ASK_SOON)

    def kill(self) -> None:
        """Kill what is left, at once."""
        if not self._launch.is_sandboxed:
            for who in (*family.descendants(self.pid), *family.marked(self._launch.mark)):
                family.send(who, signal.SIGKILL)
        if self._process.poll() is None:
            # All others die with the first process of the sandbox, and it is gone only after them.
            self._keepers = family.children(self.pid) if self._launch.is_sandboxed else []
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Give back the descriptors."""
        os.close(self._output)
        if self._stdin is not None:
            os.close(self._stdin)
            self._stdin = None


async def pump(handle: int, take: Callable[[bytes], None]) -> None:
    """Pass on what comes from a descriptor that does not block, until nobody can write to it any more."""
    while True:
        await anyio.wait_readable(handle)
        try:
            data = os.read(handle, _CHUNK)
        except BlockingIOError:
            continue
        except OSError:
            # A terminal that nobody holds any more.
            return
        if not data:
            return
        take(data)


@asynccontextmanager
async def open_child(launch: Launch) -> AsyncIterator[Child]:
    """Start a child; end it when the block is left, however it is left. Raises Unavailable when it cannot start."""
    child = start(launch)
    try:
        yield child
    finally:
        with anyio.CancelScope(shield=True):
            await child.end()
        child.close()


def start(launch: Launch) -> Child:
    """Start a child, which the caller ends and closes."""
    reading, writing = pty.openpty() if launch.is_pty else os.pipe()
    feeding = stdin = None
    try:
        if launch.has_stdin and not launch.is_pty:
            feeding, stdin = os.pipe()
            os.set_blocking(stdin, False)
        os.set_blocking(reading, False)
        process = subprocess.Popen(
            list(launch.argv),
            stdin=writing if launch.is_pty else feeding if feeding is not None else subprocess.DEVNULL,
            stdout=writing,
            stderr=writing,
            env=launch.environment,
            cwd=launch.cwd,
            start_new_session=True,
            pass_fds=launch.passed,
        )
    except OSError as error:
        for handle in (reading, stdin):
            if handle is not None:
                os.close(handle)
        raise Unavailable(f"{launch.argv[0]!r} cannot be started: {error.strerror}; try again") from error
    finally:
        os.close(writing)
        if feeding is not None:
            os.close(feeding)
    return Child(process, launch, reading, stdin)


async def _ended(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process without a thread where the system can, and reap it."""
    if not hasattr(os, "pidfd_open"):
        await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
        return
    handle = os.pidfd_open(process.pid)
    try:
        await anyio.wait_readable(handle)
    finally:
        os.close(handle)
    process.wait()
