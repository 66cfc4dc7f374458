"""Files of the home, read whole and replaced whole: a reader sees the old text or the new, never a half."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hermes.domain.errors import Misconfigured

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


class Mistake(ValueError):
    """One thing that is wrong, with its place; the reader collects them."""


def read_text(path: Path) -> str | None:
    """Return what is in a file, None when there is none; raise Mistake when it cannot be read."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Mistake(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, column = before.count(b"\n") + 1, len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
        odd = f"the byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise Mistake(f"{path}:{line}:{column}: {odd}") from None


def replace(path: Path, text: str, mode: int | None = None) -> None:
    """Put `text` in the place of a file, durably. Without `mode` it keeps the one it has; a new file is private.

    A symbolic link stays one: what it points to is replaced.
    """
    with _told(path):
        _replace(Path(os.path.realpath(path)), text, mode)


def _replace(path: Path, text: str, mode: int | None) -> None:
    import tempfile

    if mode is None:
        mode = path.stat().st_mode & 0o777 if path.exists() else PRIVATE_FILE
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(path.parent)


def make_home(home: Path) -> None:
    """Make the home, for its owner only, when it is not there."""
    with _told(home):
        home.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            home.mkdir(mode=PRIVATE_FOLDER)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Misconfigured(f"{path} cannot be written: {error.strerror}; free space or change its rights") from error


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Keep other editors of this home waiting, so that none undoes what another wrote. Windows has no such lock."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
