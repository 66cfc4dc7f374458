"""The store: opened once, checked, brought to the present schema, then one writer and a few readers.

Invariant: `write` answers after the commit or not at all.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import anyio

from hermes.domain.clock import Clock
from hermes.domain.errors import LimitReached, Misconfigured, Unavailable, Unsupported
from hermes.domain.protocols import Probe, Tx, no_probe
from hermes.domain.records import dataclass
from hermes.store import backup as backups
from hermes.store import evolution
from hermes.store.engine import Connection, Engine
from hermes.store.lock import FileLock
from hermes.store.reader import Readers
from hermes.store.sqlite import MEMORY, SqliteEngine, Synchronous, complaints, occupy
from hermes.store.writer import Changed, Piece, Writer

T = TypeVar("T")

_STOP_SECONDS = 10.0
_WATCH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where the database is and how it is used."""

    url: str
    """`sqlite:///path`, `memory://` or `postgresql://…`."""
    home: Path | None = None
    """Where backups go; without it none is made before a migration (tests, memory)."""
    synchronous: Synchronous = "full"
    busy_seconds: float = 5.0
    seconds: float = 30.0
    """How long a caller waits for an answer."""
    queue_limit: int = 10_000
    readers: int = 4

    @property
    def is_server(self) -> bool:
        """Whether the database is a server that many processes share."""
        return self.url.startswith("postgres")

    @property
    def path(self) -> Path | None:
        """The file, when there is one."""
        scheme, _, path = self.url.partition(":///")
        return Path(unquote(path)) if scheme == "sqlite" and path not in {"", MEMORY} else None


def engine_for(place: Place, clock: Clock, *, is_clock_forced: bool = False) -> Engine:
    """Return the engine that a URL asks for; `is_clock_forced` makes a server use our time instead of its own."""
    if place.is_server:
        from hermes.store.postgres import PostgresEngine

        return PostgresEngine(place.url, clock if is_clock_forced else None)
    if place.url == "memory://":
        return SqliteEngine(MEMORY, clock, "normal", place.busy_seconds)
    if place.path is None:
        raise Misconfigured(
            f"{place.url.partition(':')[0]!r} is no database Hermes knows; "
            "DATABASE_URL is sqlite:////absolute/path or postgresql://USER@HOST/NAME"
        )
    return SqliteEngine(str(place.path), clock, place.synchronous, place.busy_seconds)


@asynccontextmanager
async def open_database(
    place: Place,
    clock: Clock,
    *,
    probe: Probe = no_probe,
    is_clock_forced: bool = False,
) -> AsyncIterator["Database"]:
    """Open the database, migrating it when it is older than this Hermes; close it when the block is left.

    Raises Misconfigured for a damaged file or a schema from the future, Unavailable when nobody answers.
    """
    engine = engine_for(place, clock, is_clock_forced=is_clock_forced)
    loop = asyncio.get_running_loop()

    def keep(connection: Connection) -> None:
        if place.home is not None:
            label = f"before-schema-{evolution.SCHEMA}"
            backups.write(connection, backups.name_for(place.home, connection.now(), label))

    with anyio.CancelScope(shield=True):
        lock, connection = await loop.run_in_executor(None, _open, place, engine, clock, probe, keep)
    database = Database(place, engine, connection, probe=probe)
    try:
        yield database
    finally:
        with anyio.CancelScope(shield=True):
            await database.aclose()
        if lock is not None:
            lock.release()


def _open(
    place: Place, engine: Engine, clock: Clock, probe: Probe, keep: evolution.Keep
) -> tuple[FileLock | None, Connection]:
    """Have the file, then connect. Blocks."""
    if place.path is None:
        return None, evolution.open_current(engine, None, probe, keep)
    place.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = occupy(place.path, clock.now())
    try:
        return lock, evolution.open_current(engine, place.path, probe, keep)
    except BaseException:
        lock.release()
        raise


