"""PostgreSQL through psycopg, in worker threads; the database's clock is the one that counts.

Writers that give out numbers stand in one line (an advisory lock taken on demand and held to the commit), so that
positions become visible in their order and no stream has a gap; all other writes run side by side.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, LiteralString, cast

from hermes.domain.clock import Clock, Micros, to_micros
from hermes.domain.errors import Conflict, Misconfigured, Unavailable
from hermes.domain.protocols import Params, Row
from hermes.domain.records import dataclass
from hermes.store.engine import Failure

try:
    import psycopg
except ImportError as error:
    raise Misconfigured(
        "a PostgreSQL URL needs the extra 'postgres'; install it with: pip install 'hermes-os[postgres]'"
    ) from error

LINE = 4_852_077_153
"""The advisory lock of the line; any number does, as long as every Hermes uses the same."""

_STATEMENT_SECONDS = 30
_OPTIONS = (
    f"-c statement_timeout={_STATEMENT_SECONDS}000 -c lock_timeout=15000 -c idle_in_transaction_session_timeout=15000"
)
_DEFAULTS: dict[str, str | int | None] = {
    "connect_timeout": 5,
    "application_name": "hermes",
    # A server that vanished without a word is noticed within half a minute, not after the hours of the kernel.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""Parameters of the connection that DATABASE_URL may overrule."""
_PREPARE_AFTER = 2
_READ_ONLY = "25006"
_CANCELLED = "57014"


@dataclass(frozen=True, slots=True)
class PostgresEngine:
    """A server, by URL. With a `clock` its time is used instead of the database's (tests do that)."""

    url: str
    clock: Clock | None = None
    dialect: Literal["sqlite", "postgres"] = "postgres"

    def connect(self, *, is_reading: bool) -> "PostgresConnection":  # noqa: ARG002 - each transaction says it
        """Open one more connection to the server."""
        return PostgresConnection(self)

    def understand(self, error: Exception) -> Failure | None:
        """Translate an error of the driver into ours, by its SQLSTATE."""
        return _understand(error)


class PostgresConnection:
    """One connection to the engine's server."""

    dialect: Literal["sqlite", "postgres"] = "postgres"

    def __init__(self, engine: PostgresEngine) -> None:
        self._clock = engine.clock
        parameters = {**_DEFAULTS, **psycopg.conninfo.conninfo_to_dict(plain_url(engine.url))}
        parameters["options"] = f"{_OPTIONS} {parameters.get('options') or ''}".strip()
        self._db = psycopg.connect(
            psycopg.conninfo.make_conninfo("", **parameters),
            autocommit=True,
            prepare_threshold=_PREPARE_AFTER,
        )
        self._cursor = self._db.cursor()
        self._last_seen: Row | None = None

    def adopt(self) -> None:
        """Nothing to do: a server knows how it is written to."""

    @property
    def raw(self) -> "psycopg.Connection[Row]":
        """The driver's connection, for migrations."""
        return self._db

    def begin(self, *, is_reading: bool) -> None:
        """Open a transaction; a reading one sees one snapshot."""
        self._cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" if is_reading else "BEGIN")

    def commit(self) -> None:
        """Commit; synchronous_commit is the server's default, which is on."""
        self._cursor.execute("COMMIT")

    def rollback(self) -> None:
        """Leave the transaction if there is one."""
        if self._db.closed or not self.is_in_transaction():
            return
        try:
            self._cursor.execute("ROLLBACK")
        except psycopg.Error:
            self._db.close()

    def is_in_transaction(self) -> bool:
        """Whether a transaction is open, be it a failed one that a savepoint can still save."""
        return self._db.info.transaction_status in {
            psycopg.pq.TransactionStatus.INTRANS,
            psycopg.pq.TransactionStatus.INERROR,
        }

    def savepoint(self) -> None:
        """Mark a place to come back to."""
        self._cursor.execute("SAVEPOINT piece")

    def release(self) -> None:
        """Keep what was done since the mark."""
        self._cursor.execute("RELEASE SAVEPOINT piece")

    def back_to_savepoint(self) -> None:
        """Undo what was done since the mark."""
        self._cursor.execute("ROLLBACK TO SAVEPOINT piece")
        self._cursor.execute("RELEASE SAVEPOINT piece")

    def execute(self, sql: str, params: Params) -> int:
        """Run one statement and return how many rows it touched."""
        return self._cursor.execute(_placeholders(sql), params).rowcount

    def insert(self, sql: str, params: Params, counter: str) -> int | None:
        """Insert one row and return its number, or None when it was there already."""
        row = self._cursor.execute(_placeholders(f"{sql} RETURNING {counter}"), params).fetchone()
        return None if row is None else int(row[0])

    def fetch(self, sql: str, params: Params) -> list[Row]:
        """Run one statement and return its rows."""
        return self._cursor.execute(_placeholders(sql), params).fetchall()

    def stream(self, sql: str) -> Iterator[Row]:
        """Give rows as they come, by a cursor on the server."""
        with self._db.cursor(name="stream") as cursor:
            cursor.itersize = 1000
            yield from cursor.execute(_placeholders(sql))

    def set_counters(self) -> None:
        """Let the sequences go on behind the rows that were put in."""
        for table, column in (("events", "position"), ("jobs", "number")):
            self._cursor.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', '{column}'), "
                f"coalesce((SELECT max({column}) FROM {table}), 0) + 1, false)"
            )

    def order(self) -> None:
        """Stand in line until it is our turn; the place is given up by the commit."""
        self._cursor.execute("SELECT pg_advisory_xact_lock(%s)", (LINE,))

    def now(self) -> Micros:
        """The database's time, or the test's."""
        if self._clock is not None:
            return to_micros(self._clock.now())
        row = self._cursor.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").fetchone()
        return Micros(row[0] if row else 0)

    def has_changed(self) -> bool:
        """Whether an event or a job was written, or one that runs was cancelled, since this was last asked."""
        row = self._cursor.execute(
            "SELECT (SELECT max(position) FROM events), (SELECT max(number) FROM jobs), "
            "(SELECT min(run_at) FROM jobs WHERE state = 'queued'), "
            "(SELECT count(*) FROM jobs WHERE is_cancelling = 1 AND state = 'running')"
        ).fetchone()
        before, self._last_seen = self._last_seen, row
        return before != row

    def is_broken(self) -> bool:
        """Whether the server, or the way to it, has gone."""
        return bool(self._db.closed)

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def plain_url(url: str) -> str:
    """Accept the forms that other tools use: `postgres://`, and `postgresql+asyncpg://` with its driver's name."""
    scheme, separator, rest = url.partition("://")
    return f"postgresql{separator}{rest}" if scheme.partition("+")[0] in {"postgres", "postgresql"} else url


