"""Where commands run. The machine, not the text of a command, decides what a command can reach.

Invariant: every process a machine starts ends with its run or is journalled under its session; nothing is left over.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from datetime import timedelta
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from hermes.domain.effect import Connect
from hermes.domain.records import dataclass

Mode = Literal["read-only", "workspace", "full"]
"""What commands may write: nothing, the workspace, or everything (then no sandbox)."""

Protection = Literal["sandbox", "confined", "none"]
"""`sandbox`: own namespaces. `confined`: writes are held, reads and network are not. `none`: nothing is held."""

Output: TypeAlias = Callable[[bytes], None]
"""Called with output as it comes; returns at once."""


MayConnect: TypeAlias = Callable[[Connect], Awaitable[bool]]
"""Judges one connection, and may ask a person while the command waits for it."""


@dataclass(frozen=True, slots=True)
class Command:
    """One order to a machine: a shell line in a session's own shell state (directory, exported variables)."""

    text: str
    cwd: Path
    session: str
    workspace: Path
    mode: Mode = "workspace"
    timeout: timedelta = timedelta(seconds=180)
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    is_pty: bool = False
    may_connect: MayConnect | None = None
    """Asked for each host that the command wants to reach from inside the sandbox; without it none is."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended. `output` holds the last part of it when there was too much; all of it is in `spilled`."""

    exit_code: int
    output: bytes
    total: int
    seconds: float
    cwd: Path
    is_timed_out: bool = False
    spilled: Path | None = None
    denied_hosts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What the machine did about what the command has left, or why it could not do something."""


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A background process. `exit_code` is None while it runs."""

    id: str
    pid: int
    command: str
    session: str
    seconds: float
    exit_code: int | None
    total: int


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What is at a path."""

    path: Path
    is_folder: bool
    size: int
    modified: float


class Files(Protocol):
    """The files of a machine, as file tools use them; paths are real (see `resolve`) and were judged before.

    No link is followed on the way, so that what was judged is what is touched. Raises NotFound, Denied (the rights of
    the file), Misconfigured (a folder where a file is needed) and Unavailable (a full disk), each naming the path.
    """

    def resolve(self, path: Path) -> Path:
        """Return the path with every link followed; what does not exist yet keeps its name. Blocks for a moment."""
        ...

    async def status(self, path: Path) -> FileStatus | None:
        """Say what is there; None when nothing is."""
        ...

    async def read(self, path: Path, *, limit: int) -> bytes:
        """Return the first `limit` bytes."""
        ...

    async def write(self, path: Path, data: bytes) -> None:
        """Put a file in the place of what was there, as a whole or not at all; folders on the way are made."""
        ...

    async def remove(self, path: Path) -> None:
        """Remove a file."""
        ...

    async def names(self, path: Path) -> list[FileStatus]:
        """Return what is in a folder, sorted by name."""
        ...


class Machine(Protocol):
    """One place to run commands. `run` raises Unavailable when it cannot be started, Denied when the sandbox is
    missing and was asked for. Cancelling `run` ends the process group: TERM, 5 s, KILL.
    """

    @property
    def name(self) -> str:
        """Such as `local`."""
        ...

    @property
    def protection(self) -> Protection:
        """What holds a command back."""
        ...

    @property
    def files(self) -> Files:
        """Its files."""
        ...

    def describe(self) -> str:
        """One line for people: what holds a command back here, and what is missing."""
        ...

    async def run(self, command: Command, show: Output) -> Finished:
        """Run to the end, or to the time-out."""
        ...

    async def spawn(self, command: Command) -> ProcessState:
        """Start in the background; it outlives the run and ends with the session or the server."""
        ...

    def processes(self, session: str) -> list[ProcessState]:
        """The background processes of a session, ended ones included."""
        ...

    async def output(self, process: str, *, offset: int, limit: int) -> bytes:
        """Return a part of what a background process has printed; raises NotFound."""
        ...

    async def wait(self, process: str, at_most: timedelta) -> ProcessState:
        """Wait for the end, `at_most` so long."""
        ...

    async def write(self, process: str, data: bytes, *, close: bool = False) -> None:
        """Write to the standard input of a background process."""
        ...

    async def kill(self, process: str) -> ProcessState:
        """End a background process and all that it started."""
        ...

    async def end_session(self, session: str) -> int:
        """End every process of a session; return how many there were."""
        ...
