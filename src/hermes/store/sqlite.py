"""SQLite: one file, WAL, one writing connection per process.

The engine must be 3.51.3 or newer, or the file belongs to one process: older ones can corrupt a WAL that two
processes write and checkpoint at once.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from enum import IntEnum
from pathlib import Path
from typing import Any, Literal

from hermes.domain.clock import Clock, Micros, to_micros
from hermes.domain.errors import Conflict, Damaged, Unavailable
from hermes.domain.protocols import Params, Row
from hermes.domain.records import dataclass
from hermes.store.engine import Failure
from hermes.store.lock import FileLock

try:
    from pysqlite3 import dbapi2 as _bundled

    driver: Any = _bundled
except ImportError:
    import sqlite3 as _linked

    driver = _linked

Synchronous = Literal["full", "normal"]

SAFE_FOR_TWO = (3, 51, 3)
MEMORY = ":memory:"


class _Code(IntEnum):
    """The primary result codes of SQLite that mean something to a caller."""

    BUSY = 5
    LOCKED = 6
    READONLY = 8
    INTERRUPT = 9
    IOERR = 10
    CORRUPT = 11
    FULL = 13
    CANTOPEN = 14
    CONSTRAINT = 19
    NOTADB = 26


def version() -> tuple[int, int, int]:
    """Return the version of the SQLite in use."""
    major, minor, patch = driver.sqlite_version_info
    return major, minor, patch


def is_safe_for_two_processes() -> bool:
    """Whether two processes may write one file with this engine."""
    return version() >= SAFE_FOR_TWO


def occupy(path: Path, now: datetime, *, is_alone: bool | None = None) -> FileLock:
    """Say that this process has the file open: beside others who have a safe engine too, alone with an old one.

    Raises Conflict when that cannot be. `is_alone` asks for it in any case, as whoever exchanges the file does.
    """
    lock = FileLock(path.with_name(f"{path.name}.one-process"), "has open")
    try:
        lock.acquire(now, is_shared=is_safe_for_two_processes() if is_alone is None else not is_alone)
    except Conflict as error:
        oldest = ".".join(map(str, SAFE_FOR_TWO))
        raise Conflict(
            f"{error}. Several processes share a database file only when each has SQLite {oldest} or newer "
            f"(this one has {'.'.join(map(str, version()))}; the package pysqlite3 brings one), and none while it is "
            "restored"
        ) from error
    return lock


@dataclass(frozen=True, slots=True)
class SqliteEngine:
    """A file, or memory. `clock` gives the time of transactions."""

    path: str
    clock: Clock
    synchronous: Synchronous = "full"
    busy_seconds: float = 5.0
    dialect: Literal["sqlite", "postgres"] = "sqlite"

    @property
    def is_memory(self) -> bool:
        """Whether there is no file."""
        return self.path == MEMORY

    def connect(self, *, is_reading: bool) -> "SqliteConnection":
        """Open one more connection to the file."""
        return SqliteConnection(self, is_reading=is_reading)

    def understand(self, error: Exception) -> Failure | None:
        """Translate an error of the driver into ours."""
        return _understand(error, self.path)


class SqliteConnection:
    """One connection to the engine's file."""

    dialect: Literal["sqlite", "postgres"] = "sqlite"

    def __init__(self, engine: SqliteEngine, *, is_reading: bool) -> None:
        self._engine = engine
        self._db = driver.connect(
            engine.path,
            isolation_level=None,
            check_same_thread=False,
            timeout=engine.busy_seconds,
            cached_statements=512,
        )
        try:
            self._cursor = self._db.cursor()
            self._configure(is_reading=is_reading)
            self._version_of_data = self._data_version()
            self._is_gone = False
            self._inodes: dict[str, int] = {}
        except UnicodeDecodeError as error:
            self._db.close()
            raise damaged(engine.path, str(error)) from error
        except BaseException:
            self._db.close()
            raise

    def _configure(self, *, is_reading: bool) -> None:
        run = self._cursor.execute
        run("PRAGMA foreign_keys = ON")
        run("PRAGMA mmap_size = 0")
        run("PRAGMA cache_size = -16000")
        run(f"PRAGMA synchronous = {self._engine.synchronous.upper()}")
        if is_reading:
            run("PRAGMA query_only = ON")

    def adopt(self) -> None:
        """Let readers go on while we write; the file remembers it."""
        if not self._engine.is_memory:
            # Fetched to its end: an open statement would keep Alembic's set-up of the connection from working.
            self._cursor.execute("PRAGMA journal_mode = WAL").fetchall()

    @property
    def raw(self) -> Any:  # noqa: ANN401 - two drivers, one of them without types
        """The driver's connection, for migrations and backups."""
        return self._db

    def begin(self, *, is_reading: bool) -> None:
        """Open a transaction."""
        if self._is_gone:
            raise Damaged(
                f"the database {self._engine.path!r} or its -wal file was removed or exchanged while Hermes uses it; "
                "stop Hermes, look for the file, or restore a backup with `hermes db restore FILE`"
            )
        if self._engine.is_memory:
            self._cursor.execute(f"PRAGMA query_only = {int(is_reading)}")
        self._cursor.execute("BEGIN" if is_reading else "BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit; with synchronous FULL the WAL has been flushed when this returns."""
        self._cursor.execute("COMMIT")

    def rollback(self) -> None:
        """Leave the transaction if there is one."""
        try:
            if self._db.in_transaction:
                self._cursor.execute("ROLLBACK")
        except driver.Error:
            # The engine has rolled back by itself, or the connection is closed; it says so by an error.
            return

    def is_in_transaction(self) -> bool:
        """Whether the transaction survived the last error."""
        return bool(self._db.in_transaction)

    def savepoint(self) -> None:
        """Mark a place to come back to."""
        self._cursor.execute("SAVEPOINT piece")

    def release(self) -> None:
        """Keep what was done since the mark."""
        self._cursor.execute("RELEASE piece")

    def back_to_savepoint(self) -> None:
        """Undo what was done since the mark."""
        self._cursor.execute("ROLLBACK TO piece")
        self._cursor.execute("RELEASE piece")

    def execute(self, sql: str, params: Params) -> int:
        """Run one statement and return how many rows it touched."""
        return int(self._cursor.execute(sql, params).rowcount)

    def insert(self, sql: str, params: Params, counter: str) -> int | None:  # noqa: ARG002 - it is the row's id
        """Insert one row and return its number, or None when it was there already."""
        cursor = self._cursor.execute(sql, params)
        return int(cursor.lastrowid) if cursor.rowcount else None

    def fetch(self, sql: str, params: Params) -> list[Row]:
        """Run one statement and return its rows."""
        try:
            rows: list[Row] = self._cursor.execute(sql, params).fetchall()
        except UnicodeDecodeError as error:
            raise damaged(self._engine.path, str(error)) from error
        return rows

    def stream(self, sql: str) -> Iterator[Row]:
        """Give rows as they come."""
        yield from self._db.cursor().execute(sql)

    def set_counters(self) -> None:
        """Nothing to do: SQLite notices numbers that are put in."""

    def order(self) -> None:
        """Nothing to do: the only writer in line is the one that holds the file."""

    def now(self) -> Micros:
        """The clock's time."""
        return to_micros(self._engine.clock.now())

    def has_changed(self) -> bool:
        """Whether another process has committed since this was last asked; notices also when the file has gone."""
        self._is_gone = self._is_gone or self._has_gone()
        before, self._version_of_data = self._version_of_data, self._data_version()
        return before != self._version_of_data

    def _has_gone(self) -> bool:
        """Whether the file or its log was removed or exchanged under us; then nobody would ever find what we write."""
        if self._engine.is_memory:
            return False
        for ending in ("", "-wal"):
            try:
                found = Path(self._engine.path + ending).stat().st_ino
            except FileNotFoundError:
                found = 0
            if self._inodes.setdefault(ending, found) in {0, found}:
                self._inodes[ending] = found
            else:
                return True
        return False

    def _data_version(self) -> int:
        return int(self._cursor.execute("PRAGMA data_version").fetchone()[0])

    def is_broken(self) -> bool:
        """A file does not go away as a server does."""
        return False

    def check(self, *, is_thorough: bool) -> list[str]:
        """Return what is wrong with the file: nothing, when it is sound."""
        return complaints(lambda sql: self.fetch(sql, ()), is_thorough=is_thorough)

    def settle_into_one_file(self) -> None:
        """Move everything out of the write-ahead log, so that the file alone is the database."""
        self._cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._cursor.execute("PRAGMA journal_mode = DELETE")

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def complaints(ask: Callable[[str], list[Row]], *, is_thorough: bool) -> list[str]:
    """Return what the engine finds wrong with the file that `ask` asks: nothing, when it is sound."""
    found = [str(row[0]) for row in ask(f"PRAGMA {'integrity_check' if is_thorough else 'quick_check'}(20)")]
    return [] if found == ["ok"] else found


def damaged(path: str, what: str) -> Damaged:
    """Return the error for a file that is no longer sound."""
    return Damaged(
        f"the database {path!r} is damaged ({what}); nothing was changed. Stop Hermes, then "
        f"`hermes db restore FILE` puts a backup in its place and keeps the damaged file beside it"
    )


def _understand(error: Exception, path: str) -> Failure | None:
    if not isinstance(error, driver.Error):
        return None
    code = getattr(error, "sqlite_errorcode", None)
    match None if code is None else code & 0xFF:
        case _Code.BUSY | _Code.LOCKED:
            said = Unavailable(f"another process holds the database {path!r}; stop it or try again", retry_after=1.0)
            return Failure(said, may_pass=True)
        case _Code.FULL:
            said = Unavailable(
                f"the disk that holds {path!r} is full and nothing of this was stored; free some space",
                retry_after=30.0,
            )
            return Failure(said, may_pass=False)
        case _Code.INTERRUPT:
            return Failure(Unavailable(f"work on {path!r} was interrupted; try again"), may_pass=False)
        case _Code.READONLY | _Code.IOERR | _Code.CANTOPEN:
            said = Unavailable(
                f"the file {path!r} cannot be read or written ({error}); look at the disk and its rights"
            )
            return Failure(said, may_pass=False)
        case _Code.CORRUPT | _Code.NOTADB:
            return Failure(damaged(path, str(error)), may_pass=False)
        case None if isinstance(error, driver.OperationalError):
            # Not the engine's: the driver could not read a text that it had written.
            return Failure(damaged(path, str(error)), may_pass=False)
        case _Code.CONSTRAINT:
            return Failure(Conflict(f"a rule of the database forbids this: {error}"), may_pass=False)
        case _:
            return Failure(error, may_pass=False)