@lru_cache(maxsize=1024)
def _placeholders(sql: str) -> LiteralString:
    """Turn `?` into what psycopg wants. Our SQL has no question mark and no percent sign in any literal."""
    return cast("LiteralString", sql.replace("%", "%%").replace("?", "%s"))  # type: ignore[redundant-cast]


def _not_storable(text: str) -> Misconfigured:
    return Misconfigured(f"PostgreSQL cannot store this value ({text}); nothing was stored, change what is to be")


def _understand(error: Exception) -> Failure | None:
    if not isinstance(error, psycopg.Error):
        return None
    state = error.sqlstate
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    match (state or "")[:2]:
        case "25" if state == _READ_ONLY:
            said = f"PostgreSQL takes no writes here ({text}); is DATABASE_URL the primary?"
            return Failure(Unavailable(said, retry_after=30.0), may_pass=False)
        case "40" | "25":
            return Failure(Unavailable(f"PostgreSQL gave up this transaction ({text}); try again"), may_pass=True)
        case "22":
            return Failure(_not_storable(text), may_pass=False)
        case "23":
            return Failure(Conflict(f"a rule of the database forbids this: {text}"), may_pass=False)
        case "28" | "3D":
            said = f"PostgreSQL does not let us in ({text}); look at user, password and database in DATABASE_URL"
            return Failure(Misconfigured(said), may_pass=False)
        case "53":
            said = f"PostgreSQL is out of room or connections ({text}); nothing of this was stored"
            return Failure(Unavailable(said, retry_after=30.0), may_pass=False)
        case "57" if state == _CANCELLED:
            said = (
                f"PostgreSQL broke this off ({text}): a statement may take {_STATEMENT_SECONDS} s; ask for less at once"
            )
            return Failure(Unavailable(said), may_pass=False)
        case "57" | "55":
            return Failure(Unavailable(f"PostgreSQL stopped this work ({text}); try again"), may_pass=True)
        case "" if isinstance(error, psycopg.DataError):
            # The driver's own: it has not asked the server.
            return Failure(_not_storable(text), may_pass=False)
        case "" | "08":
            is_lost = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
            # The driver gives no SQLSTATE for a connection that was refused, whatever the reason.
            said = (
                f"PostgreSQL does not answer ({text}); is the server running, and are user, password and database "
                "of DATABASE_URL right?"
            )
            return Failure(Unavailable(said, retry_after=5.0) if is_lost else error, may_pass=is_lost)
        case _:
            return Failure(error, may_pass=False)
