"""What background processes have to say to the model: that one ended, or printed what was waited for.

Invariant: bounded for each session; what is dropped is counted and said.
"""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import field
from datetime import timedelta

import anyio

from hermes.domain.errors import HermesError
from hermes.domain.machine import Machine, ProcessState
from hermes.domain.records import dataclass
from hermes.domain.session import SessionId

_MOST = 50
_MOST_MATCHES = 8
_MOST_READ = 200_000
_LONGEST_LINE = 300
_TAIL = 2_000
_LOOK_EVERY = timedelta(seconds=1)

Deliver = Callable[[SessionId, list[str]], Awaitable[None]]


@dataclass(slots=True)
class _Watched:
    machine: Machine
    process: str
    command: str
    session: SessionId
    is_told_of_end: bool
    patterns: tuple[str, ...]
    offset: int = 0
    rest: bytes = b""
    matches: int = 0


@dataclass(slots=True)
class _Box:
    texts: deque[str] = field(default_factory=deque)
    dropped: int = 0


class Notices:
    """Holds what sessions have not been told yet. `drain` is called between two model calls; `run` serves those that
    are idle. Used on one event loop.
    """

    def __init__(self) -> None:
        self._watched: OrderedDict[str, _Watched] = OrderedDict()
        self._boxes: dict[SessionId, _Box] = {}
        self._looking = anyio.Lock()

    def watch(self, machine: Machine, state: ProcessState, *, is_told_of_end: bool, patterns: tuple[str, ...]) -> None:
        """Begin to look at a process, when there is something to look for."""
        wanted = tuple(one for one in patterns if one)
        if is_told_of_end or wanted:
            session = SessionId(state.session)
            self._watched[state.id] = _Watched(machine, state.id, state.command, session, is_told_of_end, wanted)

    async def drain(self, session: SessionId) -> list[str]:
        """Return what is new for a session, as texts for the model; looks at its processes first."""
        await self._look(session)
        box = self._boxes.pop(session, None)
        if box is None:
            return []
        more = [f"{box.dropped} more notices were dropped"] if box.dropped else []
        return [*box.texts, *more]

    async def run(self, deliver: Deliver, *, every: timedelta = _LOOK_EVERY) -> None:
        """Look at all processes for ever, and deliver what is new: for sessions that have no run of their own now."""
        while True:
            for session in {one.session for one in self._watched.values()} | set(self._boxes):
                texts = await self.drain(session)
                if texts:
                    await deliver(session, texts)
            await anyio.sleep(every.total_seconds())

    def forget(self, session: SessionId) -> None:
        """The session has ended; nothing is to be told any more."""
        for name in [name for name, one in self._watched.items() if one.session == session]:
            del self._watched[name]
        self._boxes.pop(session, None)

    async def _look(self, session: SessionId) -> None:
        async with self._looking:
            for one in [one for one in self._watched.values() if one.session == session]:
                try:
                    await self._look_at(one)
                except HermesError as error:
                    self._watched.pop(one.process, None)
                    self._put(session, f"the background process {one.process} cannot be looked at any more: {error}")

    async def _look_at(self, one: _Watched) -> None:
        state = next((s for s in one.machine.processes(one.session) if s.id == one.process), None)
        if one.patterns and one.matches < _MOST_MATCHES:
            await self._match(one, is_over=state is None or state.exit_code is not None)
        if state is None or state.exit_code is not None:
            self._watched.pop(one.process, None)
            if one.is_told_of_end:
                await self._tell_of_end(one, state)

    async def _match(self, one: _Watched, *, is_over: bool) -> None:
        new = await one.machine.output(one.process, offset=one.offset, limit=_MOST_READ)
        one.offset += len(new)
        *lines, one.rest = (one.rest + new).split(b"\n")
        if is_over and one.rest:
            lines.append(one.rest)
        one.rest = one.rest[-_MOST_READ:]
        for raw in lines:
            line = raw.decode("utf-8", "replace")
            found = next((pattern for pattern in one.patterns if pattern in line), None)
            if found is not None:
                one.matches += 1
                self._put(one.session, f"the background process {one.process} printed: {line.strip()[:_LONGEST_LINE]}")
            if one.matches >= _MOST_MATCHES:
                self._put(one.session, f"{one.process} is no longer watched: {_MOST_MATCHES} lines matched")
                return

    async def _tell_of_end(self, one: _Watched, state: ProcessState | None) -> None:
        if state is None:
            self._put(one.session, f"the background process {one.process} is gone")
            return
        raw = await one.machine.output(one.process, offset=max(0, state.total - _TAIL), limit=_TAIL)
        tail = raw.decode("utf-8", "replace").strip()
        said = (
            f"the background process {one.process} ended with exit code {state.exit_code} after {state.seconds:.0f} s"
        )
        self._put(one.session, f"{said}: {one.command[:_LONGEST_LINE]}\n{tail}".strip())

    def _put(self, session: SessionId, text: str) -> None:
        box = self._boxes.setdefault(session, _Box())
        if len(box.texts) >= _MOST:
            box.dropped += 1
        else:
            box.texts.append(text)
