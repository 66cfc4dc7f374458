"""What a kind of job is: who does it, how long it may take, and how often it is tried."""

import math
from collections.abc import Awaitable, Callable
from dataclasses import field
from datetime import timedelta
from typing import Protocol, TypeAlias

from hermes.domain.clock import Clock
from hermes.domain.event import Data
from hermes.domain.job import Job
from hermes.domain.protocols import Store, Tx
from hermes.domain.records import dataclass


@dataclass(frozen=True, slots=True)
class Retry:
    """How long to wait between attempts: `first`, then `factor` times more each, at most `longest`, with jitter."""

    attempts: int = 5
    first: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    longest: timedelta = timedelta(hours=1)
    jitter: float = 0.25

    def pause(self, attempt: int, chance: float) -> timedelta:
        """Return the wait after attempt number `attempt`; `chance` in [0, 1) spreads it by ± jitter."""
        try:
            grown = self.first.total_seconds() * self.factor ** (attempt - 1)
        except OverflowError:
            grown = math.inf
        seconds = min(grown, self.longest.total_seconds())
        return timedelta(seconds=seconds * (1 + self.jitter * (2 * chance - 1)))


@dataclass(frozen=True, slots=True)
class Done:
    """The job is done. `work` is stored in the transaction that says so: both happen, or neither."""

    result: Data = field(default_factory=dict)
    work: Callable[[Tx], object] | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """Try once more after a while, as far as there are attempts left."""

    reason: str
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """It will never work: the job is dead, and a person may look."""

    reason: str


Result: TypeAlias = Done | Again | Failed


class Assignment(Protocol):
    """What a handler gets."""

    @property
    def job(self) -> Job:
        """The job; `job.id` is the idempotency key for whatever is outside."""
        ...

    @property
    def store(self) -> Store:
        """The store, for reading and for steps of its own."""
        ...

    @property
    def clock(self) -> Clock:
        """Time."""
        ...


Handler: TypeAlias = Callable[[Assignment], Awaitable[Result]]
"""Does one job. Raising is failing: Denied, NotFound, Misconfigured and Unsupported kill the job, the rest is retried.
It is cancelled when the job is cancelled, its time is up or its lease is lost."""


def accept_all(_payload: Data) -> None:
    """Any payload will do."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job."""

    name: str
    handle: Handler
    retry: Retry = Retry()
    timeout: timedelta = timedelta(hours=1)
    check: Callable[[Data], None] = accept_all
    """Raises Misconfigured for a payload that can only fail; asked by those who take orders from people."""
