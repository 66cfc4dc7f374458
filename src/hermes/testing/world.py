"""A small world for a test: a store of its own on any engine, a clock that stands still, and what is wired to them."""

import os
import secrets
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from hermes.bus.bus import Bus
from hermes.bus.doorbell import LocalDoorbell
from hermes.domain.event import Event, EventId, Stream
from hermes.domain.principal import LOCAL, Principal, Tenant
from hermes.domain.protocols import Probe, no_probe
from hermes.jobs.kind import JobKind
from hermes.jobs.queue import Queue
from hermes.jobs.worker import Terms, Worker
from hermes.store.database import Database, Place, open_database
from hermes.testing.clock import FakeClock

SYSTEM = Principal.system("test")


@dataclass(frozen=True, slots=True)
class World:
    """What a test needs. Everything shares one store and one clock."""

    place: Place
    store: Database
    clock: FakeClock
    doorbell: LocalDoorbell
    bus: Bus
    queue: Queue

    def event(self, type_: str = "test.happened", *, stream: str = "test", **more: object) -> Event:
        """Make an event with a new id."""
        tenant = more.pop("tenant", LOCAL)
        data = more.pop("data", {})
        made = Event(
            id=EventId(self.clock.new_id()),
            stream=Stream(stream),
            type=type_,
            source="test",
            tenant=Tenant(str(tenant)),
            at=self.clock.now(),
            data=data if isinstance(data, dict) else {},
        )
        return replace(made, **more)  # type: ignore[arg-type] # the test names fields of Event

    def worker(self, *kinds: JobKind, terms: Terms | None = None, probe: Probe = no_probe) -> Worker:
        """Make a worker for these kinds of jobs."""
        named = {kind.name: kind for kind in kinds}
        return Worker(self.store, self.doorbell, self.clock, named, terms=terms, probe=probe)


class MakeWorld(Protocol):
    """A fixture that opens one more world; options are fields of its Place."""

    def __call__(self, **options: object) -> AbstractAsyncContextManager[World]:
        """Open a world of its own."""
        ...


@asynccontextmanager
async def open_world(
    url: str, folder: Path, *, clock: FakeClock | None = None, probe: Probe = no_probe, **options: object
) -> AsyncIterator[World]:
    """Open an empty store: in memory, in a file of `folder`, or in a schema of its own on the server of `url`."""
    clock = clock or FakeClock()
    async with own_place(url, folder) as own:
        place = replace(own, **options)  # type: ignore[arg-type] # the test names fields of Place
        async with open_database(place, clock, probe=probe, is_clock_forced=True) as store:
            doorbell = LocalDoorbell()
            store.on_change(doorbell.ring)
            clock.on_advance = lambda: doorbell.ring({"events", "jobs", "cancel"})
            yield World(place, store, clock, doorbell, Bus(store, doorbell), Queue(store, clock))


@asynccontextmanager
async def own_place(url: str, folder: Path) -> AsyncIterator[Place]:
    """Give a place nobody else uses, by the kind of `url`; what is on a server is removed afterwards."""
    if url.startswith("memory"):
        yield Place(url, seconds=10.0)
    elif url.startswith("sqlite"):
        yield Place(f"sqlite:///{quote(str(folder / 'state.db'))}", home=folder, seconds=10.0)
    else:
        schema = f"test_{os.getpid()}_{secrets.token_hex(4)}"
        _on_server(url, f"CREATE SCHEMA {schema}")
        try:
            yield Place(f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{schema}", folder, seconds=10.0)
        finally:
            _on_server(url, f"DROP SCHEMA {schema} CASCADE")


def _on_server(url: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def tenants(*names: str) -> list[Principal]:
    """Return the owners of some tenants."""
    return [Principal.owner(Tenant(name)) for name in names]
