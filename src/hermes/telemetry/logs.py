"""The log: one JSON object a line in `logs/hermes.jsonl`, cleaned of secrets, rotated, for its owner only.

Several processes may write one file. A line is one appending write, so lines never mix. A process that finds the file
too large renames it while it holds a lock beside it, or writes on when another holds that. The others notice that the
name leads to another file and open that. A line written meanwhile lands in the renamed file, so none is lost.

Logging never raises into the caller. What cannot be written is counted, said once on standard error, and said again in
the log when writing works again.
"""

import json
import logging
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TextIO

from hermes.domain.clock import Clock
from hermes.telemetry.redactor import Redactor, shown

Level = Literal["debug", "info", "warning", "error"]

FILE = "hermes.jsonl"
OURS = "hermes"
"""The logger above all of ours; those of others are heard from `warning` up."""


def open_logs(
    directory: Path,
    *,
    redactor: Redactor,
    clock: Clock,
    level: Level = "info",
    max_bytes: int = 10_000_000,
    backups: int = 5,
    mirror: TextIO | None = None,
) -> "Logs":
    """Send what is logged from now on to `directory`, and to `mirror` too when there is one; close what is returned."""
    lines = Lines(redactor, clock)
    handlers: list[logging.Handler] = [RotatingHandler(directory / FILE, max_bytes=max_bytes, backups=backups)]
    if mirror is not None:
        handlers.append(MirrorHandler(mirror))
    for handler in handlers:
        handler.setFormatter(lines)
    return Logs(handlers, redactor, getattr(logging, level.upper()))


class Logs:
    """An open log. `redactor` may learn more secrets while it is open; `close` puts the loggers back as they were."""

    def __init__(self, handlers: list[logging.Handler], redactor: Redactor, level: int) -> None:
        self.redactor = redactor
        self._handlers = handlers
        self._ours, self._all = logging.getLogger(OURS), logging.getLogger()
        self._levels = (self._ours.level, self._all.level)
        self._ours.setLevel(level)
        self._all.setLevel(max(level, logging.WARNING))
        for handler in handlers:
            self._all.addHandler(handler)

    @property
    def lost(self) -> int:
        """How many records could not be written to the file so far."""
        return sum(handler.lost for handler in self._handlers if isinstance(handler, RotatingHandler))

    def close(self) -> None:
        """Stop writing; a second call does nothing."""
        for handler in self._handlers:
            self._all.removeHandler(handler)
            handler.close()
        if self._handlers:
            self._ours.setLevel(self._levels[0])
            self._all.setLevel(self._levels[1])
        self._handlers = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Lines(logging.Formatter):
    """Turns a record into one line of JSON without a secret; whatever a record holds, there is a line."""

    def __init__(self, redactor: Redactor, clock: Clock) -> None:
        super().__init__()
        self._redactor = redactor
        self._clock = clock

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        clean = self._redactor.clean
        line: dict[str, object] = {
            "at": self._clock.now().isoformat(),
            "level": record.levelname.lower(),
            "logger": clean(record.name),
            "message": clean(_message(record)),
            "process": record.process,
        }
        if (fields := getattr(record, "fields", None)) is not None:
            line["fields"] = self._redactor.clean_value(fields)
        if record.exc_info and record.exc_info[1] is not None:
            line["exception"] = clean("".join(traceback.format_exception(record.exc_info[1])).rstrip())
        if record.stack_info:
            line["stack"] = clean(record.stack_info)
        return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


class RotatingHandler(logging.Handler):
    """Appends lines to a file that other processes may append to and rotate as well."""

    def __init__(self, path: Path, *, max_bytes: int, backups: int) -> None:
        super().__init__()
        self.lost = 0
        self._path = path
        self._max_bytes = max_bytes
        self._backups = max(1, backups)
        self._file: int | None = None
        self._unsaid = 0
        self._is_torn = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; when that fails, count it."""
        try:
            line = self.format(record)
            if self._unsaid:
                self._write(self._confession(record))
                self._unsaid = 0
            self._write(line)
        except Exception as error:  # noqa: BLE001  # the log is the last place: there is nobody left to tell
            self._count(error)

    def close(self) -> None:
        """Close the file; a later record opens it again."""
        self.acquire()
        try:
            self._shut()
        finally:
            self.release()
        super().close()

    def _confession(self, record: logging.LogRecord) -> str:
        message = "%d records could not be written here"
        return self.format(
            logging.LogRecord("hermes.telemetry", logging.ERROR, record.pathname, 0, message, (self._unsaid,), None)
        )

    def _write(self, line: str) -> None:
        data = line.encode(errors="backslashreplace") + b"\n"
        file = self._open()
        if os.fstat(file).st_size + len(data) > self._max_bytes:
            self._rotate(len(data))
            file = self._open()
        written = os.write(file, b"\n" + data if self._is_torn else data)
        # A full disk may take half a line; the next one then begins on a line of its own.
        self._is_torn = written < len(data)
        if self._is_torn:
            raise OSError(f"{written} of {len(data)} bytes were written")

    def _open(self) -> int:
        """Return the file that the name leads to now, making it when there is none."""
        if self._file is not None and not self._is_current(self._file):
            self._shut()
        if self._file is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._file

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(os.fstat(file), self._path.stat())
        except FileNotFoundError:
            return False

    def _rotate(self, coming: int) -> None:
        with _locked(self._path.with_name(f".{self._path.name}.lock")) as is_ours:
            size = os.fstat(self._open()).st_size
            if not is_ours or size == 0 or size + coming <= self._max_bytes:
                return
            self._shut()
            for number in range(self._backups - 1, 0, -1):
                with suppress(FileNotFoundError):
                    self._backup(number).replace(self._backup(number + 1))
            # Windows renames no file that somebody has open: there one that cannot be renamed goes on growing.
            with suppress(PermissionError):
                self._path.replace(self._backup(1))

    def _backup(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _shut(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None

    def _count(self, error: Exception) -> None:
        self.lost += 1
        self._unsaid += 1
        if self._unsaid == 1:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            with suppress(Exception):
                sys.stderr.write(f"hermes: the log {str(self._path)!r} cannot be written ({reason}); work goes on\n")


class MirrorHandler(logging.Handler):
    """Writes the same lines to a stream; a stream that is gone loses them."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        with suppress(Exception):
            self._stream.write(self.format(record) + "\n")
            self._stream.flush()


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001  # a wrong format string is the caller's mistake, and no reason to fail
        return f"{shown(record.msg)} with {shown(record.args)}"


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Take the lock of those who rotate, or give False at once when another has it: a log never waits.

    Windows has no lock of this kind, and rotates without.
    """
    file, is_ours = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), True
    try:
        if sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                is_ours = False
        yield is_ours
    finally:
        os.close(file)