class Database:
    """The `Store` of a process; belongs to the event loop it was opened on."""

    def __init__(self, place: Place, engine: Engine, connection: Connection, *, probe: Probe = no_probe) -> None:
        self.place = place
        self.engine = engine
        self.dialect = engine.dialect
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Changed] = []
        self._probe = probe
        self._writer = Writer(engine, connection, loop=self._loop, changed=self._ring, probe=probe)
        is_memory = isinstance(engine, SqliteEngine) and engine.is_memory
        self._readers = (
            None
            if is_memory
            else Readers(engine, threads=place.readers, seconds=place.seconds, limit=place.queue_limit)
        )
        self._unanswered: dict[asyncio.Future[Any], float] = {}
        self._watch: asyncio.TimerHandle | None = None
        self._is_open = True
        self._writer.start()

    def on_change(self, listener: Changed) -> None:
        """Call `listener` on the loop with the topics of each commit, ours or another process's."""
        self._listeners.append(listener)

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in a transaction and return its value once it is committed."""
        return await self._put(work, is_reading=False)

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run `work` on one consistent snapshot; it cannot write."""
        if self._readers is None:
            return await self._put(work, is_reading=True)
        self._require_open()
        return await self._readers.run(work)

    async def check(self, *, is_thorough: bool) -> list[str]:
        """Return what is wrong with the file: nothing when it is sound, nor for a server, which looks after itself."""
        if self.dialect != "sqlite":
            return []

        def look(tx: Tx) -> list[str]:
            return complaints(tx.all, is_thorough=is_thorough)

        # It takes as long as the file is large.
        return await (self.read(look) if self._readers is None else self._readers.run(look, is_patient=True))

    async def backup(self, target: Path | None = None, progress: backups.Progress | None = None) -> backups.Report:
        """Write one committed state to a file, by default one named for the time in the home, while work goes on."""

        def copy() -> backups.Report:
            with evolution.translated(self.engine), closing(self.engine.connect(is_reading=True)) as connection:
                return backups.write(connection, target or self._backup_name(connection), progress, probe=self._probe)

        if self._readers is None:
            raise Unsupported("an in-memory database cannot be backed up; it is gone when the process ends")
        return await self._loop.run_in_executor(None, copy)

    def _backup_name(self, connection: Connection) -> Path:
        if self.place.home is None:
            raise Misconfigured("there is no home to put a backup into; name a file")
        return backups.name_for(self.place.home, connection.now())

    async def aclose(self) -> None:
        """Do what is in line, then close; what does not end in time is left to the operating system."""
        if self._is_open:
            self._is_open = False
            self._writer.finish()
            await self._loop.run_in_executor(None, self._writer.join, _STOP_SECONDS)
            # What the writer has reported at its end arrives in the next turn of the loop.
            await asyncio.sleep(0)
            for answer in [one for one in self._unanswered if not one.done()]:
                answer.set_exception(Unavailable("the store was closed; whether it stored this is unknown"))
            if self._watch is not None:
                self._watch.cancel()
            if self._readers is not None:
                await self._loop.run_in_executor(None, self._readers.stop, _STOP_SECONDS)

    async def _put(self, work: Callable[[Tx], T], *, is_reading: bool) -> T:
        self._require_open()
        if self._writer.waiting() >= self.place.queue_limit:
            raise LimitReached(f"{self.place.queue_limit} pieces of work wait for the database; try again in a second")
        answer: asyncio.Future[Any] = self._loop.create_future()
        give_up_at = time.monotonic() + self.place.seconds
        self._unanswered[answer] = give_up_at
        if self._watch is None:
            self._watch = self._loop.call_later(_WATCH_SECONDS, self._give_up_on_the_late)
        self._writer.put(Piece(work, answer, give_up_at, is_reading))
        try:
            value: T = await answer
        finally:
            del self._unanswered[answer]
        return value

    def _give_up_on_the_late(self) -> None:
        """The writer gives up by itself and knows why; this is for a disk that hangs."""
        now = time.monotonic()
        for answer, give_up_at in self._unanswered.items():
            if now > give_up_at + _WATCH_SECONDS and not answer.done():
                said = f"the database did not answer within {self.place.seconds:g} s; whether it stored this is unknown"
                answer.set_exception(Unavailable(said, retry_after=5.0))
        self._watch = None
        if self._unanswered:
            self._watch = self._loop.call_later(_WATCH_SECONDS, self._give_up_on_the_late)

    def _require_open(self) -> None:
        if not self._is_open:
            raise Unavailable("the store has been closed; open it again to go on", retry_after=0.0)

    def _ring(self, topics: Collection[str]) -> None:
        for listener in self._listeners:
            listener(topics)
