"""A promise to make jobs at certain times. A schedule never does anything but put a job.

Invariant: one due time makes at most one job, whoever looks and however often.
"""

from dataclasses import field
from datetime import datetime
from typing import Literal, NewType

from hermes.domain.event import Data
from hermes.domain.principal import Principal
from hermes.domain.records import dataclass

ScheduleId = NewType("ScheduleId", str)
Missed = Literal["skip", "once", "all"]
"""Which due times that passed over a minute ago, while nobody looked, are made up for: none, the last, or each."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When, and which job. `rule` is written as people do: a cron line, `every 10m`, or a moment for once."""

    id: ScheduleId
    name: str
    principal: Principal
    rule: str
    kind: str
    zone: str = "UTC"
    payload: Data = field(default_factory=dict)
    lane: str | None = None
    missed: Missed = "once"
    is_paused: bool = False
    next_at: datetime | None = None
    last_at: datetime | None = None
