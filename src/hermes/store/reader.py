"""Reading, beside the writer: a few threads, each with its own connection that cannot write."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from hermes.domain.protocols import Tx
from hermes.store.engine import Connection, Engine, Failure, Transaction

T = TypeVar("T")

_PAUSE = 0.05


class Readers:
    """A bounded pool of reading threads."""

    def __init__(self, engine: Engine, *, threads: int, seconds: float) -> None:
        self._engine = engine
        self._seconds = seconds
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="hermes-reader")
        self._mine = threading.local()
        self._open: list[Connection] = []

    async def run(self, work: Callable[[Tx], T]) -> T:
        """Run `work` on one snapshot, again on a new connection when the old one turns out to be broken."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, work)

    def stop(self) -> None:
        """End the threads and close their connections; blocks until running work is through."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for connection in self._open:
            connection.close()

    def _read(self, work: Callable[[Tx], T]) -> T:
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
