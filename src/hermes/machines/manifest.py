"""What was in a workspace at one moment: every file with its state, and where its content is kept.

Invariant: bounded in files and bytes; what is left out is known by name, or the manifest says that it is not complete.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path

import msgspec

from hermes.domain.records import dataclass

LEFT_OUT_FOLDERS = frozenset(
    {".git", "node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox"}
)
_MOST_NAMED = 1_000


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a workspace is kept at most."""

    files: int = 20_000
    file_bytes: int = 10_000_000
    total_bytes: int = 500_000_000


class State(msgspec.Struct, frozen=True, array_like=True):
    """What the system says of a file. While it is the same, so is the content."""

    size: int
    modified: int
    changed: int
    inode: int
    mode: int

    @classmethod
    def of(cls, found: os.stat_result) -> "State":
        """Take from a stat what tells two contents apart."""
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, stat.S_IMODE(found.st_mode))


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """One file of a manifest. Its content is in `pack` at `offset`; a link has `target` and no content."""

    state: State
    digest: bytes = b""
    pack: str = ""
    offset: int = 0
    target: str | None = None


class Manifest(msgspec.Struct, frozen=True):
    """A workspace at one moment. `left_out` are files that were too large; `is_complete` is False when more is
    missing than could be named.
    """

    id: str
    run: str
    at: str
    workspace: str
    files: dict[str, Kept]
    left_out: tuple[str, ...] = ()
    is_complete: bool = True
    why: str = ""


@dataclass(slots=True)
class Scan:
    """What is in a workspace now, as far as the bounds go."""

    files: dict[str, State] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    is_complete: bool = True
    total: int = 0

    def leave_out(self, name: str) -> None:
        """Note a file that is not kept."""
        if len(self.left_out) < _MOST_NAMED:
            self.left_out.append(name)
        else:
            self.is_complete = False


def scan(workspace: Path, bounds: Bounds) -> Scan:
    """Look at every file; follow no link."""
    found = Scan()
    for entry, name in _entries(workspace):
        if len(found.files) + len(found.links) >= bounds.files:
            found.is_complete = False
            return found
        if not _is_text(name):
            found.is_complete = False
            continue
        try:
            state = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(state.st_mode):
                _take_link(found, name, entry.path)
            elif stat.S_ISREG(state.st_mode):
                _take(found, name, state, bounds)
        except OSError:
            found.leave_out(name)
    return found


def _take(found: Scan, name: str, state: os.stat_result, bounds: Bounds) -> None:
    if state.st_size > bounds.file_bytes or found.total + state.st_size > bounds.total_bytes:
        found.leave_out(name)
        return
    found.total += state.st_size
    found.files[name] = State.of(state)


def _take_link(found: Scan, name: str, path: str) -> None:
    target = str(Path(path).readlink())
    if _is_text(target):
        found.links[name] = target
    else:
        found.leave_out(name)


def _is_text(name: str) -> bool:
    """A name that is no UTF-8 cannot be written into a manifest."""
    return name.isascii() or not any("\ud800" <= one <= "\udfff" for one in name)


def _entries(workspace: Path) -> Iterator[tuple["os.DirEntry[str]", str]]:
    folders = [(str(workspace), "")]
    while folders:
        place, prefix = folders.pop()
        try:
            with os.scandir(place) as entries:
                for entry in sorted(entries, key=lambda one: one.name):
                    name = f"{prefix}{entry.name}"
                    if not entry.is_dir(follow_symlinks=False):
                        yield entry, name
                    elif entry.name not in LEFT_OUT_FOLDERS:
                        folders.append((entry.path, f"{name}/"))
        except OSError:
            continue
