"""Puts the jobs of schedules whose time has come, and moves the schedules on, in one transaction each.

Invariant: the dedupe key `schedule@due time` makes one job of one due time, whoever fires and however often.
"""

import logging
from datetime import datetime

from hermes.domain.clock import Clock, from_micros, to_micros
from hermes.domain.errors import LimitReached, Misconfigured, Unavailable
from hermes.domain.event import Event, EventId
from hermes.domain.job import Job, JobId
from hermes.domain.principal import Principal
from hermes.domain.protocols import Probe, Store, Tx
from hermes.domain.schedule import Schedule
from hermes.jobs import rule as rules
from hermes.jobs.ending import STREAM
from hermes.store import codec
from hermes.store import event as events
from hermes.store import job as jobs
from hermes.store import schedule as schedules

_SYSTEM = Principal.system("keep appointments")
_PAGE = 100
_log = logging.getLogger("hermes.jobs")


async def fire_due(store: Store, clock: Clock, probe: Probe) -> int:
    """Put the jobs that are due; return how many. A schedule that cannot do so is paused, and keeps no other up."""
    waiting = await store.read(lambda tx: schedules.due(tx, _SYSTEM, limit=_PAGE))
    fired = 0
    for schedule in waiting:
        ids = [clock.new_id() for _ in range(rules.MOST_AT_ONCE if schedule.missed == "all" else 1)]
        try:
            fired += await store.write(lambda tx, s=schedule, i=ids: _fire(tx, s, i))  # type: ignore[misc]
        except (Unavailable, LimitReached):
            raise
        except Exception as error:  # noqa: BLE001 - a named boundary: a schedule
            await _pause(store, clock, schedule, error)
        probe("schedule.fired")
    return fired


async def _pause(store: Store, clock: Clock, schedule: Schedule, error: Exception) -> None:
    """A time zone that has gone, say, or a lane that no index takes: a person must look."""
    fields = {"schedule": schedule.name, "error": f"{type(error).__name__}: {error}"}
    _log.error("a schedule cannot put its job and is paused", extra={"fields": fields})
    event = Event(
        id=EventId(clock.new_id()),
        stream=STREAM,
        type="schedule.paused",
        source="jobs",
        subject=schedule.id,
        tenant=schedule.principal.tenant,
        at=clock.now(),
        data={"name": schedule.name[:100], "error": str(codec.from_text(fields["error"]))},
    )

    def work(tx: Tx) -> None:
        if schedules.correct(tx, _SYSTEM, schedule, next_at=codec.from_time(schedule.next_at), is_paused=True):
            events.append(tx, _SYSTEM, event)

    await store.write(work)


async def settle_clock(store: Store) -> int:
    """After the clock was set back: let no schedule sleep longer than its rule says; return how many did."""

    def work(tx: Tx) -> int:
        now = from_micros(tx.now())
        return sum(_bring_near(tx, schedule, now) for schedule in schedules.find(tx, _SYSTEM))

    return await store.write(work)


def _bring_near(tx: Tx, schedule: Schedule, now: datetime) -> bool:
    if schedule.is_paused or schedule.next_at is None or schedule.next_at <= now:
        return False
    try:
        latest = rules.following(schedule.rule, schedule.zone, now)
    except Misconfigured:
        return False
    if latest is None or schedule.next_at <= latest:
        return False
    return schedules.correct(tx, _SYSTEM, schedule, next_at=to_micros(latest), is_paused=False)


def _fire(tx: Tx, schedule: Schedule, ids: list[str]) -> int:
    due = rules.due(schedule, from_micros(tx.now()))
    if not schedules.move_on(tx, _SYSTEM, schedule, next_at=None if due.next_at is None else to_micros(due.next_at)):
        return 0
    for number, at in enumerate(due.times):
        order = Job(
            id=JobId(ids[number]),
            kind=schedule.kind,
            principal=schedule.principal,
            run_at=at,
            payload=schedule.payload,
            dedupe_key=f"{schedule.id}@{at.isoformat()}",
            lane=schedule.lane,
            cause=schedule.id,
        )
        jobs.put(tx, _SYSTEM, order)
    return len(due.times)
