"""An intention: one worker does it, under a lease, until it is done, dead or cancelled.

Invariant: whoever finishes a job holds its newest fence; a stale worker's word changes nothing.
"""

from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import NewType

from hermes.domain.event import Data
from hermes.domain.principal import Principal
from hermes.domain.records import dataclass

JobId = NewType("JobId", str)


class JobState(StrEnum):
    """Where a job is. `blocked` waits for its lane; `dead` has used up its attempts or its time."""

    QUEUED = "queued"
    BLOCKED = "blocked"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen unless somebody asks for it."""
        return self in {JobState.DONE, JobState.DEAD, JobState.CANCELLED}


@dataclass(frozen=True, slots=True)
class Job:
    """One intention. `dedupe_key` makes a second request of the same kind and tenant the same job, for as long as
    the job is remembered. Without `run_at` it is due when it is put, by the clock of the store.

    Jobs of one `lane` run one at a time in the order they were put; `priority` orders lanes among each other (higher
    first). Past its `deadline` a job is dead, whether it has begun or not. `fence` grows with each claim.
    """

    id: JobId
    kind: str
    principal: Principal
    run_at: datetime | None = None
    payload: Data = field(default_factory=dict)
    dedupe_key: str | None = None
    lane: str | None = None
    priority: int = 0
    deadline: datetime | None = None
    cause: str | None = None
    state: JobState = JobState.QUEUED
    attempt: int = 0
    fence: int = 0
    lease_until: datetime | None = None
    is_cancelling: bool = False
    result: Data | None = None
    error: str | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a job: who tried, when, and how it ended (`None` while it runs)."""

    job: JobId
    fence: int
    number: int
    worker: str
    started_at: datetime
    ended_at: datetime | None
    outcome: str | None
    error: str | None
