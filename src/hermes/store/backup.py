"""Backups: every row as text, the same for both engines, so that one can be restored into the other.

A gzip of lines: a header with the schema number, for each table its columns and then its rows, and a last line with
the count and the SHA-256 of all before it. Invariants: a backup is one committed state; a restore that does not find
the last line true changes nothing.
"""

import contextlib
import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from hermes.domain.clock import Micros, from_micros
from hermes.domain.errors import Conflict, Misconfigured, NotFound
from hermes.domain.protocols import Probe, Row, no_probe
from hermes.domain.records import dataclass
from hermes.store import evolution
from hermes.store.engine import Connection, Engine
from hermes.store.lock import FileLock, server_lock
from hermes.store.sqlite import SqliteConnection, SqliteEngine, occupy

FORMAT = 1
SUFFIX = ".hermes-backup"
_BUNDLE = 500
_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class Report:
    """What a backup holds, or what a restore has put back."""

    path: Path
    schema: int
    made_at: datetime
    tables: int
    rows: int
    set_aside: Path | None = None
    """Where a restore left the file that was there."""


Progress = Callable[[str, int], None]


def name_for(home: Path, at: Micros, label: str = "") -> Path:
    """Return where a backup made now goes."""
    stamp = from_micros(at).strftime("%Y%m%dT%H%M%S%fZ")
    return home / "backups" / f"{stamp}{'-' + label if label else ''}{SUFFIX}"


def newest(home: Path) -> Path | None:
    """Return the newest backup in the home: names begin with their time."""
    return max((home / "backups").glob(f"*{SUFFIX}"), default=None)


