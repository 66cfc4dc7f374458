"""Empty folders where commands must not make something, as a mount needs a place.

Invariant: each is noted on disk before it is made, and removed with its last user; what a killed Hermes has left
is removed by the next one, if it is still the same folder, empty, and as it was made.
"""

import fcntl
import hashlib
import json
import os
import stat
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hermes.domain.errors import Unavailable
from hermes.domain.records import dataclass
from hermes.machines.workspace import KEPT_FOLDERS, Workspace

_MODE = 0o555
_PRIVATE = 0o700
_HOW = os.O_CLOEXEC | os.O_NOFOLLOW
_LENGTH = 24


@dataclass(frozen=True, slots=True)
class _Note:
    handle: int
    path: Path
    names: set[str]


class Placeholders:
    """Those of one Hermes. Notes are files in `notes`, one for each process and workspace, locked while it lives."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes
        self._users: Counter[Path] = Counter()
        self._noted: dict[Path, _Note] = {}
        self._lock = threading.Lock()
        with suppress(OSError):
            _remove_leftovers(notes)

    @contextmanager
    def of(self, found: Workspace | None) -> Iterator[None]:
        """Hold the places of a workspace."""
        places = found.missing if found is not None else ()
        with self._lock:
            if found is not None and places:
                self._note(found.folder, {place.name for place in places})
            made = [place for place in places if self._users[place] or _made(place)]
            self._users.update(made)
        try:
            yield
        finally:
            with self._lock:
                self._users.subtract(made)
                for place in made:
                    if not self._users[place]:
                        del self._users[place]
                        with suppress(OSError):
                            place.rmdir()

    def _note(self, folder: Path, names: set[str]) -> None:
        """Write down where they will be. The lock says that we live, and goes with us however we end."""
        noted = self._noted.get(folder)
        if noted is None:
            self._notes.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
            of = hashlib.sha256(os.fsencode(folder)).hexdigest()[:_LENGTH]
            path = self._notes / f"{of}-{os.getpid()}-{id(self)}.json"
            noted = self._noted[folder] = _Note(os.open(path, os.O_RDWR | os.O_CREAT | _HOW, 0o600), path, set())
            fcntl.flock(noted.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not names <= noted.names:
            noted.names.update(names)
            os.pwrite(noted.handle, json.dumps([str(folder), *sorted(noted.names)]).encode(), 0)

    def close(self) -> None:
        """Take the notes away, when nothing runs any more."""
        with self._lock:
            for noted in self._noted.values():
                with suppress(OSError):
                    noted.path.unlink()
                os.close(noted.handle)
            self._noted.clear()


def _remove_leftovers(notes: Path) -> None:
    left: list[tuple[Path, int]] = []
    alive: set[str] = set()
    try:
        for path in notes.glob("*.json"):
            handle = os.open(path, os.O_RDWR | _HOW)
            left.append((path, handle))
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                alive.add(path.name[:_LENGTH])
        for path, handle in left:
            # Another one works there, and needs them still; whoever comes after it will look again.
            if path.name[:_LENGTH] not in alive:
                with suppress(ValueError, TypeError):
                    folder, *names = json.loads(os.pread(handle, 1 << 16, 0))
                    _remove_from(Path(folder), names)
                path.unlink(missing_ok=True)
    finally:
        for _, handle in left:
            os.close(handle)


def _remove_from(folder: Path, names: Iterable[str]) -> None:
    for name in set(names) & set(KEPT_FOLDERS):
        with suppress(OSError):
            found = (folder / name).lstat()
            if stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == _MODE and found.st_uid == os.getuid():
                (folder / name).rmdir()


def _made(place: Path) -> bool:
    try:
        place.mkdir(mode=_MODE)
    except FileExistsError:
        return False
    except OSError as error:
        raise Unavailable(f"{str(place)!r} cannot be kept free: {error.strerror}; make it yourself") from error
    return True
