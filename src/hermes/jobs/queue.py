"""The queue as others use it: put a job, look at it, cancel it, retry it; keep schedules."""

from dataclasses import field
from datetime import datetime

from hermes.domain.clock import Clock, from_micros, to_micros
from hermes.domain.errors import Conflict, Denied, NotFound
from hermes.domain.event import Data
from hermes.domain.job import Attempt, Job, JobId, JobState
from hermes.domain.principal import Principal
from hermes.domain.protocols import Store, Tx
from hermes.domain.records import dataclass
from hermes.domain.schedule import Missed, Schedule, ScheduleId
from hermes.jobs import rule as rules
from hermes.jobs.ending import ended
from hermes.store import event as events
from hermes.store import job as jobs
from hermes.store import schedule as schedules

RESERVED = "hermes-"
"""How the names of Hermes's own schedules begin."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to do, and when. Everything but the kind may be left out."""

    kind: str
    payload: Data = field(default_factory=dict)
    dedupe_key: str | None = None
    lane: str | None = None
    priority: int = 0
    run_at: datetime | None = None
    deadline: datetime | None = None
    cause: str | None = None


class Queue:
    """The one queue, for whoever wants something done.

    Everything raises Denied without the scope `jobs:read` or, where something changes, `jobs:write`.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def job(self, principal: Principal, order: Order) -> Job:
        """Make a job of an order, to be put in a transaction of the caller's."""
        return Job(
            id=JobId(self._clock.new_id()),
            kind=order.kind,
            principal=principal,
            run_at=order.run_at,
            payload=order.payload,
            dedupe_key=order.dedupe_key,
            lane=order.lane,
            priority=order.priority,
            deadline=order.deadline,
            cause=order.cause,
        )

    async def put(self, principal: Principal, order: Order) -> Job:
        """Put a job; the one that is there already when its dedupe key is known."""
        principal.require("jobs:write")
        job = self.job(principal, order)
        return await self._store.write(lambda tx: jobs.put(tx, principal, job))

    async def get(self, principal: Principal, job_id: JobId) -> Job:
        """Return a job. Raises NotFound."""
        principal.require("jobs:read")
        job = await self._store.read(lambda tx: jobs.get(tx, principal, job_id))
        if job is None:
            raise NotFound(f"there is no job {job_id!r}; `hermes jobs list` shows those there are")
        return job

    async def attempts(self, principal: Principal, job_id: JobId) -> list[Attempt]:
        """Return every try at a job."""
        principal.require("jobs:read")
        return await self._store.read(lambda tx: jobs.attempts(tx, principal, job_id))

    async def find(
        self, principal: Principal, *, state: JobState | None = None, kind: str | None = None, limit: int = 50
    ) -> list[Job]:
        """Return jobs, the newest first."""
        principal.require("jobs:read")
        return await self._store.read(lambda tx: jobs.find(tx, principal, state=state, kind=kind, limit=limit))

    async def cancel(self, principal: Principal, job_id: JobId) -> Job:
        """Cancel a job. Raises NotFound, or Conflict when it is over."""
        principal.require("jobs:write")

        def work(tx: Tx) -> Job:
            job = jobs.cancel(tx, principal, job_id)
            if job.state is JobState.CANCELLED:
                system = Principal.system(f"{principal.name} cancelled a job", tenant=job.principal.tenant)
                events.append(tx, system, ended(job, "cancelled", job.error, from_micros(tx.now())))
            return job

        return await self._store.write(work)

    async def retry(self, principal: Principal, job_id: JobId) -> Job:
        """Put a dead or cancelled job back in line. Raises NotFound or Conflict."""
        principal.require("jobs:write")
        return await self._store.write(lambda tx: jobs.retry(tx, principal, job_id))

    async def add_schedule(
        self, principal: Principal, name: str, rule: str, order: Order, *, zone: str = "UTC", missed: Missed = "once"
    ) -> Schedule:
        """Make a schedule. Raises Misconfigured for a rule nobody understands, Conflict for a name that is taken."""
        principal.require("jobs:write")
        if name.startswith(RESERVED) and not principal.is_system:
            raise Denied(f"names that begin with {RESERVED!r} are Hermes's own; choose another than {name!r}")
        stored_rule, first_at = rules.first(rule, zone, self._clock.now())
        schedule = Schedule(
            id=ScheduleId(self._clock.new_id()),
            name=name,
            principal=principal,
            rule=stored_rule,
            zone=zone,
            kind=order.kind,
            payload=order.payload,
            lane=order.lane,
            missed=missed,
            next_at=first_at,
        )
        return await self._store.write(lambda tx: schedules.put(tx, principal, schedule))

    async def find_schedules(self, principal: Principal) -> list[Schedule]:
        """Return every schedule, by name."""
        principal.require("jobs:read")
        return await self._store.read(lambda tx: schedules.find(tx, principal))

    async def pause_schedule(self, principal: Principal, name: str) -> Schedule:
        """Let a schedule rest; what comes due meanwhile is not made up for."""
        return await self._set_paused(principal, name, is_paused=True)

    async def resume_schedule(self, principal: Principal, name: str) -> Schedule:
        """Let a schedule go on with its next time from now; a single moment that has passed is now."""
        return await self._set_paused(principal, name, is_paused=False)

    async def _set_paused(self, principal: Principal, name: str, *, is_paused: bool) -> Schedule:
        principal.require("jobs:write")
        schedule = await self._schedule(principal, name)
        now, next_at = self._clock.now(), schedule.next_at
        if next_at is None and not schedule.is_paused:
            raise Conflict(f"the schedule {name!r} is over; add another one")
        if not is_paused and (next_at is None or next_at <= now):
            next_at = rules.following(schedule.rule, schedule.zone, now) or now
        micros = None if next_at is None else to_micros(next_at)
        return await self._store.write(
            lambda tx: schedules.pause(tx, principal, name, is_paused=is_paused, next_at=micros)
        )

    async def run_schedule(self, principal: Principal, name: str) -> Job:
        """Put the job of a schedule now; its next time stays as it is."""
        principal.require("jobs:write")
        schedule = await self._schedule(principal, name)
        order = Order(schedule.kind, schedule.payload, lane=schedule.lane, cause=schedule.id)
        return await self.put(schedule.principal, order)

    async def remove_schedule(self, principal: Principal, name: str) -> Schedule:
        """Forget a schedule; the jobs it has put stay. Raises NotFound."""
        principal.require("jobs:write")
        return await self._store.write(lambda tx: schedules.remove(tx, principal, name))

    async def _schedule(self, principal: Principal, name: str) -> Schedule:
        found = await self._store.read(lambda tx: schedules.get(tx, principal, name))
        if found is None:
            raise NotFound(f"there is no schedule {name!r}; `hermes cron list` shows those there are")
        return found
