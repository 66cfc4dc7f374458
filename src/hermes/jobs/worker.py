"""Does jobs: claims them under leases, runs their handlers, settles them; puts the jobs of due schedules.

Invariants: what a handler hands over in `Done.work` is stored with the job's end or not at all; a job whose lease was
lost changes nothing; a job that kills its worker uses up its attempts like any other failure.
"""

import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Literal

import anyio
from anyio.abc import TaskGroup

from hermes.domain.clock import Clock, from_micros, to_micros
from hermes.domain.errors import (
    Damaged,
    Denied,
    HermesError,
    LeaseLost,
    LimitReached,
    Misconfigured,
    NotFound,
    Unavailable,
    Unsupported,
)
from hermes.domain.job import Job
from hermes.domain.principal import Principal
from hermes.domain.protocols import Doorbell, Probe, Store, Tx, no_probe
from hermes.domain.records import dataclass
from hermes.jobs import scheduler
from hermes.jobs.ending import ended
from hermes.jobs.kind import Again, Done, Failed, JobKind, Result
from hermes.store import event as events
from hermes.store import job as jobs
from hermes.store.job import Settlement

_SYSTEM = Principal.system("run jobs")
_PERMANENT = (Denied, NotFound, Misconfigured, Unsupported)
_JUMP = timedelta(seconds=5)
_LONGEST_WAIT = timedelta(days=30)
_AGAIN_SECONDS = 1.0
_RELEASE_SECONDS = 5.0
_log = logging.getLogger("hermes.jobs")


@dataclass(frozen=True, slots=True)
class Terms:
    """How a worker works. `is_alone` says that nobody else can hold a lease: one file, one server."""

    slots: int = 8
    lease: timedelta = timedelta(seconds=30)
    poll: timedelta = timedelta(seconds=1)
    drain: timedelta = timedelta(seconds=30)
    is_alone: bool = False


@dataclass(slots=True)
class _Held:
    """A job this worker runs now: `job` for its handler, `scope` to stop it, and why it was stopped.

    `before` is an earlier try of the same job that this worker lost and that has not ended yet.
    """

    job: Job
    store: Store
    clock: Clock
    scope: anyio.CancelScope
    stopped: Literal["cancelled", "lost", "shutdown"] | None = None
    before: "_Held | None" = None
    ended: anyio.Event = field(default_factory=anyio.Event)

    def lose(self) -> None:
        """Stop: somebody else has the job, or a later try of this worker."""
        self.stopped = "lost"
        self.scope.cancel()


_Key = tuple[str, str]
"""A tenant and an id: two tenants may call a job the same."""


def _key(job: Job) -> _Key:
    return job.principal.tenant, job.id


class _WorkFailed(Exception):
    """What the work of a result raised, kept apart from what the store raises."""


