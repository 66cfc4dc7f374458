"""Puts the jobs of schedules whose time has come, and moves the schedules on, in one transaction each.

Invariant: the dedupe key `schedule@due time` makes one job of one due time, whoever fires and however often.
"""

import logging
from datetime import datetime

from hermes.domain.clock import Clock, from_micros, to_micros
from hermes.domain.errors import Misconfigured
from hermes.domain.job import Job, JobId
from hermes.domain.principal import Principal
from hermes.domain.protocols import Probe, Store, Tx
from hermes.domain.schedule import Schedule
from hermes.jobs import rule as rules
from hermes.store import job as jobs
from hermes.store import schedule as schedules

_SYSTEM = Principal.system("keep appointments")
_PAGE = 100
_log = logging.getLogger("hermes.jobs")


async def fire_due(store: Store, clock: Clock, probe: Probe) -> int:
    """Put the jobs that are due; return how many."""
    waiting = await store.read(lambda tx: schedules.due(tx, _SYSTEM, limit=_PAGE))
    fired = 0
    for schedule in waiting:
        ids = [clock.new_id() for _ in range(rules.MOST_AT_ONCE if schedule.missed == "all" else 1)]
        fired += await store.write(lambda tx, s=schedule, i=ids: _fire(tx, s, i))  # type: ignore[misc]
        probe("schedule.fired")
    return fired


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
    try:
        due = rules.due(schedule, from_micros(tx.now()))
    except Misconfigured as error:
        # A time zone that has gone since the schedule was made; it must not keep the others from being fired.
        _log.error("a schedule is paused: %s", error, extra={"fields": {"schedule": schedule.name}})
        schedules.correct(tx, _SYSTEM, schedule, next_at=None, is_paused=True)
        return 0
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
