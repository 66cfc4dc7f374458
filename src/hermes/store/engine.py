"""What the writer and the readers need from a database, and the one transaction type that work sees.

Everything the two engines do differently is behind `Connection`; SQL texts are the same for both.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, Protocol

from hermes.domain.clock import Micros
from hermes.domain.protocols import Params, Row


class Failure(NamedTuple):
    """What a driver's exception means for the transaction it happened in."""

    error: Exception
    """What the caller is told."""
    may_pass: bool
    """Whether running the same work again, perhaps on a new connection, may succeed."""


class Connection(Protocol):
    """One connection to the database, used by one thread at a time."""

    dialect: Literal["sqlite", "postgres"]

    def adopt(self) -> None:
        """Prepare a database that was found to be ours for writing; what is not ours is left as it is."""
        ...

    @property
    def raw(self) -> Any:  # noqa: ANN401 - for the parts that speak to the driver: migration and backup
        """The driver's own connection."""
        ...

    def begin(self, *, is_reading: bool) -> None:
        """Open a transaction; a writing one holds whatever the engine needs to commit without upgrade."""
        ...

    def commit(self) -> None:
        """Return when the transaction is as durable as it is configured to be."""
        ...

    def rollback(self) -> None:
        """Leave the transaction if there is one; never raises."""
        ...

    def is_in_transaction(self) -> bool:
        """Whether the transaction still stands after an error inside it."""
        ...

    def savepoint(self) -> None:
        """Mark a place to come back to; one at a time."""
        ...

    def release(self) -> None:
        """Forget the mark and keep what was done."""
        ...

    def back_to_savepoint(self) -> None:
        """Undo what was done since the mark, and forget it."""
        ...

    def execute(self, sql: str, params: Params) -> int:
        """Run one statement and return how many rows it touched."""
        ...

    def insert(self, sql: str, params: Params, counter: str) -> int | None:
        """See `Tx.insert`."""
        ...

    def fetch(self, sql: str, params: Params) -> list[Row]:
        """Run one statement and return its rows."""
        ...

    def stream(self, sql: str) -> Iterator[Row]:
        """Run one statement and give its rows as they come, for results that do not fit into memory."""
        ...

    def set_counters(self) -> None:
        """After rows were put in with their numbers: let the counters go on behind them."""
        ...

    def order(self) -> None:
        """See `Tx.order`."""
        ...

    def now(self) -> Micros:
        """The time of this transaction."""
        ...

    def has_changed(self) -> bool:
        """Whether another process has committed since this was last asked."""
        ...

    def is_broken(self) -> bool:
        """Whether this connection will never work again."""
        ...

    def close(self) -> None:
        """Give the connection back; never raises."""
        ...


class Engine(Protocol):
    """A kind of database, and where it is."""

    @property
    def dialect(self) -> Literal["sqlite", "postgres"]:
        """Which SQL it speaks."""
        ...

    def connect(self, *, is_reading: bool) -> Connection:
        """Open one more connection; raises what `understand` translates."""
        ...

    def understand(self, error: Exception) -> Failure | None:
        """Translate a driver's exception; None for one that is not the driver's."""
        ...


class Transaction:
    """The `Tx` of one piece of work."""

    __slots__ = ("_connection", "_is_ordered", "_now", "dialect", "topics")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._is_ordered = False
        self._now: Micros | None = None
        self.dialect = connection.dialect
        self.topics: set[str] = set()

    def now(self) -> Micros:
        """The store's time, the same throughout the transaction."""
        if self._now is None:
            self._now = self._connection.now()
        return self._now

    def execute(self, sql: str, params: Params = ()) -> int:
        """Run one statement and return how many rows it touched."""
        return self._connection.execute(sql, params)

    def insert(self, sql: str, params: Params, counter: str) -> int | None:
        """Insert one row; return the number its column `counter` was given, or None when it was there already."""
        return self._connection.insert(sql, params, counter)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Return the first row, or None."""
        rows = self._connection.fetch(sql, params)
        return rows[0] if rows else None

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        """Return every row."""
        return self._connection.fetch(sql, params)

    def announce(self, topic: str) -> None:
        """Ring the doorbell for `topic` once the work is committed."""
        self.topics.add(topic)

    def order(self) -> None:
        """Take the place in line that gap-free numbers and lanes need; held until the commit."""
        if not self._is_ordered:
            self._connection.order()
            self._is_ordered = True
