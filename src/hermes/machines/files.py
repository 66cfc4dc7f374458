"""The files of this machine, as file tools use them: no link is followed on the way, nothing blocks for ever.

Invariant: a path is walked name by name from the root, so what is touched is what was judged, whatever is swapped
meanwhile. A file is replaced as a whole or not at all.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import anyio.to_thread

from hermes.domain.errors import Denied, HermesError, Misconfigured, NotFound, Unavailable
from hermes.domain.machine import FileStatus

T = TypeVar("T")

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
LISTED_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE, _NEW_FOLDER = 0o666, 0o777


class LocalFiles:
    """Implements `Files` on the file system below. Work is done in threads, so a slow disk holds up nobody else."""

    def resolve(self, path: Path) -> Path:
        """Return the path with every link followed; what does not exist yet keeps its name."""
        if not path.is_absolute():
            raise Misconfigured(f"{path} is not absolute; name it from the root")
        with _told(path):
            return Path(os.path.realpath(path))

    async def status(self, path: Path) -> FileStatus | None:
        """Say what is there; None when nothing is."""
        return await _in_thread(lambda: _status(path))

    async def read(self, path: Path, *, limit: int) -> bytes:
        """Return the first `limit` bytes of a regular file."""
        return await _in_thread(lambda: _read(path, limit))

    async def write(self, path: Path, data: bytes) -> None:
        """Replace a file as a whole; it keeps its rights. Folders on the way are made."""
        await _in_thread(lambda: _write(path, data))

    async def remove(self, path: Path) -> None:
        """Remove a file; a link is removed itself."""
        await _in_thread(lambda: _remove(path))

    async def names(self, path: Path) -> list[FileStatus]:
        """Return what is in a folder, sorted by name; links are told of as what they are, not followed."""
        return await _in_thread(lambda: _names(path))


async def _in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)


def _status(path: Path) -> FileStatus | None:
    with _told(path):
        try:
            with _folder_of(path) as (folder, name):
                found = os.stat(name or ".", dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _as_status(path, found)


def _read(path: Path, limit: int) -> bytes:
    with _told(path), _folder_of(path) as (folder, name):
        handle = os.open(name or ".", _READ, dir_fd=folder)
        with os.fdopen(handle, "rb", buffering=0) as file:
            _require_regular(path, os.fstat(handle))
            parts, left = [], limit
            while left > 0 and (part := file.read(min(left, 1 << 20))):
                parts.append(part)
                left -= len(part)
            return b"".join(parts)


def _write(path: Path, data: bytes) -> None:
    with _told(path), _folder_of(path, make=True) as (folder, name):
        mode = _mode_of(path, folder, name)
        temporary = f".hermes-{secrets.token_hex(8)}"
        handle = os.open(temporary, _CREATE, _NEW_FILE, dir_fd=folder)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                if mode is not None:
                    os.fchmod(handle, mode)
                os.fsync(handle)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        _sync(folder)


def _mode_of(path: Path, folder: int, name: str) -> int | None:
    """Return the rights of what will be replaced, None when there is nothing; refuse what is no regular file."""
    if not name:
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _require_regular(path, found)
    if not os.access(name, os.W_OK, dir_fd=folder, follow_symlinks=False):
        raise PermissionError(errno.EACCES, "is read-only")
    return stat.S_IMODE(found.st_mode) & 0o777


def _remove(path: Path) -> None:
    with _told(path), _folder_of(path) as (folder, name):
        if not name or stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise IsADirectoryError(errno.EISDIR, "is a folder")
        os.unlink(name, dir_fd=folder)


def _names(path: Path) -> list[FileStatus]:
    with _told(path), opened(names_of(path)) as folder:
        found = []
        listed = os.open(".", LISTED_FOLDER, dir_fd=folder)
        try:
            with os.scandir(listed) as entries:
                for entry in entries:
                    # What is removed between being listed and being looked at is not there.
                    with suppress(FileNotFoundError):
                        found.append(_as_status(path / entry.name, entry.stat(follow_symlinks=False)))
        finally:
            os.close(listed)
        return sorted(found, key=lambda status: os.fsencode(status.path.name))


def _sync(folder: int) -> None:
    listed = os.open(".", LISTED_FOLDER, dir_fd=folder)
    try:
        os.fsync(listed)
    finally:
        os.close(listed)


@contextmanager
def _folder_of(path: Path, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder a path is in; give it with the last name, which is empty for the root."""
    names = names_of(path)
    with opened(names[:-1], make=make) as folder:
        yield folder, names[-1] if names else ""


@contextmanager
def opened(names: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """Open a folder by its names from the root down, none of which may be a link."""
    handle = os.open("/", _FOLDER)
    try:
        for name in names:
            entered = _enter(handle, name, make=make)
            os.close(handle)
            handle = entered
        yield handle
    finally:
        os.close(handle)


def names_of(path: Path) -> tuple[str, ...]:
    """Return the names of a resolved path; raise Misconfigured for another."""
    names = path.parts[1:]
    if not path.is_absolute() or ".." in names:
        raise Misconfigured(f"{str(path)!r} is not a resolved path; resolve it first")
    if any("\0" in name for name in names):
        raise Misconfigured(f"{str(path)!r} holds a NUL; no file can be called that")
    return names


def _enter(folder: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, _NEW_FOLDER, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _require_regular(path: Path, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise Misconfigured(f"{str(path)!r} is {_kind(found.st_mode)}; expected a regular file")


def _kind(mode: int) -> str:
    for test, word in (
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if test(mode):
            return word
    return "a device"


def _as_status(path: Path, found: os.stat_result) -> FileStatus:
    return FileStatus(path, stat.S_ISDIR(found.st_mode), found.st_size, found.st_mtime)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what the system says into what the caller can do about it."""
    try:
        yield
    except OSError as error:
        raise _error(path, error) from error


def _error(path: Path, error: OSError) -> HermesError:
    shown = repr(str(path))
    match error.errno:
        case errno.ENOENT:
            return NotFound(f"{shown} does not exist; look at what is in its folder")
        case errno.ELOOP:
            return Denied(f"{shown} leads through a link that was not there before; resolve the path again")
        case errno.ENOTDIR:
            return Misconfigured(f"{shown} leads through a file or a link, not through folders; resolve the path again")
        case errno.EISDIR:
            return Misconfigured(f"{shown} is a folder; name a file in it")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return Denied(f"{shown} may not be touched: {error.strerror}; change its rights or use another place")
        case errno.ENXIO:
            return Misconfigured(f"{shown} is a socket or a pipe; expected a regular file")
        case errno.ENAMETOOLONG | errno.EINVAL:
            return Misconfigured(f"{shown} is no name a file can have: {error.strerror}; use a shorter or simpler one")
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return Unavailable(f"{shown} was not written: {error.strerror}; free some space", retry_after=30.0)
        case _:
            return Unavailable(f"{shown} cannot be used now: {error.strerror}; try again")
