"""Reading, beside the writer: a few threads, each with its own connection that cannot write."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import anyio

from hermes.domain.errors import LimitReached, Unavailable
from hermes.domain.protocols import Tx
from hermes.store.engine import Connection, Engine, Failure, Transaction

T = TypeVar("T")

_PAUSE = 0.05
_GRACE = 1.0


class Readers:
    """A bounded pool of reading threads."""

    def __init__(self, engine: Engine, *, threads: int, seconds: float, limit: int) -> None:
        self._engine = engine
        self._seconds = seconds
        self._limit = limit
        self._waiting = 0
        self._busy: set[int] = set()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="hermes-reader")
        self._mine = threading.local()
        self._open: list[Connection] = []

    async def run(self, work: Callable[[Tx], T], *, is_patient: bool = False) -> T:
        """Run `work` on one snapshot, again on a new connection when the old one turns out to be broken.

        Raises Unavailable when it takes too long (a patient caller waits as long as it takes), LimitReached when too
        many wait.
        """
        if self._waiting >= self._limit:
            raise LimitReached(f"{self._limit} readers wait for the database; try again in a second")
        self._waiting += 1
        try:
            with anyio.fail_after(None if is_patient else self._seconds + _GRACE):
                return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, work)
        except TimeoutError as error:
            said = f"the database did not answer a question within {self._seconds:g} s; try again"
            raise Unavailable(said, retry_after=5.0) from error
        finally:
            self._waiting -= 1

    def stop(self, seconds: float) -> None:
        """End the threads and close their connections; blocks until running work is through, but not for ever."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        give_up_at = time.monotonic() + seconds
        while self._busy and time.monotonic() < give_up_at:
            time.sleep(_PAUSE / 10)
        if not self._busy:
            for connection in self._open:
                connection.close()

    def _read(self, work: Callable[[Tx], T]) -> T:
        self._busy.add(threading.get_ident())
        try:
            return self._persist(work)
        finally:
            self._busy.discard(threading.get_ident())

    def _persist(self, work: Callable[[Tx], T]) -> T:
        give_up_at = time.monotonic() + self._seconds
        while True:
            try:
                return self._attempt(work)
            except Exception as error:
                failure = self._engine.understand(error) or Failure(error, may_pass=False)
                self._abandon()
                if not failure.may_pass or time.monotonic() + _PAUSE > give_up_at:
                    raise failure.error from error
                time.sleep(_PAUSE)

    def _attempt(self, work: Callable[[Tx], T]) -> T:
        connection = self._connected()
        connection.begin(is_reading=True)
        value = work(Transaction(connection))
        connection.commit()
        return value

    def _connected(self) -> Connection:
        connection: Connection | None = getattr(self._mine, "connection", None)
        if connection is None:
            connection = self._mine.connection = self._engine.connect(is_reading=True)
            self._open.append(connection)
        return connection

    def _abandon(self) -> None:
        connection: Connection | None = getattr(self._mine, "connection", None)
        if connection is None:
            return
        connection.rollback()
        if connection.is_broken():
            connection.close()
            self._open.remove(connection)
            self._mine.connection = None
