"""Publishing, and the live view of what is published.

Invariant: a durable event is shown only after it is committed, in the order of positions; a feed that cannot keep up
loses the oldest and says how many.
"""

from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import anyio

from hermes.bus.filter import Filter
from hermes.domain.errors import LimitReached, Unavailable
from hermes.domain.event import Event
from hermes.domain.principal import Principal
from hermes.domain.protocols import Doorbell, Store
from hermes.domain.records import dataclass
from hermes.store import event as events
from hermes.store.scope import require_publisher

_SYSTEM = Principal.system("show events to live feeds")
_PAGE = 500
_POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Dropped:
    """So many events are missing here: the reader was too slow."""

    count: int


class Feed:
    """What one live listener gets. Iterate over it; it never ends by itself."""

    def __init__(self, principal: Principal, wanted: Filter, limit: int, since: int) -> None:
        self._principal = principal
        self._since = since
        self._filter = wanted
        self._limit = limit
        self._waiting: deque[Event] = deque()
        self._dropped = 0
        self._arrived = anyio.Event()

    def offer(self, event: Event) -> None:
        """Take an event if it is wanted and allowed; the oldest goes when there is no room."""
        if not self._principal.is_system and event.tenant != self._principal.tenant:
            return
        if event.position is not None and event.position <= self._since:
            return
        if not self._filter.wants(event):
            return
        if len(self._waiting) >= self._limit:
            self._waiting.popleft()
            self._dropped += 1
        self._waiting.append(event)
        self._arrived.set()

    def __aiter__(self) -> "Feed":
        return self

    async def __anext__(self) -> Event | Dropped:
        while not self._waiting:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        if self._dropped:
            said, self._dropped = Dropped(self._dropped), 0
            return said
        return self._waiting.popleft()


class Bus:
    """The one bus of a process."""

    def __init__(self, store: Store, doorbell: Doorbell) -> None:
        self._store = store
        self._doorbell = doorbell
        self._feeds: set[Feed] = set()
        self._shown = 0
        self._joining = anyio.Lock()

    async def publish(self, principal: Principal, *published: Event) -> list[Event]:
        """Store durable events together and return them with their numbers; show live ones to whoever looks now.

        Raises Denied when the principal may not write to a stream; then none of them is stored or shown.
        """
        principal.require("events:write")
        durable = [event for event in published if not event.is_live]
        live = [event for event in published if event.is_live]
        for event in live:
            require_publisher(principal, event)
        stored: Iterator[Event] = iter(())
        if durable:
            stored = iter(await self._store.write(lambda tx: [events.append(tx, principal, e) for e in durable]))
        for event in live:
            self.show(event)
        return [event if event.is_live else next(stored) for event in published]

    def show(self, event: Event) -> None:
        """Show a live event of Hermes's own to whoever looks now; returns at once."""
        for feed in self._feeds:
            feed.offer(event)

    @property
    def is_watched(self) -> bool:
        """Whether anybody looks now."""
        return bool(self._feeds)

    @asynccontextmanager
    async def live(
        self, principal: Principal, wanted: Filter | None = None, *, limit: int = 1000
    ) -> AsyncIterator[Feed]:
        """Listen to what is published from now on. Needs `run` to be running for durable events."""
        principal.require("events:read")
        async with self._joining:
            newest = await self._store.read(lambda tx: events.last_position(tx, _SYSTEM))
            if not self._feeds:
                self._shown = newest
            feed = Feed(principal, wanted or Filter(), limit, newest)
            self._feeds.add(feed)
        try:
            yield feed
        finally:
            self._feeds.discard(feed)

    async def run(self) -> None:
        """Show durable events to the feeds as they are committed, by this process or another; until cancelled."""
        with self._doorbell.listen("events") as bell:
            while True:
                try:
                    is_more = bool(self._feeds) and await self._show_next()
                except (Unavailable, LimitReached):
                    is_more = False
                if not is_more:
                    await bell.wait(_POLL_SECONDS)

    async def _show_next(self) -> bool:
        page: Sequence[Event] = await self._store.read(lambda tx: events.after(tx, _SYSTEM, self._shown, limit=_PAGE))
        for event in page:
            self.show(event)
            self._shown = event.position or self._shown
        return len(page) == _PAGE
