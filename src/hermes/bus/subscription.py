"""Durable subscriptions: what a handler does with an event commits together with the cursor.

Invariant: each event reaches each handler's transaction exactly once, or ends as a dead job that a person can see and
retry; the cursor never waits for ever.
"""

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from datetime import timedelta
from typing import Literal

import anyio

from hermes.bus.filter import Filter
from hermes.domain.clock import Clock
from hermes.domain.errors import HermesError, LeaseLost, LimitReached, Unavailable
from hermes.domain.event import Event
from hermes.domain.job import Job, JobId, JobState
from hermes.domain.principal import Principal
from hermes.domain.protocols import Doorbell, Probe, Store, Tx, no_probe
from hermes.domain.records import dataclass
from hermes.store import cursor as cursors
from hermes.store import event as events
from hermes.store import job as jobs
from hermes.store.cursor import Cursor

REDELIVER = "subscription.redeliver"
_PAGE = 200
_POLL_SECONDS = 1.0
_CLOSE_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 30.0
_SYSTEM = Principal.system("deliver events to durable subscribers")
_log = logging.getLogger("hermes.bus")

Handle = Callable[[Tx, Event], None]
"""Called inside the transaction that moves the cursor; it may be run again, so it only reads and writes `tx`."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """Who wants which events. `name` is for ever: it is where the cursor is kept."""

    name: str
    handle: Handle
    filter: Filter = field(default_factory=Filter)
    attempts: int = 5
    start: Literal["beginning", "now"] = "beginning"


class _HandlerFailed(Exception):
    """What a handler raised, kept apart from what the store raises."""


class Subscriber:
    """Runs one subscription in this process, as long as no other process does.

    `is_alone` says that no other can: one file, one server. Then whoever held the lease is dead.
    """

    def __init__(
        self,
        subscription: Subscription,
        store: Store,
        doorbell: Doorbell,
        clock: Clock,
        *,
        lease: timedelta = timedelta(seconds=30),
        is_alone: bool = False,
        probe: Probe = no_probe,
    ) -> None:
        self._subscription = subscription
        self._store = store
        self._doorbell = doorbell
        self._clock = clock
        self._owner = clock.new_id()
        self._lease = lease
        self._lease_micros = int(lease.total_seconds() * 1_000_000)
        self._is_alone = is_alone
        self._cursor: Cursor | None = None
        self._taken_at = 0.0
        self._probe = probe

    async def run(self) -> None:
        """Deliver until cancelled; then let another process go on at once."""
        try:
            with self._doorbell.listen("events") as bell:
                while True:
                    if not await self._try_to_deliver():
                        await bell.wait(_POLL_SECONDS)
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True), contextlib.suppress(Unavailable, LimitReached):
                await self.aclose()

    async def _try_to_deliver(self) -> bool:
        try:
            return await self.deliver()
        except (Unavailable, LimitReached) as error:
            _log.warning("subscription waits for the database", extra={"fields": {"error": str(error)}})
        except LeaseLost:
            _log.info("another process delivers now", extra={"fields": {"name": self._subscription.name}})
        except Exception:  # noqa: BLE001 - a named boundary: this subscription fails, no other does
            _log.exception("a subscription failed", extra={"fields": {"name": self._subscription.name}})
        return False

    async def deliver(self) -> bool:
        """Handle the next page of events; False when there is nothing to do here now."""
        cursor = await self._current()
        if cursor is None:
            return False
        page = await self._store.read(lambda tx: events.after(tx, _SYSTEM, cursor.position, limit=_PAGE))
        if not page:
            return False
        self._cursor = None
        try:
            await self._handle(cursor, page)
            self._cursor = replace(cursor, position=page[-1].position or 0, failures=0)
            self._taken_at = self._clock.monotonic()
        except (Unavailable, LimitReached, LeaseLost):
            raise
        except Exception:  # noqa: BLE001 - a named boundary: one of the page fails; go through them one by one
            await self._one_by_one(cursor, page)
        return True

    async def _current(self) -> Cursor | None:
        """Return our cursor. The lease is prolonged when a third of it has passed, so that waiting costs nothing."""
        if self._cursor is None or self._clock.monotonic() - self._taken_at > self._lease.total_seconds() / 3:
            self._taken_at = self._clock.monotonic()
            self._cursor = await self._take()
        return self._cursor

    async def aclose(self) -> None:
        """Let another process deliver at once instead of after the lease."""
        self._cursor = None
        cursor = await self._take()
        if cursor is not None:
            await self._store.write(lambda tx: cursors.drop(tx, _SYSTEM, cursor))

    async def _take(self) -> Cursor | None:
        name, owner, start = self._subscription.name, self._owner, self._subscription.start

        def work(tx: Tx) -> Cursor | None:
            first = events.last_position(tx, _SYSTEM) if start == "now" else 0
            if self._is_alone:
                cursors.free(tx, _SYSTEM, name, owner)
            return cursors.take(tx, _SYSTEM, name, owner, lease_micros=self._lease_micros, start=first)

        return await self._store.write(work)

    async def _handle(self, cursor: Cursor, page: Sequence[Event]) -> None:
        wanted = [event for event in page if self._subscription.filter.wants(event)]
        last = page[-1].position or cursor.position

        def work(tx: Tx) -> None:
            if cursors.advance(tx, _SYSTEM, cursor, last, lease_micros=self._lease_micros):
                for event in wanted:
                    self._call(tx, event)

        await self._store.write(work)
        self._probe("subscription.handled")

    def _call(self, tx: Tx, event: Event) -> None:
        try:
            self._subscription.handle(tx, event)
        except HermesError as error:
            # It must not be taken for an error of the store or of the lease, which would be tried for ever.
            raise _HandlerFailed(str(error)) from error

    async def _one_by_one(self, cursor: Cursor, page: Sequence[Event]) -> None:
        for event in page:
            try:
                await self._handle(cursor, [event])
            except (Unavailable, LimitReached, LeaseLost):
                raise
            except Exception as error:  # noqa: BLE001 - a named boundary: this subscription fails, no other does
                await self._note_failure(cursor, event, error)
                return
            cursor = Cursor(cursor.name, event.position or 0, 0, cursor.fence)

    async def _note_failure(self, cursor: Cursor, event: Event, error: Exception) -> None:
        failures = cursor.failures + 1
        fields = {"subscription": cursor.name, "event": event.id, "failures": failures, "error": _described(error)}
        if failures >= self._subscription.attempts:
            _log.error("an event could not be handled and became a dead job", extra={"fields": fields})
            await self._bury(cursor, event, error)
            return
        _log.warning("an event could not be handled; it will be tried again", extra={"fields": fields})
        await self._store.write(lambda tx: cursors.note_failure(tx, _SYSTEM, cursor))
        await anyio.sleep(min(_FIRST_PAUSE * 4**failures, _LONGEST_PAUSE) * (0.8 + 0.4 * self._clock.chance()))

    async def _bury(self, cursor: Cursor, event: Event, error: Exception) -> None:
        dead = Job(
            id=JobId(self._clock.new_id()),
            kind=REDELIVER,
            dedupe_key=f"{cursor.name}@{event.id}",
            principal=Principal.system(f"redeliver to {cursor.name}", tenant=event.tenant),
            payload={"subscription": cursor.name, "event": event.id},
            state=JobState.DEAD,
            error=_described(error),
            cause=event.id,
        )

        def work(tx: Tx) -> None:
            if cursors.advance(tx, _SYSTEM, cursor, event.position or 0, lease_micros=self._lease_micros):
                jobs.put(tx, _SYSTEM, dead)

        await self._store.write(work)


def _described(error: Exception) -> str:
    cause = error.__cause__ if isinstance(error, _HandlerFailed) else None
    return f"{type(cause or error).__name__}: {error}"