def write(connection: Connection, target: Path, progress: Progress | None = None, *, probe: Probe = no_probe) -> Report:
    """Write one committed state to `target`, whole or not at all. Blocks; others go on working."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A name of its own, for its owner only: others may write a backup to the same target, or have left half of one.
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f"{target.name}.", suffix=".unfinished")
    unfinished = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            connection.begin(is_reading=True)
            report = _write_lines(connection, file, target, progress)
            file.flush()
            os.fsync(file.fileno())
        probe("backup.written")
        unfinished.rename(target)
        _sync_folder(target.parent)
    finally:
        connection.rollback()
        unfinished.unlink(missing_ok=True)
    return report


def _write_lines(connection: Connection, file: BinaryIO, target: Path, progress: Progress | None) -> Report:
    digest = hashlib.sha256()
    rows, tables, schema, at = 0, evolution.tables(connection), evolution.schema_number(connection), connection.now()
    # No time stamp in the gzip header: the same state gives the same bytes.
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as out:

        def put(value: object) -> None:
            line = _encode(value) + b"\n"
            digest.update(line)
            out.write(line)

        put({"format": FORMAT, "schema": schema, "made_at": at})
        for table in tables:
            columns = evolution.columns(connection, table)
            put({"table": table, "columns": columns})
            for row in connection.stream(f"SELECT {', '.join(columns)} FROM {table} ORDER BY 1, 2"):
                put(list(row))
                rows += 1
                if progress is not None and rows % 10_000 == 0:
                    progress(table, rows)
        out.write(_encode({"rows": rows, "sha256": digest.hexdigest()}) + b"\n")
    return Report(target, schema, from_micros(at), len(tables), rows)


def inspect(source: Path) -> Report:
    """Read a backup to its end and return what it holds. Raises Misconfigured when it is not whole."""
    rows = tables = 0
    header: dict[str, Any] = {}
    for value in _lines(source):
        match value:
            case {"format": _}:
                header = value
            case {"table": _}:
                tables += 1
            case list():
                rows += 1
            case _:
                raise _not_whole(source, "there is a line of no known kind")
    return Report(source, header["schema"], from_micros(header["made_at"]), tables, rows)


def _lines(source: Path) -> Iterator[Any]:
    """Give every line but the last, which is checked. Raises at the end when anything is missing or changed."""
    digest = hashlib.sha256()
    rows, last = 0, None
    try:
        with gzip.open(source, "rb") as file:
            for number, line in enumerate(file):
                value = msgspec.json.decode(line)
                if number == 0:
                    _check_header(source, value)
                if isinstance(value, dict) and "sha256" in value:
                    last = value
                    break
                digest.update(line)
                rows += isinstance(value, list)
                yield value
    except FileNotFoundError as error:
        raise NotFound(f"there is no backup {str(source)!r}; `hermes db backup` makes one") from error
    except (OSError, EOFError, zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _not_whole(source, str(error)) from error
    if last != {"rows": rows, "sha256": digest.hexdigest()}:
        raise _not_whole(source, "its end does not agree with the rest")


def _check_header(source: Path, header: object) -> None:
    match header:
        case {"format": int(number), "schema": int(schema), "made_at": int()}:
            if number > FORMAT:
                raise Misconfigured(
                    f"the backup {str(source)!r} has format {number}; use the newer Hermes that made it"
                )
            if schema > evolution.SCHEMA:
                raise evolution.from_the_future(schema)
        case _:
            raise _not_whole(source, "it does not begin like a backup")


def _not_whole(source: Path, why: str) -> Misconfigured:
    return Misconfigured(f"{str(source)!r} is no whole backup ({why}); nothing was changed, try another one")


def restore(engine: Engine, source: Path, path: Path | None, now: datetime, *, probe: Probe = no_probe) -> Report:
    """Put a backup in the place of what is there. Blocks; refuses while any process has it open.

    A file is set aside, never overwritten; a server's tables must be empty.
    """
    report = inspect(source)
    if isinstance(engine, SqliteEngine):
        if path is None:
            raise Misconfigured("an in-memory database cannot be restored; name a file in DATABASE_URL")
        return _restore_file(engine, path, now, report, probe)
    with evolution.translated(engine), contextlib.closing(engine.connect(is_reading=False)) as connection:
        if evolution.schema_number(connection) and _has_rows(connection):
            raise Conflict("the database is not empty; restore into an empty one, by another DATABASE_URL")
        _fill(connection, source, report.schema)
    return report


def _restore_file(engine: SqliteEngine, path: Path, now: datetime, report: Report, probe: Probe) -> Report:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    server = FileLock(server_lock(path), "works on")
    server.acquire(now)
    try:
        users = occupy(path, now, is_alone=True)
        try:
            return replace(report, set_aside=_exchange(engine, path, now, report, probe))
        finally:
            users.release()
    finally:
        server.release()


def _exchange(engine: SqliteEngine, path: Path, now: datetime, report: Report, probe: Probe) -> Path | None:
    """Build the new file beside the old one, then exchange them; return where the old one is now.

    Between two renames there is no file. A crash there is known by the unfinished one: see `evolution.open_current`.
    """
    fresh = evolution.unfinished_restore(path)
    new = SqliteEngine(str(fresh), engine.clock, "full", engine.busy_seconds)
    _remove(fresh)
    try:
        # SQLite would make it for everybody to read; its write-ahead log gets the same rights.
        fresh.touch(mode=0o600, exist_ok=False)
        with evolution.translated(new), contextlib.closing(SqliteConnection(new, is_reading=False)) as connection:
            _fill(connection, report.path, report.schema)
            connection.settle_into_one_file()
    except BaseException:
        _remove(fresh)
        raise
    probe("restore.filled")
    aside = _set_aside(path, now)
    probe("restore.set_aside")
    fresh.rename(path)
    probe("restore.placed")
    _sync_folder(path.parent)
    return aside


def _set_aside(path: Path, now: datetime) -> Path | None:
    """Move a database out of the way, its write-ahead log with it.

    The file goes first: nobody opens it without its log, and a log without its file is not left for a new one.
    """
    aside = path.with_name(f"{path.name}.before-restore-{now:%Y%m%dT%H%M%S%fZ}")
    there = [(old, new) for old, new in zip(_files_of(path), _files_of(aside), strict=True) if old.exists()]
    for old, new in there:
        old.rename(new)
    return aside if there else None


def _remove(path: Path) -> None:
    for leftover in _files_of(path):
        leftover.unlink(missing_ok=True)


def _files_of(path: Path) -> list[Path]:
    return [path.with_name(path.name + ending) for ending in ("", "-wal", "-shm")]


def _fill(connection: Connection, source: Path, schema: int) -> None:
    """Make the schema of the backup, put its rows in, and bring both to the present."""
    evolution.migrate(connection, probe=no_probe, target=schema)
    connection.begin(is_reading=False)
    try:
        for insert, rows in _bundles(source):
            for row in rows:
                connection.execute(insert, row)
        connection.set_counters()
        connection.commit()
    finally:
        connection.rollback()
    evolution.migrate(connection, probe=no_probe)


def _bundles(source: Path) -> Iterator[tuple[str, list[Row]]]:
    insert, rows = "", []
    for value in _lines(source):
        if isinstance(value, list):
            rows.append(tuple(value))
        if rows and (not isinstance(value, list) or len(rows) >= _BUNDLE):
            yield insert, rows
            rows = []
        if isinstance(value, dict) and "table" in value:
            columns = value["columns"]
            if not all(name.isidentifier() for name in (value["table"], *columns)):
                raise _not_whole(source, f"{value['table']!r} is no table")
            insert = f"INSERT INTO {value['table']} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    if rows:
        yield insert, rows


def _has_rows(connection: Connection) -> bool:
    return any(connection.fetch(f"SELECT 1 FROM {table} LIMIT 1", ()) for table in evolution.tables(connection))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
