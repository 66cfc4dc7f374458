"""A machine that is not there: files in memory, commands answered by a function of the test.

It passes the same suite as this machine does (`hermes.testing.contracts.machine`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path, PurePosixPath

import anyio

from hermes.domain.errors import Denied, Misconfigured, NotFound
from hermes.domain.machine import Command, FileStatus, Finished, Output, ProcessState, Protection

Answer = Callable[[Command], "Said | Forever"]


@dataclass(frozen=True, slots=True)
class Said:
    """What a command prints, and how it ends."""

    output: bytes = b""
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class Forever:
    """A command that prints something and does not end by itself."""

    output: bytes = b""


def silent(_command: Command) -> "Said | Forever":
    """Every command succeeds and says nothing."""
    return Said()


class FakeFiles:
    """Implements `Files` in memory. `links` are followed by `resolve` alone, as on a real machine."""

    def __init__(self, files: Mapping[str, bytes] | None = None) -> None:
        self.content: dict[Path, bytes] = {Path(name): raw for name, raw in (files or {}).items()}
        self.links: dict[Path, Path] = {}
        self._changed: dict[Path, float] = {}
        self._changes = 0.0

    def resolve(self, path: Path) -> Path:
        """Follow links, and take out what leads back."""
        if not path.is_absolute():
            raise Misconfigured(f"{path} is not absolute; name it from the root")
        real = Path("/")
        for name in path.parts[1:]:
            real = real.parent if name == ".." else real / name
            for _ in range(40):
                if real not in self.links:
                    break
                real = self.links[real]
        return real

    async def status(self, path: Path) -> FileStatus | None:
        """Say what is there."""
        path = self._sound(path)
        if path in self.content:
            return FileStatus(path, False, len(self.content[path]), self._changed.get(path, 0.0))
        return FileStatus(path, True, 0, 0.0) if self._is_folder(path) else None

    async def read(self, path: Path, *, limit: int) -> bytes:
        """Return the first bytes of a file."""
        path = self._sound(path)
        if self._is_folder(path):
            raise Misconfigured(f"{str(path)!r} is a folder; name a file in it")
        if path not in self.content:
            raise NotFound(f"{str(path)!r} does not exist; look at what is in its folder")
        return self.content[path][:limit]

    async def write(self, path: Path, data: bytes) -> None:
        """Put a file in the place of what was there."""
        path = self._sound(path)
        if self._is_folder(path):
            raise Misconfigured(f"{str(path)!r} is a folder; name a file in it")
        if any(parent in self.content for parent in path.parents):
            raise Misconfigured(f"{str(path)!r} leads through a file; resolve the path again")
        self._changes += 1
        self.content[path], self._changed[path] = bytes(data), self._changes

    async def remove(self, path: Path) -> None:
        """Remove a file."""
        path = self._sound(path)
        if self._is_folder(path):
            raise Misconfigured(f"{str(path)!r} is a folder; name a file in it")
        if self.content.pop(path, None) is None:
            raise NotFound(f"{str(path)!r} does not exist; look at what is in its folder")

    async def names(self, path: Path) -> list[FileStatus]:
        """Return what is in a folder."""
        path = self._sound(path)
        if path in self.content:
            raise Misconfigured(f"{str(path)!r} is a file; name a folder")
        if not self._is_folder(path):
            raise NotFound(f"{str(path)!r} does not exist; look at what is in its folder")
        depth = len(path.parts)
        below = {one.parts[depth] for one in self.content if one.is_relative_to(path) and one != path}
        found = [await self.status(path / name) for name in sorted(below)]
        return [one for one in found if one is not None]

    def _is_folder(self, path: Path) -> bool:
        return path == Path("/") or any(one != path and one.is_relative_to(path) for one in self.content)

    def _sound(self, path: Path) -> Path:
        if not path.is_absolute() or ".." in PurePosixPath(path).parts or "\0" in str(path):
            raise Misconfigured(f"{str(path)!r} is not a resolved path; resolve it first")
        if any(one in self.links for one in (path, *path.parents)):
            raise Denied(f"{str(path)!r} leads through a link that was not there before; resolve the path again")
        return path


@dataclass(slots=True)
class _Running:
    id: str
    command: Command
    output: bytes
    exit_code: int | None
    heard: bytearray = field(default_factory=bytearray)
    is_closed: bool = False
    ended: anyio.Event = field(default_factory=anyio.Event)


class FakeMachine:
    """Implements `Machine`. `ran` holds every command that was started, `answer` says what comes of each."""

    name = "fake"

    def __init__(
        self,
        answer: Answer = silent,
        *,
        files: Mapping[str, bytes] | None = None,
        protection: Protection = "sandbox",
    ) -> None:
        self._answer = answer
        self.protection: Protection = protection
        self.files = FakeFiles(files)
        self.ran: list[Command] = []
        self._running: dict[str, _Running] = {}

    def describe(self) -> str:
        """One line for people."""
        return "a machine of the tests, on which nothing happens"

    async def run(self, command: Command, show: Output) -> Finished:
        """Answer at once, or wait until the time is up for a command that does not end."""
        self.ran.append(command)
        said = self._answer(command)
        if said.output:
            show(said.output)
        if isinstance(said, Forever):
            limit = command.timeout.total_seconds()
            await anyio.sleep(limit)
            return Finished(143, said.output, len(said.output), limit, command.cwd, is_timed_out=True)
        return Finished(said.exit_code, said.output, len(said.output), 0.0, command.cwd)

    async def spawn(self, command: Command) -> ProcessState:
        """Start in the background; what ends at once has ended."""
        self.ran.append(command)
        said = self._answer(command)
        one = _Running(f"p{len(self._running) + 1}", command, said.output, None)
        self._running[one.id] = one
        if isinstance(said, Said):
            self._end(one, said.exit_code)
        return _state(one)

    def processes(self, session: str) -> list[ProcessState]:
        """The background processes of a session."""
        return [_state(one) for one in self._running.values() if one.command.session == session]

    async def output(self, process: str, *, offset: int, limit: int) -> bytes:
        """Return a part of what was printed."""
        return self._find(process).output[offset : offset + limit]

    async def wait(self, process: str, at_most: timedelta) -> ProcessState:
        """Wait for the end."""
        one = self._find(process)
        with anyio.move_on_after(at_most.total_seconds()):
            await one.ended.wait()
        return _state(one)

    async def write(self, process: str, data: bytes, *, close: bool = False) -> None:
        """Keep what is written; `heard` returns it."""
        one = self._find(process)
        if one.exit_code is not None:
            raise Misconfigured(f"the process {process!r} has ended; there is nobody to read this")
        one.heard.extend(data)
        one.is_closed = one.is_closed or close

    async def kill(self, process: str) -> ProcessState:
        """End a background process."""
        one = self._find(process)
        self._end(one, -15)
        return _state(one)

    async def end_session(self, session: str) -> int:
        """End every process of a session and forget them."""
        its = [one for one in self._running.values() if one.command.session == session]
        alive = [one for one in its if one.exit_code is None]
        for one in its:
            self._end(one, -15)
            del self._running[one.id]
        return len(alive)

    def heard(self, process: str) -> bytes:
        """What was written to a background process."""
        return bytes(self._find(process).heard)

    def say(self, process: str, output: bytes, *, exit_code: int | None = None) -> None:
        """Let a background process print something, and end."""
        one = self._find(process)
        one.output += output
        if exit_code is not None:
            self._end(one, exit_code)

    def _end(self, one: _Running, code: int) -> None:
        if one.exit_code is None:
            one.exit_code = code
            one.ended.set()

    def _find(self, process: str) -> _Running:
        if process not in self._running:
            raise NotFound(f"there is no background process {process!r}; look at the list of this session")
        return self._running[process]


def _state(one: _Running) -> ProcessState:
    return ProcessState(one.id, 1, one.command.text, one.command.session, 0.0, one.exit_code, len(one.output))
