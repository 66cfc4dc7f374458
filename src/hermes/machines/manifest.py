"""What was in a workspace at one moment: every file with its state, and where its content is kept.

Invariant: bounded in files and bytes; what is left out is known by name, or the manifest says that it is not complete.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

import msgspec

from hermes.domain.records import dataclass

LEFT_OUT_FOLDERS = frozenset(
    {"node_modules", ".venv", "venv", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox"}
)
GIT = ".git"
_OF_GIT = frozenset(
    {
        *("HEAD", "ORIG_HEAD", "packed-refs", "index", "config", "config.worktree", "shallow", "description"),
        *("refs", "logs", "info", "hooks"),
    }
)
"""What of a repository is kept as files are; its objects are kept by links."""
_MOST_NAMED = 1_000
_MOST_SAID = 5


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
    missing than could be named. `folders` are empty ones, `skipped` those that are never looked into.
    """

    id: str
    run: str
    at: str
    workspace: str
    files: dict[str, Kept]
    left_out: tuple[str, ...] = ()
    is_complete: bool = True
    why: str = ""
    folders: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    objects_left_out: int = 0

    @property
    def missing(self) -> str:
        """Say what is not in it; empty when nothing is missing."""
        said = [_listed("left out", self.skipped), _listed("too large or not readable", self.left_out)]
        said += [f"{self.objects_left_out:,} objects of git"] if self.objects_left_out else []
        said += [] if self.is_complete else ["there are more files than are kept"]
        return "; ".join(one for one in said if one)


@dataclass(slots=True)
class Scan:
    """What is in a workspace now, as far as the bounds go."""

    files: dict[str, State] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    repositories: list[str] = field(default_factory=list)
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
    for entry, name in _entries(workspace, found):
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


def _listed(what: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    first = ", ".join(names[:_MOST_SAID])
    return f"{what}: {first}" + (f" and {len(names) - _MOST_SAID:,} more" if len(names) > _MOST_SAID else "")


def _entries(workspace: Path, found: Scan) -> Iterator[tuple["os.DirEntry[str]", str]]:
    folders = [(str(workspace), "")]
    while folders:
        place, prefix = folders.pop()
        try:
            with os.scandir(place) as entries:
                inside = sorted(entries, key=lambda one: one.name)
        except OSError:
            found.leave_out(prefix)
            continue
        if not inside and prefix and _is_text(prefix):
            found.folders.append(prefix.removesuffix("/"))
        is_git = prefix == f"{GIT}/" or prefix.endswith(f"/{GIT}/")
        for entry in inside:
            name = f"{prefix}{entry.name}"
            if is_git and entry.name not in _OF_GIT:
                continue
            if not entry.is_dir(follow_symlinks=False):
                yield entry, name
            elif entry.name not in LEFT_OUT_FOLDERS:
                folders.append((entry.path, f"{name}/"))
                if entry.name == GIT and _is_text(name):
                    found.repositories.append(name)
            elif len(found.skipped) < _MOST_NAMED and _is_text(name):
                found.skipped.append(name)


def is_of_git(name: str) -> bool:
    """Whether a file belongs to a repository and not to the work in it."""
    return GIT in name.split("/")[:-1]
