"""Repositories that a command has made or found a way to write: what in them would run outside of the sandbox later.

Invariant: what was held read-only is a person's own and is never touched; nothing outside the workspace is.
"""

import logging
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hermes.domain.errors import HermesError
from hermes.domain.records import dataclass
from hermes.machines import gitconfig
from hermes.machines.files import LISTED_FOLDER, names_of, opened

DEEPEST = 4
MOST_FOLDERS = 2_000
_MOST_CONFIG = 1_000_000
_MOST_PARTS = 200
_MOST_NAMED = 12
_LONGEST_PATH = 10_000
_NOT_LOOKED_INTO = frozenset(
    {".git", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
)
_NO_PARTS = frozenset({"objects", "refs", "logs", "hooks", "info"})
_EXECUTABLE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_SETTINGS = ("config", "config.worktree")
_HOOKS = "hooks"
_SIGNS = (".git", "HEAD", "objects", "refs")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_log = logging.getLogger("hermes.machines")


@dataclass(frozen=True, slots=True)
class _Folder:
    changed: int
    below: tuple[str, ...]
    repositories: tuple[str, ...]


class Repositories:
    """The repositories of one workspace: those that were there when a session began, and those that came since.

    It remembers the folders it has seen, and looks again only into those that have changed.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._seen: dict[str, _Folder] = {}
        self.known = frozenset(self._find())
        """What git would have taken for a repository at the beginning."""
        self._first = self._seen
        self._own = frozenset(
            git / name
            for found in self.known
            for git in _folders_of(found, workspace)
            for name in (*_SETTINGS, _HOOKS)
            if os.path.lexists(git / name)
        )

    def disarm(self) -> list[str]:
        """Take from what commands have made what would run a program when a person uses it; return a line for each
        repository. Blocks for some milliseconds.
        """
        lines = []
        for found in sorted(self._find()):
            if found in self.known or self._is_new(found):
                said = [word for git in _folders_of(found, self._workspace) for word in _disarmed(git, self)]
                if said:
                    name = str(found.relative_to(self._workspace))
                    lines.append(
                        f"the repository {name!r} would have run programs outside of the sandbox, so this was switched "
                        f"off: {', '.join(said)}"
                    )
        return lines

    def is_own(self, path: Path) -> bool:
        """Whether it was there at the beginning."""
        return path in self._own

    @property
    def workspace(self) -> Path:
        """Where they are."""
        return self._workspace

    def _is_new(self, found: Path) -> bool:
        """Whether it came since the beginning, and was not only never looked at."""
        place = found.parent if found.name == ".git" else found
        while str(place) not in self._first:
            place, child = place.parent, place
            if not place.is_relative_to(self._workspace):
                return False
            if str(place) in self._first:
                return str(child) not in self._first[str(place)].below
        return True

    def _find(self) -> Iterator[Path]:
        seen: dict[str, _Folder] = {}
        level = [str(self._workspace)]
        for _ in range(DEEPEST + 1):
            below: list[str] = []
            for place in level[: MOST_FOLDERS - len(seen)]:
                looked = self._look(place)
                if looked is not None:
                    seen[place] = looked
                    yield from map(Path, looked.repositories)
                    below += looked.below
            level = below
        self._seen = seen

    def _look(self, place: str) -> _Folder | None:
        try:
            changed = os.lstat(place).st_ctime_ns
            known = self._seen.get(place)
            if known is not None and known.changed == changed:
                return known
            with os.scandir(place) as entries:
                names = {one.name: one.is_dir(follow_symlinks=False) for one in entries}
        except PermissionError:
            # What cannot be listed can still be used by whoever knows the names.
            names = {name: False for name in _SIGNS if os.path.lexists(f"{place}/{name}")}
            changed = 0
        except OSError:
            return None
        inside = [f"{place}/.git"] if ".git" in names else []
        if {"HEAD", "objects", "refs"} <= names.keys():
            inside.append(place)
        below = tuple(f"{place}/{name}" for name in sorted(names) if names[name] and name not in _NOT_LOOKED_INTO)
        return _Folder(changed, below, tuple(inside))


def _folders_of(found: Path, workspace: Path) -> Iterator[Path]:
    """Return the folders that git would read: what a `.git` leads to, what is common to worktrees, submodules."""
    waiting, seen = [found], set[Path]()
    while waiting and len(seen) < _MOST_PARTS:
        place = Path(os.path.realpath(waiting.pop(0)))
        if place in seen or not place.is_relative_to(workspace):
            continue
        seen.add(place)
        if place.is_file():
            waiting += [place.parent / word for word in _pointed(place, "gitdir:")]
        elif place.is_dir():
            yield place
            waiting += [place / word for word in _pointed(place / "commondir", "")]
            waiting += [*_parts(place / "worktrees"), *_parts(place / "modules")]


def _parts(folder: Path) -> Iterator[Path]:
    for at, below, names in os.walk(folder):
        below[:] = [name for name in below if name not in _NO_PARTS]
        if "HEAD" in names:
            yield Path(at)


def _pointed(path: Path, mark: str) -> Iterator[str]:
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            said = file.read(_LONGEST_PATH).decode("utf-8", "surrogateescape")
        if said.startswith(mark) and "\0" not in said:
            yield said.removeprefix(mark).strip()


def _disarmed(git: Path, of: Repositories) -> list[str]:
    said: list[str] = []
    try:
        with opened(names_of(git)) as folder:
            _let_us(folder)
            for name in _SETTINGS:
                if not of.is_own(git / name):
                    said += _settings(folder, name, git, of.workspace)
            if not of.is_own(git / _HOOKS):
                said += _hooks(folder)
    except (OSError, HermesError) as error:
        _log.warning("a repository was not looked at", extra={"fields": {"path": str(git), "error": str(error)}})
        said.append(f"nothing more, as it could not be looked at ({error}): use no git there")
    return said


def _let_us(folder: int) -> None:
    """A folder that its owner may not change would keep us from it, and not git."""
    mode = stat.S_IMODE(os.stat(folder).st_mode)
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(f"/proc/self/fd/{folder}", mode | stat.S_IRWXU)  # noqa: PTH101 - a descriptor


def _settings(folder: int, name: str, git: Path, workspace: Path) -> list[str]:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return []
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_CONFIG:
        return [_put_aside(folder, name)]
    _let_read(folder, name)
    with os.fdopen(os.open(name, _READ, dir_fd=folder), "rb") as file:
        text = file.read(_MOST_CONFIG + 1).decode("utf-8", "surrogateescape")
    judged = gitconfig.judged(text, git, workspace)
    if not judged.taken:
        return []
    part = f".hermes-{secrets.token_hex(8)}"
    with os.fdopen(os.open(part, _CREATE, found.st_mode & 0o666, dir_fd=folder), "wb") as made:
        made.write(judged.text.encode("utf-8", "surrogateescape"))
    os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
    return list(dict.fromkeys(judged.taken))[:_MOST_NAMED]


def _hooks(folder: int) -> list[str]:
    try:
        found = os.stat(_HOOKS, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return []
    if not stat.S_ISDIR(found.st_mode):
        return [_put_aside(folder, _HOOKS)]
    below = os.open(_HOOKS, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        _let_us(below)
        listed = os.open(".", LISTED_FOLDER, dir_fd=below)
        try:
            with os.scandir(listed) as entries:
                names = sorted(one.name for one in entries if not one.name.endswith((".sample", ".disarmed")))
            said = [f"the hook {name!r}" for name in names if _is_disarmed(listed, name)]
        finally:
            os.close(listed)
    finally:
        os.close(below)
    return said[:_MOST_NAMED]


def _is_disarmed(folder: int, name: str) -> bool:
    """Take from a hook that it can be run; say whether it could."""
    mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        _put_aside(folder, name)
        return True
    if not stat.S_ISREG(mode) or not mode & _EXECUTABLE:
        return False
    _let_read(folder, name)
    handle = os.open(name, _READ, dir_fd=folder)
    try:
        os.fchmod(handle, stat.S_IMODE(os.fstat(handle).st_mode) & ~_EXECUTABLE)
    finally:
        os.close(handle)
    return True


def _let_read(folder: int, name: str) -> None:
    """Open a file to ourselves that nobody may read; a program may be run all the same."""
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        mode = os.stat(handle).st_mode  # noqa: PTH116 - a descriptor
        if stat.S_ISREG(mode) and not mode & stat.S_IRUSR:
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IMODE(mode) | stat.S_IRUSR)  # noqa: PTH101 - a descriptor
    finally:
        os.close(handle)


def _put_aside(folder: int, name: str) -> str:
    os.rename(name, f"{name}.{secrets.token_hex(4)}.disarmed", src_dir_fd=folder, dst_dir_fd=folder)
    return f"{name}, which was no plain file"
