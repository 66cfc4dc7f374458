"""A database whose n-th word fails: an Engine and its Connections around real ones."""

from collections.abc import Callable, Iterator
from typing import Any, Literal

from hermes.domain.clock import Micros
from hermes.domain.protocols import Params, Row
from hermes.store.engine import Connection, Engine, Failure


class Fault:
    """Fires at the n-th word that is counted from `arm` on: raises what `make` returns, before or after the word.

    With `is_tearing` the transaction is rolled back first, as an engine does by itself when the disk is full; with
    `is_cutting` the connection is gone. Words are those of the writing connection.
    """

    def __init__(
        self,
        make: Callable[[], Exception],
        *,
        is_tearing: bool = False,
        is_after: bool = False,
        is_cutting: bool = False,
    ) -> None:
        self._make = make
        self._is_tearing = is_tearing
        self._is_after = is_after
        self._is_cutting = is_cutting
        self._left = -1
        self.only: str | None = None
        self.fired_at: str | None = None

    def arm(self, nth: int) -> None:
        self._left = nth

    def around(self, connection: Connection, name: str, word: Callable[[], object]) -> object:
        fires = self._counts(name)
        if fires and not self._is_after:
            self._fail(connection)
        value = word()
        if fires:
            self._fail(connection)
        return value

    def _counts(self, name: str) -> bool:
        if self._left <= 0 or self.only not in {None, name}:
            return False
        self._left -= 1
        if self._left == 0:
            self.fired_at = name
        return self._left == 0

    def _fail(self, connection: Connection) -> None:
        if self._is_tearing:
            connection.rollback()
        if self._is_cutting:
            connection.close()
        raise self._make()


class FaultyEngine:
    def __init__(self, engine: Engine, fault: Fault) -> None:
        self._engine = engine
        self._fault = fault
        self.dialect: Literal["sqlite", "postgres"] = engine.dialect

    def connect(self, *, is_reading: bool) -> Connection:
        connection = self._engine.connect(is_reading=is_reading)
        return connection if is_reading else FaultyConnection(connection, self._fault)

    def understand(self, error: Exception) -> Failure | None:
        return self._engine.understand(error)


class FaultyConnection:
    """Every word that reaches the database can fail; what only looks at the connection cannot."""

    def __init__(self, connection: Connection, fault: Fault) -> None:
        self._real = connection
        self._fault = fault
        self.dialect: Literal["sqlite", "postgres"] = connection.dialect

    def _word(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 - as many types as words
        word = getattr(self._real, name)
        return self._fault.around(self._real, name, lambda: word(*arguments))

    @property
    def raw(self) -> Any:  # noqa: ANN401 - as in the protocol
        return self._real.raw

    def adopt(self) -> None:
        self._real.adopt()

    def begin(self, *, is_reading: bool) -> None:
        self._fault.around(self._real, "begin", lambda: self._real.begin(is_reading=is_reading))

    def commit(self) -> None:
        self._word("commit")

    def rollback(self) -> None:
        self._real.rollback()

    def is_in_transaction(self) -> bool:
        return self._real.is_in_transaction()

    def savepoint(self) -> None:
        self._word("savepoint")

    def release(self) -> None:
        self._word("release")

    def back_to_savepoint(self) -> None:
        self._word("back_to_savepoint")

    def execute(self, sql: str, params: Params) -> int:
        return int(self._word("execute", sql, params))

    def insert(self, sql: str, params: Params, counter: str) -> int | None:
        number: int | None = self._word("insert", sql, params, counter)
        return number

    def fetch(self, sql: str, params: Params) -> list[Row]:
        rows: list[Row] = self._word("fetch", sql, params)
        return rows

    def stream(self, sql: str) -> Iterator[Row]:
        return self._real.stream(sql)

    def set_counters(self) -> None:
        self._real.set_counters()

    def order(self) -> None:
        self._word("order")

    def now(self) -> Micros:
        return self._real.now()

    def has_changed(self) -> bool:
        return self._real.has_changed()

    def is_broken(self) -> bool:
        return self._real.is_broken()

    def close(self) -> None:
        self._real.close()
