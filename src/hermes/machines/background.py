"""Background processes: heard by a task each, noted in a journal while they live, ended with their session.

Invariant: a process that is alive is in the journal with the moment it began. After a crash of Hermes the next one ends
what the journal names, if it is still the same process, and never another.
"""

import logging
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import field
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeAlias

import anyio
import anyio.to_thread

from hermes.config import Settings
from hermes.domain.clock import Clock
from hermes.domain.errors import Misconfigured, NotFound
from hermes.domain.machine import Command, ProcessState
from hermes.domain.records import dataclass
from hermes.machines.capture import Capture
from hermes.machines.child import Child, Launch, start
from hermes.machines.journal import Journal, Leftover

_log = logging.getLogger("hermes.machines")


Beside: TypeAlias = Callable[[Child], Coroutine[object, object, None]]
"""Runs while a child does, and is cancelled with its end."""


@dataclass(slots=True)
class _Running:
    """One process; `resources` are held until it has ended."""

    id: str
    command: Command
    child: Child
    capture: Capture
    resources: ExitStack
    began: float
    beside: "Beside"
    ended_after: float | None = None
    exit_code: int | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)


class Background:
    """The background processes of one machine. Entered and left in one task."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._clock = clock
        self._journal = Journal(settings.home / "machines" / "local" / "running")
        self._all: dict[str, _Running] = {}
        self._group = anyio.create_task_group()
        self.leftovers: tuple[Leftover, ...] = ()

    async def __aenter__(self) -> Self:
        self.leftovers = tuple(await anyio.to_thread.run_sync(self._journal.end_leftovers))
        for left in self.leftovers:
            _log.warning("a process of a Hermes that crashed was ended", extra={"fields": {"command": left.command}})
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await self._end([one for one in self._all.values() if one.exit_code is None])
        finally:
            await self._group.__aexit__(kind, error, trace)

    async def start(
        self, command: Command, launch: Launch, capture: Capture, resources: ExitStack, beside: Beside
    ) -> ProcessState:
        """Start a process; `resources` are given back when it has ended."""
        try:
            child = start(launch)
        except BaseException:
            resources.close()
            raise
        one = _Running(self._clock.new_id(), command, child, capture, resources, self._clock.monotonic(), beside)
        self._journal.note(one.id, child.pid, launch.mark, command.session, command.text)
        self._all[one.id] = one
        self._group.start_soon(self._attend, one)
        return self._state(one)

    def of(self, session: str, *, is_running: bool = False) -> list[ProcessState]:
        """Return those of a session, the oldest first."""
        states = [self._state(one) for one in self._all.values() if one.command.session == session]
        return [state for state in states if not is_running or state.exit_code is None]

    def output(self, process: str, *, offset: int, limit: int) -> bytes:
        """Return a part of what was printed."""
        one = self._find(process)
        if one.capture.spilled is None:
            return one.capture.tail[offset : offset + limit]
        with one.capture.spilled.open("rb") as file:
            file.seek(offset)
            return file.read(limit)

    async def wait(self, process: str, at_most: timedelta) -> ProcessState:
        """Wait for the end, `at_most` so long."""
        one = self._find(process)
        with anyio.move_on_after(at_most.total_seconds()):
            await one.ended.wait()
        return self._state(one)

    async def write(self, process: str, data: bytes, *, close: bool) -> None:
        """Write to the standard input."""
        one = self._find(process)
        if one.exit_code is not None:
            raise Misconfigured(f"the process {process!r} has ended; there is nobody to read this")
        await one.child.feed(data)
        if close:
            one.child.close_stdin()

    async def kill(self, process: str) -> ProcessState:
        """End a process and all that it started."""
        one = self._find(process)
        await self._end([one])
        return self._state(one)

    async def end_session(self, session: str) -> int:
        """End every process of a session and forget them; return how many were alive."""
        its = [one for one in self._all.values() if one.command.session == session]
        alive = [one for one in its if one.exit_code is None]
        await self._end(alive)
        for one in its:
            del self._all[one.id]
        return len(alive)

    async def _end(self, some: list[_Running]) -> None:
        async with anyio.create_task_group() as group:
            for one in some:
                group.start_soon(one.child.end)
        for one in some:
            await one.ended.wait()

    async def _attend(self, one: _Running) -> None:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(one.beside, one.child)
                one.exit_code = await one.child.listen(one.capture.take)
                group.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await one.child.end()
                one.exit_code = one.child.exit_code
            raise
        finally:
            one.child.kill()
            one.child.close()
            one.ended_after = self._clock.monotonic() - one.began
            self._journal.forget(one.id)
            one.resources.close()
            one.ended.set()

    def _find(self, process: str) -> _Running:
        if process not in self._all:
            raise NotFound(f"there is no background process {process!r}; look at the list of this session")
        return self._all[process]

    def _state(self, one: _Running) -> ProcessState:
        seconds = one.ended_after if one.ended_after is not None else self._clock.monotonic() - one.began
        return ProcessState(
            one.id, one.child.pid, one.command.text, one.command.session, seconds, one.exit_code, one.capture.total
        )
