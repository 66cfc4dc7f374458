"""A story: the whole App on a store in memory, a clock that the test moves, and the promises checked at the end.

Invariant over every story: each stream is 1, 2, 3 …, each job ended once, no lease is held, and no task and no thread
of it is left.
"""

import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from hermes.app import App, Extras, open_app
from hermes.bus.subscription import Subscriber, Subscription
from hermes.config import load
from hermes.domain.clock import to_micros
from hermes.domain.event import Event
from hermes.domain.job import Job
from hermes.domain.principal import Principal
from hermes.domain.protocols import Tx
from hermes.jobs.kind import JobKind
from hermes.store import event as events
from hermes.testing.clock import NOON, FakeClock

SYSTEM = Principal.system("tell a story")
OWNER = Principal.owner()
PATIENCE = 10.0
_MANY = 100_000


@dataclass
class Story:
    """One telling. `app` is the whole App; nothing happens in it but what the test lets happen."""

    app: App
    clock: FakeClock
    subscribers: tuple[Subscriber, ...]

    async def settle(self) -> None:
        """Do all that is due, and deliver all events, until nothing more happens."""
        with anyio.fail_after(PATIENCE):
            is_more = True
            while is_more:
                is_more = await self.app.worker.step()
                for subscriber in self.subscribers:
                    while await subscriber.deliver():
                        is_more = True

    async def advance(self, seconds: float = 0, **more: float) -> None:
        """Let time pass in one go, then settle."""
        self.clock.advance(seconds, **more)
        await self.settle()

    async def events(self, type_: str | None = None) -> list[Event]:
        """Return every event, or those of one type, in their order."""
        found = await self.app.store.read(lambda tx: events.after(tx, SYSTEM, 0, limit=_MANY))
        return [event for event in found if type_ in {None, event.type}]

    async def jobs(self, kind: str | None = None) -> list[Job]:
        """Return every job, or those of one kind, in the order they were put."""
        return (await self.app.queue.find(SYSTEM, kind=kind, limit=_MANY))[::-1]

    async def check(self) -> None:
        """Assert what holds over every story."""
        now, running, open_attempts = await self.app.store.read(_loose_ends)
        told = await self.events()
        numbers: dict[tuple[str, str], list[int | None]] = {}
        for event in told:
            numbers.setdefault((event.tenant, event.stream), []).append(event.seq)
        for stream, found in numbers.items():
            assert found == list(range(1, len(found) + 1)), f"the stream {stream} has a gap or no order: {found}"
        ends = Counter((event.subject, event.type) for event in told if event.stream == "jobs")
        for job in await self.jobs():
            assert job.state.is_over or (job.run_at and to_micros(job.run_at) > now), (
                f"a job is due and not done: {job}"
            )
            if job.state.is_over and job.attempt:
                assert ends[job.id, f"job.{job.state}"] >= 1, f"nobody heard of the end of {job}"
                assert ends[job.id, "job.done"] <= 1, f"a job was done more than once: {job}"
        assert not running, f"leases are held: {running}"
        assert not open_attempts, f"attempts have no end: {open_attempts}"


def _loose_ends(tx: Tx) -> tuple[int, list[object], list[object]]:
    running = tx.all("SELECT id FROM jobs WHERE state = 'running' OR lease_until IS NOT NULL OR owner IS NOT NULL")
    return tx.now(), list(running), list(tx.all("SELECT job, fence FROM attempts WHERE ended_at IS NULL"))


@asynccontextmanager
async def story(
    home: Path,
    *,
    kinds: Iterable[JobKind] = (),
    subscriptions: Iterable[Subscription] = (),
    clock: FakeClock | None = None,
) -> AsyncIterator[Story]:
    """Open an App for a story, settle and check it at the end, and close it. `home` is an empty folder."""
    clock = clock or FakeClock(NOON)
    extras = Extras(tuple(kinds), tuple(subscriptions))
    settings = load(home=home, flags={"database.url": "memory://"}, environ={})
    tasks, threads = set(anyio.get_running_tasks()), set(threading.enumerate())
    async with open_app(settings, clock=clock, extras=extras) as app:
        subscribers = tuple(
            Subscriber(one, app.store, app.doorbell, clock, is_alone=True) for one in extras.subscriptions
        )
        clock.on_advance = lambda: app.doorbell.ring({"events", "jobs", "cancel"})
        telling = Story(app, clock, subscribers)
        yield telling
        await telling.settle()
        await telling.check()
    left = [task for task in anyio.get_running_tasks() if task not in tasks]
    assert not left, f"tasks are alive after the story: {left}"
    alive = [one.name for one in threading.enumerate() if one not in threads and one.name.startswith("hermes")]
    assert not alive, f"threads are alive after the story: {alive}"
