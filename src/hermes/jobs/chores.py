"""The kinds of jobs that Hermes brings: publish an event, back the database up, forget what is old."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from hermes.domain.clock import to_micros
from hermes.domain.errors import Misconfigured
from hermes.domain.event import OUTSIDE, Data, Event, EventId, Stream
from hermes.domain.principal import Principal
from hermes.jobs.kind import Assignment, Done, JobKind, Result, Retry
from hermes.store import event as events
from hermes.store import job as jobs

PUBLISH = "event.publish"
BACKUP = "db.backup"
PRUNE = "db.prune"
_SYSTEM = Principal.system("forget what is old")


def publish() -> JobKind:
    """Publish an event with the payload's `type`, `data` and `subject` for the job's principal."""
    return JobKind(PUBLISH, _publish, check=_check_publish)


def _check_publish(payload: Data) -> None:
    expected = 'it is {"type": "demo.tick", "data": {}, "subject": "optional"}'
    odd = sorted(payload.keys() - {"type", "data", "subject"})
    if odd:
        raise Misconfigured(f"the payload of {PUBLISH!r} has no {odd[0]!r}; {expected}")
    if not isinstance(payload.get("type"), str) or not payload["type"]:
        raise Misconfigured(f"the payload of {PUBLISH!r} needs the event's type; {expected}")
    if not isinstance(payload.get("data", {}), Mapping) or not isinstance(payload.get("subject"), str | None):
        raise Misconfigured(f"the payload of {PUBLISH!r} needs an object as data and a text as subject; {expected}")


async def _publish(assignment: Assignment) -> Result:
    job = assignment.job
    _check_publish(job.payload)
    data, subject = job.payload.get("data", {}), job.payload.get("subject")
    event = Event(
        id=EventId(job.id),
        stream=Stream(f"{OUTSIDE}{job.principal.tenant}"),
        type=str(job.payload["type"]),
        source=job.principal.name,
        tenant=job.principal.tenant,
        at=assignment.clock.now(),
        data=data if isinstance(data, Mapping) else {},
        subject=None if subject is None else str(subject),
        cause=job.id,
    )
    return Done({"event": event.id}, work=lambda tx: events.append(tx, job.principal, event))


def back_up(write: Callable[[], Awaitable[str]]) -> JobKind:
    """Write a backup; `write` makes it and returns its name."""

    async def handle(_assignment: Assignment) -> Result:
        return Done({"file": await write()})

    return JobKind(BACKUP, handle, check=_check_empty, retry=Retry(attempts=3, first=timedelta(minutes=1)))


def prune(*, keep_events: timedelta, keep_done: timedelta) -> JobKind:
    """Forget events and finished jobs that are older than they need be, a thousand at a time."""

    async def handle(assignment: Assignment) -> Result:
        now = assignment.clock.now()
        oldest_event, oldest_job = to_micros(now - keep_events), to_micros(now - keep_done)
        forgotten = {"events": 0, "jobs": 0}
        while count := await assignment.store.write(lambda tx: events.prune(tx, _SYSTEM, oldest_event)):
            forgotten["events"] += count
        while count := await assignment.store.write(lambda tx: jobs.prune(tx, _SYSTEM, oldest_job)):
            forgotten["jobs"] += count
        return Done(forgotten)

    return JobKind(PRUNE, handle, check=_check_empty)


def _check_empty(payload: Data) -> None:
    if payload:
        raise Misconfigured(f"this kind of job takes no payload, and it was given {min(payload)!r}")
