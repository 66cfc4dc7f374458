"""A lane held by somebody who waits for the end: a person in front of a screen, not a worker.

Invariant: one at a time in a lane, across processes. Whoever dies loses the lane: on this machine at once, elsewhere
when the lease runs out.
"""

import os
import platform
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import anyio

from hermes.domain.clock import from_micros, to_micros
from hermes.domain.errors import Conflict, LeaseLost
from hermes.domain.job import Job
from hermes.domain.principal import Principal
from hermes.domain.protocols import Store, Tx
from hermes.domain.records import dataclass
from hermes.jobs.ending import ended
from hermes.store import event as events
from hermes.store import job as jobs
from hermes.store.job import PERSON, Settlement

_SYSTEM = Principal.system("hold a lane for a person")


@dataclass(frozen=True, slots=True)
class Lane:
    """How this process holds lanes. `enter` and `leave` are part of the caller's transactions."""

    store: Store
    owner: str
    lease: timedelta = timedelta(seconds=30)
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep

    @classmethod
    def of_this_process(cls, store: Store, lease: timedelta = timedelta(seconds=30)) -> "Lane":
        """Hold lanes in the name of this process."""
        return cls(store, f"{PERSON}{platform.node()}:{os.getpid()}:{_started(os.getpid())}", lease)

    def enter(self, tx: Tx, job: Job) -> Job:
        """Put a job and begin it at once, or go on with it when this is a repetition. Raises Conflict when somebody
        else works in its lane.
        """
        found = jobs.in_lane(tx, job.principal, job.lane) if job.lane is not None else None
        if found is not None and found[0].id == job.id and found[1] == self.owner:
            return found[0]
        if found is not None and _is_left(tx, *found):
            _settle(tx, found[0], Settlement("dead", error="its process ended before the work did"))
        put = jobs.put(tx, _SYSTEM, job)
        taken = jobs.take(tx, _SYSTEM, put, worker=self.owner, lease_micros=self._micros)
        if taken is None:
            raise Conflict(f"{job.lane!r} is busy: another Hermes works on it now; wait for it to end, then try again")
        return taken

    def leave(self, tx: Tx, held: Job, error: str | None = None) -> None:
        """End a job. One whose lease was lost has ended already."""
        _settle(tx, held, Settlement("done") if error is None else Settlement("dead", error=error))

    async def keep(self, held: Job) -> None:
        """Prolong the lease until cancelled. Raises LeaseLost when somebody else has the job."""
        while True:
            await self.sleep(self.lease.total_seconds() / 3)
            kept = await self.store.write(lambda tx: jobs.renew(tx, _SYSTEM, [held], lease_micros=self._micros))
            if not kept:
                raise LeaseLost(f"another Hermes has taken over {held.lane!r}; what was said there is safe")

    def is_busy(self, tx: Tx, principal: Principal, lane: str) -> bool:
        """Whether somebody who is alive works in a lane."""
        found = jobs.in_lane(tx, principal, lane)
        return found is not None and not _is_left(tx, *found)

    @property
    def _micros(self) -> int:
        return int(self.lease.total_seconds() * 1_000_000)


def _settle(tx: Tx, job: Job, settlement: Settlement) -> None:
    """End a job and tell of it, as a worker does."""
    settled = jobs.settle(tx, _SYSTEM, job, settlement)
    if settled is not None:
        events.append(tx, _SYSTEM, ended(job, settled.outcome, settled.error, from_micros(tx.now())))


def _is_left(tx: Tx, job: Job, owner: str) -> bool:
    return (job.lease_until is not None and to_micros(job.lease_until) < tx.now()) or _is_gone(owner)


def _is_gone(owner: str) -> bool:
    """Whether a process of this machine has ended; of another machine only the lease can tell."""
    parts = owner.removeprefix(PERSON).rsplit(":", 2)
    if not owner.startswith(PERSON) or len(parts) != 3 or parts[0] != platform.node() or not parts[1].isdigit():
        return False
    return _started(int(parts[1])) != parts[2]


def _started(process: int) -> str:
    """Tell two processes of one number apart; empty when there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "running" if not Path("/proc").is_dir() and _answers(process) else ""


def _answers(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
