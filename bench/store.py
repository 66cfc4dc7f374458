"""Appending through the store, and the same statements by bare sqlite3: a process of its own, prints one JSON line.

    python -m bench.store (ours|bare) (message|row|event) (normal|full) COUNT WRITERS

A message is a row with its full-text index by trigger, a row is a row with one index, an event is what `publish`
stores; the floor of an event is its bare row. 100,000 messages are stored before anything is measured.
"""

import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from hermes.domain.clock import SystemClock
from hermes.domain.event import Event, EventId, Stream
from hermes.domain.principal import LOCAL, Principal
from hermes.domain.protocols import Tx
from hermes.store import event as events
from hermes.store.database import Place, open_database
from hermes.store.sqlite import driver

STORED = 100_000
WORDS = "the quick brown fox jumps over a lazy dog while seven wizards quietly mix potions and read old maps by " * 2
TEXT = " ".join(WORDS.split()[:28])
CLOCK = SystemClock()
SYSTEM = Principal.system("measure")
TEMPLATE = Path(tempfile.gettempdir()) / f"hermes-bench-2-{STORED}.db"
TABLES = """
CREATE TABLE bench_messages (number INTEGER PRIMARY KEY, id TEXT, session TEXT, role TEXT, content TEXT, at INTEGER);
CREATE INDEX bench_messages_session ON bench_messages (session, number);
CREATE VIRTUAL TABLE bench_fts USING fts5 (content, content = 'bench_messages', content_rowid = 'number');
CREATE TRIGGER bench_index AFTER INSERT ON bench_messages BEGIN
  INSERT INTO bench_fts (rowid, content) VALUES (new.number, new.content); END;
CREATE TABLE bench_rows (number INTEGER PRIMARY KEY, id TEXT, session TEXT, role TEXT, content TEXT, at INTEGER);
CREATE INDEX bench_rows_session ON bench_rows (session, number);
"""
MESSAGE = "INSERT INTO bench_messages (id, session, role, content, at) VALUES (?, ?, 'user', ?, ?)"
ROW = "INSERT INTO bench_rows (id, session, role, content, at) VALUES (?, ?, 'user', ?, ?)"
BARE_EVENT = (
    "INSERT INTO events (id, tenant, stream, seq, type, source, at, data) "
    "VALUES (?, 'local', ?, ?, 'message.received', 'bench', ?, ?)"
)


def session(number: int) -> str:
    """A session has a hundred messages, and they come one after the other."""
    return f"session:{number // 100}"


def values(number: int) -> tuple[object, ...]:
    return CLOCK.new_id(), session(number), TEXT, time.time_ns() // 1000


def event(number: int) -> Event:
    return Event(
        id=EventId(CLOCK.new_id()),
        stream=Stream(session(number)),
        type="message.received",
        source="bench",
        tenant=LOCAL,
        at=CLOCK.now(),
        data={"role": "user", "content": TEXT},
    )


def work_for(what: str, number: int) -> Callable[[Tx], object]:
    """What one append does through the store."""
    if what == "event":
        made = event(number)
        return lambda tx: events.append(tx, SYSTEM, made)
    row, sql = values(number), MESSAGE if what == "message" else ROW
    return lambda tx: tx.execute(sql, row)


def statement_for(what: str, number: int) -> tuple[str, tuple[object, ...]]:
    """What one append does without the store."""
    if what == "event":
        data = json.dumps({"role": "user", "content": TEXT})
        return BARE_EVENT, (CLOCK.new_id(), session(number), number, time.time_ns() // 1000, data)
    return MESSAGE if what == "message" else ROW, values(number)


class Stopwatch:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), self._used()
        self.slowest = 0.0

    @staticmethod
    def _used() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    def stop(self, count: int) -> dict[str, float]:
        wall, cpu = time.perf_counter() - self._wall, self._used() - self._cpu
        return {"per_second": count / wall, "cpu_us": cpu / count * 1e6, "slowest_ms": self.slowest * 1000}


async def prepare() -> None:
    """Make the file with 100,000 messages once; each measurement works on a copy."""
    if TEMPLATE.exists():
        return
    unfinished = TEMPLATE.with_suffix(".unfinished")
    unfinished.unlink(missing_ok=True)
    async with open_database(Place(f"sqlite:///{unfinished}", synchronous="normal"), CLOCK):
        pass
    db = driver.connect(str(unfinished))
    db.executescript(TABLES)
    db.executemany(MESSAGE, (values(number) for number in range(STORED)))
    db.execute("INSERT INTO bench_fts (bench_fts) VALUES ('optimize')")
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    unfinished.rename(TEMPLATE)


async def ours(what: str, place: Place, count: int, writers: int) -> dict[str, float]:
    """Each writer waits for each of its commits."""
    async with open_database(place, CLOCK) as store:
        await store.write(work_for(what, STORED))
        watch = Stopwatch()

        async def writer(number: int) -> None:
            for index in range(count // writers):
                begun = time.perf_counter()
                await store.write(work_for(what, STORED + number * 10_000 + index))
                watch.slowest = max(watch.slowest, time.perf_counter() - begun)

        async with anyio.create_task_group() as group:
            for number in range(writers):
                group.start_soon(writer, number)
        return watch.stop(count // writers * writers)


def bare(what: str, path: Path, synchronous: str, count: int) -> dict[str, float]:
    """The floor: one statement and one commit a row, with the same durability."""
    db = driver.connect(str(path), isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    watch = Stopwatch()
    for number in range(STORED, STORED + count):
        begun = time.perf_counter()
        sql, row = statement_for(what, number)
        db.execute("BEGIN IMMEDIATE")
        db.execute(sql, row)
        db.execute("COMMIT")
        watch.slowest = max(watch.slowest, time.perf_counter() - begun)
    found = watch.stop(count)
    db.close()
    return found


def main(who: str, what: str, synchronous: str, count: int, writers: int) -> None:
    anyio.run(prepare)
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder:
        path = Path(folder) / "state.db"
        shutil.copy(TEMPLATE, path)
        if who == "bare":
            found = bare(what, path, synchronous, count)
        else:
            place = Place(f"sqlite:///{path}", synchronous="full" if synchronous == "full" else "normal")
            run: Any = anyio.run
            found = run(ours, what, place, count, writers)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
