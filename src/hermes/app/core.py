"""One Hermes in one process: the store, and everything that works on it."""

import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from hermes.bus.bus import Bus
from hermes.bus.doorbell import LocalDoorbell
from hermes.config import Settings
from hermes.domain.clock import Clock, SystemClock
from hermes.domain.errors import Conflict, Misconfigured
from hermes.domain.event import EventId
from hermes.domain.principal import Principal
from hermes.domain.protocols import Probe, no_probe
from hermes.domain.records import dataclass
from hermes.store import event as events
from hermes.store.database import Database, Place, open_database

if TYPE_CHECKING:
    # What works on the store is loaded when it is used: one question to a model needs no worker and no schedules.
    from hermes.accounts.keys import Accounts
    from hermes.bus.subscription import Subscription
    from hermes.domain.tool import Toolset
    from hermes.jobs.kind import Assignment, JobKind, Result
    from hermes.jobs.queue import Queue
    from hermes.jobs.worker import Worker
    from hermes.store.lock import FileLock

HOUSEKEEPING = "hermes-housekeeping"
_SYSTEM = Principal.system("run Hermes")
_log = logging.getLogger("hermes.app")


@dataclass(frozen=True, slots=True)
class Extras:
    """Parts that are not Hermes's own: those of installed distributions, and those a test passes in."""

    kinds: "tuple[JobKind, ...]" = ()
    subscriptions: "tuple[Subscription, ...]" = ()
    toolsets: "tuple[Toolset, ...]" = ()

    @classmethod
    def installed(cls) -> "Extras":
        """Load what distributions offer under `hermes.jobs`, `hermes.subscriptions` and `hermes.toolsets`."""
        from hermes.plugins.registry import Registry

        kinds: Registry[JobKind] = Registry("hermes.jobs", {})
        subscriptions: Registry[Subscription] = Registry("hermes.subscriptions", {})
        toolsets: Registry[Toolset] = Registry("hermes.toolsets", {})
        return cls(
            tuple(kinds.load(name) for name in kinds.names()),
            tuple(subscriptions.load(name) for name in subscriptions.names()),
            tuple(toolsets.load(name) for name in toolsets.names()),
        )


def place_of(settings: Settings) -> Place:
    """Say where the settings put the database."""
    return Place(
        url=settings.database_url.reveal(),
        home=settings.home,
        synchronous=settings.database.synchronous,
        busy_seconds=settings.database.busy_timeout.total_seconds(),
        queue_limit=settings.database.queue_limit,
        readers=settings.database.readers,
    )


@asynccontextmanager
async def open_app(
    settings: Settings, *, clock: Clock | None = None, probe: Probe = no_probe, extras: Extras | None = None
) -> AsyncIterator["App"]:
    """Open the store and wire everything to it; close it when the block is left."""
    clock = clock or SystemClock()
    async with open_database(place_of(settings), clock, probe=probe) as store:
        yield App(settings, store, clock, extras or Extras(), probe)


