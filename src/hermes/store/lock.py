"""Files that processes hold: the server's right to work on a database file, and everybody's to have it open.

The operating system lets go of it when the process ends, however it ends; what is left in the file then tells the
next holder that the last one did not stop in order.
"""

import contextlib
import json
import os
import socket
import time
from datetime import datetime
from pathlib import Path

from hermes.domain.errors import Conflict, Unsupported

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]


class FileLock:
    """Taken by the constructor's caller with `acquire`, given back with `release`."""

    def __init__(self, path: Path, purpose: str) -> None:
        self._path = path
        self._purpose = purpose
        self._descriptor: int | None = None
        self._is_alone = False
        self.was_left_behind = False

    def acquire(self, now: datetime, *, is_shared: bool = False) -> None:
        """Take the lock, alone or beside others who share it. Raises Conflict, naming who holds it alone."""
        if fcntl is None:  # pragma: no cover - Windows
            raise Unsupported("file locks of this system are not supported; use PostgreSQL by DATABASE_URL")
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _take(descriptor, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX)
        except OSError as error:
            holder = _describe(descriptor)
            os.close(descriptor)
            raise Conflict(
                f"another Hermes{holder} {self._purpose} {self._path.with_suffix('').name!r} in "
                f"{str(self._path.parent)!r}; stop it, or give this one a HERMES_HOME of its own"
            ) from error
        self._descriptor = descriptor
        if is_shared:
            return
        self.was_left_behind = bool(os.pread(descriptor, 1, 0))
        owner = json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": now.isoformat()})
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, owner.encode(), 0)
        self._is_alone = True

    def release(self) -> None:
        """Give the lock back, leaving word that all is in order."""
        if self._descriptor is not None:
            if self._is_alone:
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor, self._is_alone = None, False


def _take(descriptor: int, how: int) -> None:
    """Take the lock, letting pass whoever only looks (see `held_by`)."""
    for pause in (0.01, 0.05, 0.2):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            return
        time.sleep(pause)
    fcntl.flock(descriptor, how | fcntl.LOCK_NB)


def server_lock(database: Path) -> Path:
    """Return the file that the server of a database file holds."""
    return database.with_name(f"{database.name}.lock")


def held_by(path: Path) -> str | None:
    """Say who holds the lock of a file now, such as "process 7 on host, since …"; None when nobody does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # An empty file was left in order; so only after a crash do we touch the lock, and for a moment.
        if not os.pread(descriptor, 1, 0):
            return None
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return _describe(descriptor).strip(" ()") or "another process"
    else:
        return None
    finally:
        os.close(descriptor)


def _describe(descriptor: int) -> str:
    try:
        owner = json.loads(os.pread(descriptor, 4096, 0))
        return f" (process {owner['pid']} on {owner['host']}, since {owner['since'][:19]}Z)"
    except (ValueError, KeyError, TypeError):
        return ""
