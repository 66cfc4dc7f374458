"""The one writer of a process: what is waiting runs in one transaction and is committed once.

Invariant: a caller hears of success only after the commit, and of failure only when nothing of its work was stored
(or, after a lost answer, when running it again has said so).
"""

import contextlib
import queue
import threading
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from hermes.domain.errors import Unavailable
from hermes.domain.protocols import Probe, Tx
from hermes.store.engine import Connection, Engine, Failure, Transaction

BATCH = 256
IDLE_SECONDS = 0.2
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0

Changed = Callable[[Collection[str]], None]
EVERYTHING: frozenset[str] = frozenset({"events", "jobs", "cancel"})


class Piece(NamedTuple):
    """One caller's work, and where its answer goes."""

    work: Callable[[Tx], Any]
    answer: "Future[Any]"
    give_up_at: float
    is_reading: bool = False


class _Outcome(NamedTuple):
    piece: Piece
    value: Any
    error: Exception | None


class _Torn(Exception):
    """The whole transaction is gone, and perhaps the connection with it.

    `is_unknown` says that it may stand all the same: the connection went while it was committed.
    """

    def __init__(self, failure: Failure, *, is_unknown: bool = False) -> None:
        super().__init__(failure)
        self.failure = failure
        self.is_unknown = is_unknown


