"""What a session has on this machine: folders of its own, and the state its shell was left in.

Invariant: the state that a sandboxed command leaves is used in the sandbox only.
"""

import hashlib
import shutil
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from hermes.domain.machine import Command
from hermes.domain.records import dataclass
from hermes.machines.network import SessionNetwork
from hermes.machines.repositories import Repositories
from hermes.machines.sandbox import Folders
from hermes.machines.shell import ShellState

_PRIVATE = 0o700


@dataclass(slots=True)
class Session:
    """One session. `spill` holds what was too long to be kept at hand; commands cannot reach it."""

    name: str
    folder: Path
    states: dict[bool, ShellState] = field(default_factory=dict)
    asked: dict[bool, Path] = field(default_factory=dict)
    network: SessionNetwork | None = None
    repositories: dict[Path, Repositories] = field(default_factory=dict)
    """By workspace."""

    @property
    def folders(self) -> Folders:
        """What its commands may write beside the workspace."""
        return Folders(self.folder / "home", self.folder / "tmp")

    @property
    def spill(self) -> Path:
        """Where long outputs are put."""
        return self.folder / "output"

    def begin(self, command: Command, *, is_sandboxed: bool) -> ShellState:
        """Say where and with what a command starts: where the last one left off, unless it asks for another folder
        than the last one did.
        """
        state = self.states.get(is_sandboxed)
        if state is None or self.asked.get(is_sandboxed) != command.cwd:
            state = ShellState(command.cwd, state.environment if state else {})
        self.asked[is_sandboxed] = command.cwd
        return state

    def leave(self, state: ShellState, *, is_sandboxed: bool) -> None:
        """Remember how a command left the shell."""
        self.states[is_sandboxed] = state


def folder_of(name: str, home: Path) -> Path:
    """Say where the folders of a session are."""
    return home / "machines" / "local" / hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def open_session(name: str, home: Path, network: SessionNetwork | None, git: bytes) -> Session:
    """Make the folders of a session, for us only."""
    session = Session(name, folder_of(name, home), network=network)
    for place in (session.folders.home, session.folders.temporary, session.spill):
        place.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    with suppress(FileExistsError), (session.folders.home / ".gitconfig").open("xb") as file:
        file.write(git)
    return session


def remove_session(session: Session) -> None:
    """Remove what a session's commands kept outside the workspace; its long outputs stay."""
    if session.network is not None:
        session.network.close()
    for place in (session.folders.home, session.folders.temporary):
        shutil.rmtree(place, ignore_errors=True)
