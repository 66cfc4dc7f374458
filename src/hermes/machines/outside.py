"""Files outside a workspace, as they were before a run wrote over them.

Invariant: the old content is on disk before the note that names it, and the note before the file is written.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

KEPT = 200
LARGEST = 50_000_000
_PRIVATE, _PRIVATE_FILE = 0o700, 0o600


class OldFile(msgspec.Struct, frozen=True):
    """One file as it was. Its content is beside the note."""

    id: str
    run: str
    at: str
    path: str
    mode: int


class OldFiles:
    """A folder of them. Its functions block for as long as a file takes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, name: str, run: str, at: str, path: Path) -> OldFile | None:
        """Keep a file that is there; None when none is. Raises OSError when it cannot be kept."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        with os.fdopen(handle, "rb") as file:
            content = file.read(LARGEST + 1)
            mode = os.fstat(handle).st_mode & 0o777
        if len(content) > LARGEST:
            raise OSError(f"it is larger than {LARGEST:,} bytes")
        self._folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        made = OldFile(name, run, at, os.fsencode(path).decode(), mode)
        _write(self._folder / f"{name}.old", content)
        _write(self._folder / f"{name}.json", msgspec.json.encode(made))
        self._forget_old()
        return made

    def all(self) -> Iterator[OldFile]:
        """Return them, the newest first."""
        for path in sorted(self._folder.glob("*.json"), reverse=True):
            with suppress(FileNotFoundError, msgspec.DecodeError, msgspec.ValidationError):
                yield msgspec.json.decode(path.read_bytes(), type=OldFile)

    def content(self, one: OldFile) -> bytes:
        """Return what was in it."""
        return (self._folder / f"{one.id}.old").read_bytes()

    def _forget_old(self) -> None:
        for path in sorted(self._folder.glob("*.json"))[:-KEPT]:
            path.unlink(missing_ok=True)
            path.with_suffix(".old").unlink(missing_ok=True)


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(handle)