class Writer:
    """Owns the writing connection and its thread. `changed` is called on the event loop with the topics to ring."""

    def __init__(
        self, engine: Engine, connection: Connection, *, loop: AbstractEventLoop, changed: Changed, probe: Probe
    ) -> None:
        self._engine = engine
        self._connection: Connection | None = connection
        self._loop = loop
        self._changed = changed
        self._probe = probe
        self._of_this_turn: list[Piece] = []
        self._waiting: queue.SimpleQueue[Piece | None] = queue.SimpleQueue()
        self._kept_back: Piece | None = None
        self._looked_at = 0.0
        self._thread = threading.Thread(target=self._run, name="hermes-writer", daemon=True)

    def start(self) -> None:
        """Begin to take work."""
        self._thread.start()

    def put(self, piece: Piece) -> None:
        """Take one piece; callable from the loop only. All of one turn of the loop go over together, as one batch."""
        self._of_this_turn.append(piece)
        if len(self._of_this_turn) == 1:
            self._loop.call_soon(self._hand_over)

    def waiting(self) -> int:
        """How many pieces are in line."""
        return self._waiting.qsize() + len(self._of_this_turn)

    def _hand_over(self) -> None:
        pieces, self._of_this_turn = self._of_this_turn, []
        for piece in pieces:
            self._waiting.put(piece)

    def finish(self) -> None:
        """Take nothing more: do what is in line, then end."""
        self._hand_over()
        self._waiting.put(None)

    def join(self, seconds: float) -> bool:
        """Wait for the end; blocks, and returns False when `seconds` were not enough."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        # What was there before we came is no news.
        self._look_around(is_first=True)
        is_open = True
        while is_open:
            batch = self._collect()
            if batch and batch[-1] is None:
                is_open = False
            pieces = [piece for piece in batch if piece is not None]
            if pieces:
                self._serve(pieces)
            if time.monotonic() - self._looked_at >= IDLE_SECONDS:
                self._look_around()
        if self._connection is not None:
            self._connection.close()

    def _collect(self) -> list[Piece | None]:
        """Take what is in line; a reading piece (only an in-memory database has them here) goes alone."""
        batch: list[Piece | None] = [self._kept_back] if self._kept_back else self._first()
        self._kept_back = None
        while batch and batch[-1] is not None and not batch[-1].is_reading and len(batch) < BATCH:
            try:
                piece = self._waiting.get_nowait()
            except queue.Empty:
                break
            if piece is not None and piece.is_reading:
                self._kept_back = piece
                break
            batch.append(piece)
        return batch

    def _first(self) -> list[Piece | None]:
        try:
            return [self._waiting.get(timeout=IDLE_SECONDS)]
        except queue.Empty:
            return []

    def _look_around(self, *, is_first: bool = False) -> None:
        """Notice what other processes have written."""
        self._looked_at = time.monotonic()
        try:
            if self._connection is not None and self._connection.has_changed() and not is_first:
                self._tell(lambda: self._changed(EVERYTHING))
        except Exception:  # noqa: BLE001 - a boundary: whatever it is, the next piece will meet it and report it
            self._drop_if_broken()

    def _serve(self, batch: Sequence[Piece], *, is_unknown: bool = False) -> None:
        batch = self._in_time(batch, Unavailable("the database was busy for too long; nothing of this was stored"))
        if not batch:
            return
        try:
            outcomes, topics = self._attempt(batch)
        except _Torn as torn:
            self._serve_singly(batch, torn.failure, is_unknown=is_unknown or torn.is_unknown)
            return
        self._report(outcomes, topics)

    def _serve_singly(self, batch: Sequence[Piece], failure: Failure, *, is_unknown: bool) -> None:
        """One of many took the whole transaction down: run each for itself, so that the others survive."""
        if len(batch) == 1:
            self._persist(batch[0], failure, is_unknown=is_unknown)
            return
        for piece in batch:
            # Those who waited too long behind the others hear why; whether the lost transaction stood is unknown.
            if self._in_time([piece], _doubted(failure.error, is_unknown=is_unknown)):
                self._serve([piece], is_unknown=is_unknown)

    def _in_time(self, batch: Sequence[Piece], error: Exception) -> Sequence[Piece]:
        """Return those whose callers still wait; nothing is stored for one who has given up."""
        now = time.monotonic()
        late = [piece for piece in batch if piece.give_up_at <= now]
        if not late:
            return batch
        self._report([_Outcome(piece, None, error) for piece in late], ())
        return [piece for piece in batch if piece.give_up_at > now]

    def _persist(self, piece: Piece, failure: Failure, *, is_unknown: bool) -> None:
        """Try one piece again for as long as that may help and its caller waits."""
        pause = _FIRST_PAUSE
        while failure.may_pass and time.monotonic() + pause < piece.give_up_at:
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
            try:
                outcomes, topics = self._attempt([piece])
            except _Torn as torn:
                failure, is_unknown = torn.failure, is_unknown or torn.is_unknown
                continue
            self._report(outcomes, topics)
            return
        self._report([_Outcome(piece, None, _doubted(failure.error, is_unknown=is_unknown))], ())

    def _attempt(self, batch: Sequence[Piece]) -> tuple[list[_Outcome], set[str]]:
        """Run a batch in one transaction and commit it; raises _Torn when nothing of it stands."""
        topics: set[str] = set()
        is_committing = False
        try:
            connection = self._connected()
            connection.begin(is_reading=batch[-1].is_reading)
            self._probe("writer.begun")
            if len(batch) == 1:
                outcomes = [self._run_alone(connection, batch[0], topics)]
            else:
                outcomes = [self._run_among_others(connection, piece, topics) for piece in batch]
            self._probe("writer.worked")
            is_committing = True
            connection.commit()
            self._probe("writer.committed")
        except _Torn:
            self._abandon()
            raise
        except Exception as error:
            failure = self._understand(error)
            is_unknown = is_committing and connection.is_broken()
            self._abandon()
            raise _Torn(failure, is_unknown=is_unknown) from error
        return outcomes, topics

    def _run_alone(self, connection: Connection, piece: Piece, topics: set[str]) -> _Outcome:
        tx = Transaction(connection)
        try:
            value = piece.work(tx)
        except Exception as error:
            raise _Torn(self._understand(error)) from error
        except BaseException as error:  # A SystemExit, say: it would end this thread, and with it all writing.
            said = RuntimeError(f"work for the database may not end the program, but it raised {error!r}")
            raise _Torn(Failure(said, may_pass=False)) from error
        topics |= tx.topics
        return _Outcome(piece, value, None)

    def _run_among_others(self, connection: Connection, piece: Piece, topics: set[str]) -> _Outcome:
        connection.savepoint()
        try:
            outcome = self._run_alone(connection, piece, topics)
        except _Torn as torn:
            if torn.failure.may_pass or not connection.is_in_transaction():
                raise
            connection.back_to_savepoint()
            return _Outcome(piece, None, torn.failure.error)
        connection.release()
        return outcome

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect(is_reading=False)
        return self._connection

    def _abandon(self) -> None:
        """Leave the transaction; a connection that is broken is replaced at the next attempt."""
        if self._connection is not None:
            self._connection.rollback()
            self._drop_if_broken()

    def _drop_if_broken(self) -> None:
        if self._connection is not None and self._connection.is_broken():
            self._connection.close()
            self._connection = None

    def _understand(self, error: Exception) -> Failure:
        return self._engine.understand(error) or Failure(error, may_pass=False)

    def _report(self, outcomes: Sequence[_Outcome], topics: Collection[str]) -> None:
        def on_loop() -> None:
            for outcome in outcomes:
                if outcome.piece.answer.done():
                    continue
                if outcome.error is None:
                    outcome.piece.answer.set_result(outcome.value)
                else:
                    outcome.piece.answer.set_exception(outcome.error)
            if topics:
                self._changed(topics)

        self._tell(on_loop)

    def _tell(self, call: Callable[[], None]) -> None:
        # The loop may have ended while we were at the disk; then nobody is left to be told.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)


def _doubted(error: Exception, *, is_unknown: bool) -> Exception:
    """Say of an error that came when work was done again that the first time may have counted."""
    if not is_unknown:
        return error
    said = Unavailable(f"the answer to a commit was lost, so this may have been done; done again it says: {error}")
    said.__cause__ = error
    return said