class Worker:
    """One worker of a process. `run` until cancelled; `drain` ends it in order."""

    def __init__(
        self,
        store: Store,
        doorbell: Doorbell,
        clock: Clock,
        kinds: Mapping[str, JobKind],
        *,
        terms: Terms | None = None,
        probe: Probe = no_probe,
    ) -> None:
        self._store = store
        self._doorbell = doorbell
        self._clock = clock
        self._kinds = kinds
        self._terms = terms or Terms()
        self._probe = probe
        self.name = f"{socket.gethostname()}:{clock.new_id()[-12:]}"
        self._held: dict[_Key, _Held] = {}
        self._lease_micros = int(self._terms.lease.total_seconds() * 1_000_000)
        self._is_draining = False
        self._offset = self._wall_minus_monotonic()

    async def run(self) -> None:
        """Work until cancelled, or until `drain` was called and the running jobs are through."""
        await self._patiently(self._recover)
        # The clock may have been set right while nobody worked.
        await self._patiently(self._settle_clock)
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep_leases)
            await self._work(group)
            await self._wait_for_running()
            group.cancel_scope.cancel()

    def drain(self) -> None:
        """Take no more jobs; let the running ones end."""
        self._is_draining = True
        self._doorbell.ring({"jobs"})

    async def step(self) -> bool:
        """Do everything that is due and wait for it; True when there was something. For stories and tests."""
        done: list[bool] = []
        async with anyio.create_task_group() as group:
            done.append(await self._keep_house() > 0)
            done.append(await self._start_claimed(group))
        return any(done)

    async def _work(self, group: TaskGroup) -> None:
        house_at = self._clock.monotonic()
        with self._doorbell.listen("jobs") as bell:
            while not self._is_draining:
                is_more = False
                try:
                    if self._clock.monotonic() >= house_at:
                        house_at = self._clock.monotonic() + self._terms.poll.total_seconds()
                        await self._keep_house()
                    is_more = await self._start_claimed(group)
                except (Unavailable, LimitReached) as error:
                    _log.warning("the worker waits for the database", extra={"fields": {"error": str(error)}})
                except Damaged:
                    raise
                except Exception:  # noqa: BLE001 - a named boundary: one round of the worker
                    _log.exception("a round of the worker failed; it is tried again")
                if not is_more or not self._free():
                    await bell.wait(self._terms.poll.total_seconds())

    async def _keep_house(self) -> int:
        """Notice what time has brought; return how many jobs schedules have put."""
        await self._notice_clock()
        await self._end_overdue()
        return await scheduler.fire_due(self._store, self._clock, self._probe)

    async def _start_claimed(self, group: TaskGroup) -> bool:
        claimed = await self._claim()
        for job in claimed:
            before = self._held.get(_key(job))
            if before is not None:
                before.lose()
            held = _Held(job, self._store, self._clock, anyio.CancelScope(), before=before)
            self._held[_key(job)] = held
            group.start_soon(self._do, held)
        return bool(claimed)

    def _free(self) -> int:
        return self._terms.slots - len(self._held)

    async def _claim(self) -> list[Job]:
        free = self._free()
        if free < 1:
            return []
        # A claim that nobody waits for any more would leave jobs that nobody does.
        with anyio.CancelScope(shield=True):
            claimed = await self._store.write(
                lambda tx: jobs.claim(
                    tx, _SYSTEM, worker=self.name, kinds=self._kinds, limit=free, lease_micros=self._lease_micros
                )
            )
        if claimed:
            self._probe("job.claimed")
        return claimed

    async def _do(self, held: _Held) -> None:
        kind = self._kinds[held.job.kind]
        try:
            if held.before is not None:
                await held.before.ended.wait()
            result = await self._perform(kind, held)
            if held.stopped != "lost":
                self._probe("job.handled")
                await self._settle(held, kind, result)
        except anyio.get_cancelled_exc_class():
            # Shut down in the middle: give the job back, so that the next worker need not wait for the lease.
            held.stopped = "shutdown"
            with anyio.move_on_after(_RELEASE_SECONDS, shield=True):
                await self._settle(held, kind, Again("stopped by a shutdown"))
            raise
        finally:
            held.ended.set()
            if self._held.get(_key(held.job)) is held:
                del self._held[_key(held.job)]
            self._doorbell.ring({"jobs"})

    async def _perform(self, kind: JobKind, held: _Held) -> Result:
        seconds = kind.timeout.total_seconds()
        if held.job.deadline is not None:
            seconds = min(seconds, max(0.0, (held.job.deadline - self._clock.now()).total_seconds()))
        try:
            with held.scope, anyio.move_on_after(seconds) as time_left:
                return _checked(await kind.handle(held), kind)
            if time_left.cancelled_caught:
                return Again(f"not done within {seconds:g} s")
            return Failed("cancelled") if held.stopped == "cancelled" else Again("stopped before it was done")
        except _PERMANENT as error:
            return Failed(str(error))
        except Unavailable as error:
            return Again(str(error), timedelta(seconds=_bounded(error.retry_after)))
        except HermesError as error:
            return Again(str(error))
        except Exception as error:  # noqa: BLE001 - a named boundary: a job
            _log.exception("a job failed", extra={"fields": {"job": held.job.id, "kind": kind.name}})
            return Again(f"{type(error).__name__}: {error}")

    async def _settle(self, held: _Held, kind: JobKind, result: Result) -> None:
        """Store how it ended; while the database is away, keep trying as long as the lease may be ours.

        Never raises: whatever is wrong with one job is that job's failure, and no other's.
        """
        fields = {"job": held.job.id, "kind": kind.name}
        is_second_try = False
        while True:
            try:
                await self._write_settlement(held, kind, result)
            except LeaseLost:
                _log.warning("a lease was lost; nothing was stored", extra={"fields": fields})
            except (Unavailable, LimitReached):
                await anyio.sleep(_AGAIN_SECONDS)
                continue
            except Exception as error:  # noqa: BLE001 - a named boundary: a job
                _log.exception("a job's result could not be stored", extra={"fields": fields})
                if not is_second_try:
                    said = f"its result could not be stored: {type(error).__name__}: {error}"
                    result = Failed(said) if isinstance(error, _PERMANENT) else Again(said)
                    is_second_try = True
                    continue
            return

    async def _write_settlement(self, held: _Held, kind: JobKind, result: Result) -> None:
        now = await self._store.read(lambda tx: tx.now()) if isinstance(result, Again) else to_micros(self._clock.now())
        settlement = self._judge(held, kind, result, from_micros(now))

        def work(tx: Tx) -> None:
            stored = jobs.settle(tx, _SYSTEM, held.job, settlement)
            if stored is None:
                return
            if isinstance(result, Done) and result.work is not None:
                _call(result.work, tx)
            if stored.outcome != "again":
                events.append(tx, _SYSTEM, ended(held.job, stored.outcome, stored.error, from_micros(tx.now())))

        await self._store.write(work)
        self._probe("job.settled")

    def _judge(self, held: _Held, kind: JobKind, result: Result, now: datetime) -> Settlement:
        match result:
            case Done():
                return Settlement("done", result=result.result)
            case Failed():
                return Settlement("cancelled" if held.stopped == "cancelled" else "dead", error=result.reason)
            case Again():
                return self._judge_failure(held, kind, result, now)

    def _judge_failure(self, held: _Held, kind: JobKind, result: Again, now: datetime) -> Settlement:
        job = held.job
        if held.stopped == "shutdown":
            return Settlement("again", error="stopped by a shutdown", run_at=to_micros(now), is_counted=False)
        if job.attempt >= kind.retry.attempts:
            return Settlement("dead", error=f"{result.reason} (attempt {job.attempt} of {kind.retry.attempts})")
        pause = kind.retry.pause(job.attempt, self._clock.chance())
        run_at = now + min(max(pause, result.after or pause), _LONGEST_WAIT)
        if job.deadline is not None and run_at >= job.deadline:
            return Settlement("dead", error=f"{result.reason} (no time is left before its deadline)")
        return Settlement("again", error=result.reason, run_at=to_micros(run_at))

    async def _recover(self) -> None:
        """Take over what the last worker of this file left running when it died."""
        if self._terms.is_alone:
            left = await self._store.read(lambda tx: jobs.abandoned(tx, _SYSTEM, worker=self.name))
            for job in left:
                await self._take_away(job)

    async def _end_overdue(self) -> None:
        late = await self._store.write(_end_past_deadline)
        overdue = await self._store.read(lambda tx: jobs.overdue(tx, _SYSTEM, kinds=self._kinds, limit=100))
        for job in overdue:
            if _key(job) not in self._held:
                await self._take_away(job)
        if late:
            _log.warning("jobs died of their deadlines", extra={"fields": {"jobs": late}})

    async def _take_away(self, job: Job) -> None:
        """Settle for a worker that is gone."""
        kind = self._kinds.get(job.kind)
        if kind is None:
            return
        result: Result = Failed("cancelled") if job.is_cancelling else Again("its worker was lost")
        stand_in = _Held(job, self._store, self._clock, anyio.CancelScope())
        if job.is_cancelling:
            stand_in.stopped = "cancelled"
        await self._settle(stand_in, kind, result)

    async def _keep_leases(self) -> None:
        with self._doorbell.listen("cancel") as bell:
            while True:
                await bell.wait(self._terms.lease.total_seconds() / 3)
                if self._held:
                    await self._patiently(self._renew)

    async def _renew(self) -> None:
        held = dict(self._held)
        ours = [h.job for h in held.values()]
        kept = await self._store.write(lambda tx: jobs.renew(tx, _SYSTEM, ours, lease_micros=self._lease_micros))
        now = {_key(job): job for job in kept}
        for key, mine in held.items():
            if self._held.get(key) is not mine:
                continue
            if key not in now:
                mine.lose()
            elif now[key].is_cancelling:
                mine.stopped = "cancelled"
                mine.scope.cancel()

    async def _notice_clock(self) -> None:
        """After a jump of the clock, first make sure of our own leases, then bring near what it left far away."""
        offset = self._wall_minus_monotonic()
        jump, self._offset = offset - self._offset, offset
        if abs(jump) < _JUMP.total_seconds():
            return
        _log.warning("the clock has jumped", extra={"fields": {"seconds": round(jump, 3)}})
        if self._held:
            await self._renew()
        await self._settle_clock(jump)

    async def _settle_clock(self, jump: float = 0.0) -> None:
        jump_micros = min(0, round(jump * 1_000_000))
        await self._store.write(lambda tx: jobs.settle_clock(tx, _SYSTEM, jump_micros=jump_micros))
        await scheduler.settle_clock(self._store)

    def _wall_minus_monotonic(self) -> float:
        return self._clock.now().timestamp() - self._clock.monotonic()

    async def _wait_for_running(self) -> None:
        with anyio.move_on_after(self._terms.drain.total_seconds()), self._doorbell.listen("jobs") as bell:
            while self._held:
                await bell.wait(0.5)

    async def _patiently(self, step: Callable[[], Awaitable[None]]) -> None:
        """Run a step, waiting for the database as long as it takes."""
        while True:
            try:
                await step()
            except (Unavailable, LimitReached) as error:
                _log.warning("the worker waits for the database", extra={"fields": {"error": str(error)}})
                await anyio.sleep(_AGAIN_SECONDS)
                continue
            return


def _checked(result: object, kind: JobKind) -> Result:
    if isinstance(result, Done | Again | Failed):
        return result
    return Failed(f"the handler of {kind.name!r} returned {result!r} instead of Done, Again or Failed; mend it")


def _bounded(seconds: float) -> float:
    """A target may say anything; what is no number of seconds, or too many, is the longest we wait."""
    longest = _LONGEST_WAIT.total_seconds()
    return seconds if 0 <= seconds <= longest else longest if seconds > 0 else 0.0


def _call(work: Callable[[Tx], object], tx: Tx) -> None:
    try:
        work(tx)
    except HermesError as error:
        # It must not be taken for the store's own word, which would be tried for ever.
        raise _WorkFailed(str(error)) from error


def _end_past_deadline(tx: Tx) -> list[str]:
    late = jobs.past_deadline(tx, _SYSTEM, limit=100)
    for job in late:
        events.append(tx, _SYSTEM, ended(job, "dead", job.error, from_micros(tx.now())))
    return [job.id for job in late]
