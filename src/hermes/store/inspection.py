"""Looks at a database as it is: nothing is migrated, repaired or made.

For the operator, also when the schema is an older or a newer one, or the file is damaged.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import field

from hermes.domain.clock import Clock
from hermes.domain.records import dataclass
from hermes.store import evolution, sqlite
from hermes.store.database import Place, engine_for
from hermes.store.engine import Connection

_UNFINISHED = "state IN ('queued', 'blocked', 'running')"


@dataclass(frozen=True, slots=True)
class Follower:
    """A durable subscription: up to where it has come, and how many events are still before it."""

    name: str
    position: int
    lag: int
    failures: int


@dataclass(frozen=True, slots=True)
class State:
    """What a database holds. Of a schema that is not the present one only the rows of its tables are known."""

    schema: int
    size: int
    rows: Mapping[str, int]
    followers: tuple[Follower, ...] = ()
    waiting: Mapping[str, int] = field(default_factory=dict)
    """How many unfinished jobs there are of each kind."""
    dead: int = 0

    @property
    def is_current(self) -> bool:
        """Whether this Hermes can work with it as it is."""
        return self.schema == evolution.SCHEMA


@contextlib.contextmanager
def connected(place: Place, clock: Clock) -> Iterator[Connection]:
    """Give a connection that only reads, with the driver's errors translated. A file must be there.

    Raises Damaged, Unavailable, or Misconfigured for a server that does not let us in.
    """
    engine = engine_for(place, clock)
    with evolution.translated(engine), contextlib.closing(engine.connect(is_reading=True)) as connection:
        yield connection


@contextlib.contextmanager
def opened(place: Place, clock: Clock) -> Iterator[Connection]:
    """Give a connection on one snapshot."""
    with connected(place, clock) as connection:
        connection.begin(is_reading=True)
        yield connection


def version(place: Place, clock: Clock) -> str:
    """Return the name and version of the engine."""
    if not place.is_server:
        return f"SQLite {'.'.join(map(str, sqlite.version()))}"
    with opened(place, clock) as connection:
        return f"PostgreSQL {connection.fetch('SHOW server_version', ())[0][0]}"


def look(place: Place, clock: Clock) -> State:
    """Return what the database holds."""
    with opened(place, clock) as connection:
        schema = evolution.schema_number(connection)
        rows = {name: _number(connection, f"SELECT count(*) FROM {name}") for name in evolution.tables(connection)}
        state = State(schema, _size(connection), rows)
        if not state.is_current:
            return state
        waiting = connection.fetch(f"SELECT kind, count(*) FROM jobs WHERE {_UNFINISHED} GROUP BY kind", ())
        return State(
            schema,
            state.size,
            rows,
            tuple(_followers(connection)),
            {row[0]: row[1] for row in waiting},
            _number(connection, "SELECT count(*) FROM jobs WHERE state = 'dead'"),
        )


def check_file(place: Place, clock: Clock, *, is_thorough: bool) -> list[str]:
    """Return what is wrong with a file; a server looks after itself."""
    with opened(place, clock) as connection:
        return connection.check(is_thorough=is_thorough) if isinstance(connection, sqlite.SqliteConnection) else []


def check_rows(place: Place, clock: Clock) -> list[str]:
    """Return every promise of the tables that does not hold. The schema must be the present one."""
    with opened(place, clock) as connection:
        return [*_gaps(connection), *_crowded_lanes(connection), *_without_lease(connection)]


def _gaps(connection: Connection) -> Iterator[str]:
    streams = connection.fetch(
        "SELECT e.tenant, e.stream, count(*), min(e.seq), max(e.seq), max(s.seq) FROM events e "
        "LEFT JOIN streams s ON s.tenant = e.tenant AND s.name = e.stream GROUP BY e.tenant, e.stream "
        "ORDER BY e.tenant, e.stream",
        (),
    )
    for tenant, name, count, first, last, forgotten in streams:
        where = f"the stream {name!r} of {tenant!r}"
        missing = last - first + 1 - count
        if missing:
            yield f"{where} lacks {missing} of the events between its numbers {first} and {last}"
        if first != (forgotten or 0) + 1:
            yield f"{where} begins with the number {first}, but was forgotten up to {forgotten or 0}"


def _crowded_lanes(connection: Connection) -> Iterator[str]:
    lanes = connection.fetch(
        "SELECT tenant, lane, count(*) FROM jobs WHERE state = 'running' AND lane IS NOT NULL "
        "GROUP BY tenant, lane HAVING count(*) > 1 ORDER BY tenant, lane",
        (),
    )
    for tenant, lane, count in lanes:
        yield f"{count} jobs of the lane {lane!r} of {tenant!r} run at once"


def _without_lease(connection: Connection) -> Iterator[str]:
    jobs = connection.fetch("SELECT id FROM jobs WHERE state = 'running' AND lease_until IS NULL ORDER BY number", ())
    for (job_id,) in jobs:
        yield f"the job {job_id!r} runs without a lease, so nobody will take it over"


def _followers(connection: Connection) -> Iterator[Follower]:
    found = connection.fetch(
        "SELECT name, position, (SELECT count(*) FROM events e WHERE e.position > c.position), failures "
        "FROM cursors c ORDER BY name",
        (),
    )
    for row in found:
        yield Follower(*row)


def _size(connection: Connection) -> int:
    if connection.dialect == "postgres":
        return _number(connection, "SELECT pg_database_size(current_database())")
    pages, length = _number(connection, "PRAGMA page_count"), _number(connection, "PRAGMA page_size")
    return pages * length


def _number(connection: Connection, sql: str) -> int:
    return int(connection.fetch(sql, ())[0][0])