class App:
    """One Hermes in one process."""

    def __init__(self, settings: Settings, store: Database, clock: Clock, extras: Extras, probe: Probe) -> None:
        self.settings = settings
        self.store = store
        self.clock = clock
        self.doorbell = LocalDoorbell()
        store.on_change(self.doorbell.ring)
        self.bus = Bus(store, self.doorbell)
        self.toolsets = extras.toolsets
        self._extras = extras
        self._subscriptions = {s.name: s for s in extras.subscriptions}
        self._probe = probe

    @cached_property
    def queue(self) -> "Queue":
        """The one queue."""
        from hermes.jobs.queue import Queue

        return Queue(self.store, self.clock)

    @cached_property
    def accounts(self) -> "Accounts":
        """Identities and keys."""
        from hermes.accounts.keys import Accounts

        return Accounts(self.store, self.clock)

    @cached_property
    def kinds(self) -> "dict[str, JobKind]":
        """Every kind of job that can be done here, by name."""
        return _by_name((*self._own_kinds(), *self._extras.kinds))

    @cached_property
    def worker(self) -> "Worker":
        """What does the jobs."""
        from hermes.jobs.worker import Terms, Worker

        terms = Terms(
            slots=self.settings.jobs.workers,
            lease=self.settings.jobs.lease,
            poll=self.settings.jobs.poll,
            is_alone=not self.store.place.is_server,
        )
        return Worker(self.store, self.doorbell, self.clock, self.kinds, terms=terms, probe=self._probe)

    async def serve(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Work until `worker.drain` is called or the task is cancelled; `TaskGroup.start` waits for the beginning.

        Raises Conflict when another server has the database file, Misconfigured when the file is damaged.
        """
        from hermes.bus.subscription import Subscriber

        lock = await anyio.to_thread.run_sync(self._lock)
        try:
            await self._check(after_a_crash=lock is not None and lock.was_left_behind)
            await self._keep_house()
            async with anyio.create_task_group() as group:
                group.start_soon(self.bus.run)
                for subscription in self._subscriptions.values():
                    subscriber = Subscriber(
                        subscription,
                        self.store,
                        self.doorbell,
                        self.clock,
                        lease=self.settings.jobs.lease,
                        is_alone=not self.store.place.is_server,
                        probe=self._probe,
                    )
                    group.start_soon(subscriber.run)
                _log.info("working", extra={"fields": {"database": str(self.settings.database_url)}})
                task_status.started()
                await self.worker.run()
                group.cancel_scope.cancel()
        finally:
            if lock is not None:
                lock.release()

    def _lock(self) -> "FileLock | None":
        from hermes.store.lock import FileLock, server_lock

        path = self.store.place.path
        if path is None:
            return None
        lock = FileLock(server_lock(path), "works on")
        lock.acquire(self.clock.now())
        return lock

    async def _check(self, *, after_a_crash: bool) -> None:
        if after_a_crash:
            _log.warning("the last server did not stop in order; checking the database")
        from hermes.store.sqlite import damaged

        wrong = await self.store.check(is_thorough=False)
        if wrong:
            raise damaged(str(self.store.place.path), wrong[0])

    async def _keep_house(self) -> None:
        from hermes.jobs import chores
        from hermes.jobs.queue import Order

        try:
            await self.queue.add_schedule(_SYSTEM, HOUSEKEEPING, "every 1h", Order(chores.PRUNE), missed="skip")
        except Conflict:
            return

    def _own_kinds(self) -> "Iterable[JobKind]":
        from hermes.bus.subscription import REDELIVER
        from hermes.jobs import chores
        from hermes.jobs.kind import JobKind

        keep = self.settings.events.keep, self.settings.jobs.keep_done
        # By its name, as it works on the App in turn.
        yield import_module("hermes.app.turns").kind(self)
        yield chores.publish()
        yield chores.back_up(self._back_up)
        yield chores.prune(keep_events=keep[0], keep_done=keep[1])
        yield JobKind(REDELIVER, self._redeliver)

    async def _back_up(self) -> str:
        return str((await self.store.backup()).path)

    async def _redeliver(self, assignment: "Assignment") -> "Result":
        """Give an event that ended as a dead job to its subscriber once more. Only Hermes itself orders that."""
        from hermes.jobs.kind import Done, Failed

        job = assignment.job
        if not job.principal.is_system:
            return Failed(f"{job.principal.name!r} may not redeliver events")
        name, event_id = str(job.payload["subscription"]), EventId(str(job.payload["event"]))
        subscription = self._subscriptions.get(name)
        # As the tenant's owner: two tenants may call an event the same.
        reader = Principal.owner(job.principal.tenant)
        event = await self.store.read(lambda tx: events.get(tx, reader, event_id))
        if subscription is None or event is None:
            return Failed(f"the subscription {name!r} or the event {event_id!r} is gone")
        return Done({}, work=lambda tx: subscription.handle(tx, event))


def _by_name(kinds: "Iterable[JobKind]") -> "dict[str, JobKind]":
    named: dict[str, JobKind] = {}
    for kind in kinds:
        if kind.name in named:
            raise Misconfigured(f"two parts offer jobs of the kind {kind.name!r}; uninstall one of them")
        named[kind.name] = kind
    return named
