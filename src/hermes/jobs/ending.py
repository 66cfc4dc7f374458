"""The fact that a job is over, for whoever listens."""

from datetime import datetime

from hermes.domain.event import Event, EventId, Stream
from hermes.domain.job import Job

STREAM = Stream("jobs")
"""Where the end of every job is published: `job.done`, `job.dead`, `job.cancelled`."""


def ended(job: Job, outcome: str, error: str | None, at: datetime) -> Event:
    """Return the event that tells how a job ended; the same end is the same event."""
    return Event(
        id=EventId(f"{job.id}.{job.fence}.{outcome}"),
        stream=STREAM,
        type=f"job.{outcome}",
        source="jobs",
        subject=job.id,
        tenant=job.principal.tenant,
        at=at,
        data={"kind": job.kind, "attempt": job.attempt, "error": error},
        cause=job.cause,
    )
