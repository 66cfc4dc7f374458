"""The seams: what one part may expect of another without knowing it."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from hermes.domain.clock import Micros

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
"""A database row. It is parsed into a noun in the `store` module of that noun and goes no further."""
Params: TypeAlias = Sequence[object]

Probe: TypeAlias = Callable[[str], None]
"""Called with the name of a place at which a crash would hurt most; the crash harness dies there."""


def no_probe(_place: str) -> None:
    """Nothing happens: what production passes."""


class Tx(Protocol):
    """One transaction, as a piece of work sees it. It is used on one thread and never after the work returns."""

    dialect: Literal["sqlite", "postgres"]

    def now(self) -> Micros:
        """The store's time, the same throughout the transaction."""
        ...

    def execute(self, sql: str, params: Params = ()) -> int:
        """Run one statement (parameters are `?`) and return how many rows it touched."""
        ...

    def insert(self, sql: str, params: Params, counter: str) -> int | None:
        """Insert one row; return the number its column `counter` was given, or None when it was there already."""
        ...

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Return the first row, or None."""
        ...

    def all(self, sql: str, params: Params = ()) -> list[Row]:
        """Return every row."""
        ...

    def announce(self, topic: str) -> None:
        """Ring the doorbell for `topic` once the work is committed."""
        ...

    def order(self) -> None:
        """From here to the commit no other writer that asked for order is between us and the disk.

        Whoever gives out numbers that must be gap-free, or lanes that must be free, asks for it first.
        """
        ...


class Store(Protocol):
    """One database. `write` answers only when the work is on disk.

    `work` takes values and gives values. It does no I/O, asks no clock and draws no chance; it may be run again, also
    after a commit whose answer was lost, so everything it inserts has an id or a dedupe key that the caller made.
    Cancelling a waiting caller does not undo its work. Raises Unavailable when the database does not answer in time,
    LimitReached when too many are waiting, and whatever `work` raises; then nothing of that work was stored.
    """

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in a transaction and return its value once it is committed."""
        ...

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run `work` on one consistent snapshot; it cannot write."""
        ...


class Bell(Protocol):
    """One listener of a doorbell; belongs to one task."""

    async def wait(self, seconds: float) -> bool:
        """Return True when it has rung since the last wait, False when `seconds` have passed in silence."""
        ...


class Doorbell(Protocol):
    """Says that something may have changed. It may ring for nothing; a lost ring costs a second, never a fact."""

    def ring(self, topics: Collection[str]) -> None:
        """Wake everybody who listens to one of `topics`; called on the event loop."""
        ...

    def listen(self, topic: str) -> AbstractContextManager[Bell]:
        """Begin to listen; rings from now on are remembered until waited for."""
        ...
