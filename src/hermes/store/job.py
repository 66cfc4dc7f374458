"""Jobs: put, claimed, kept alive, settled.

Invariants: one job for one dedupe key of a kind and tenant; one running job per lane; only the newest fence settles.
Whoever settles again what is settled (a lost answer) changes nothing.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from hermes.domain.clock import Micros, from_micros, to_micros
from hermes.domain.errors import Conflict, LeaseLost, NotFound
from hermes.domain.event import Data
from hermes.domain.job import Attempt, Job, JobId, JobState
from hermes.domain.principal import Principal, Tenant
from hermes.domain.protocols import Row, Tx
from hermes.store import codec
from hermes.store.scope import require_system, within

_COLUMNS = (
    "id, tenant, kind, dedupe_key, lane, principal, payload, state, rank, run_at, deadline, attempt, fence, "
    "lease_until, is_cancelling, cause, result, error, created_at, finished_at"
)
_IN_LANE = "lane IS NOT NULL AND state IN ('queued', 'blocked', 'running')"
# Each half has a partial index of its own, so that a long backlog of blocked jobs is not walked through.
_BUSY_LANE = (
    "(EXISTS (SELECT 1 FROM jobs o WHERE o.tenant = j.tenant AND o.lane = j.lane AND o.lane IS NOT NULL "
    "AND o.state = 'running' AND o.number <> j.number) "
    "OR EXISTS (SELECT 1 FROM jobs o WHERE o.tenant = j.tenant AND o.lane = j.lane AND o.lane IS NOT NULL "
    "AND o.state = 'queued' AND o.attempt > 0 AND o.number <> j.number))"
)
PERSON = "person:"
"""How the owner of a job begins whom a person waits for; it lives beside the worker of the file."""

Outcome = Literal["done", "dead", "cancelled", "again"]


class Settlement(NamedTuple):
    """How an attempt ended. `again` puts the job back in line for `run_at`."""

    outcome: Outcome
    result: Data | None = None
    error: str | None = None
    run_at: Micros | None = None
    is_counted: bool = True
    """Whether this was a try at all; one that a shutdown cut short was none."""


def put(tx: Tx, principal: Principal, job: Job) -> Job:
    """Put a job, or return the one that is there already under its id or dedupe key.

    It is put as it is: waiting, or dead (with its error) when it is only to be seen and retried by a person.
    """
    codec.require_names(id=job.id, kind=job.kind, lane=job.lane, key=job.dedupe_key, cause=job.cause)
    tenant = principal.tenant if not principal.is_system else job.principal.tenant
    if job.principal.tenant != tenant:
        raise NotFound(f"there is no tenant {job.principal.tenant!r} for {principal.name!r}")
    now = tx.now()
    run_at = now if job.run_at is None else to_micros(job.run_at)
    state = job.state
    if job.lane is not None and state is JobState.QUEUED:
        tx.order()
        if run_at <= now and _is_lane_taken(tx, tenant, job.lane, run_at):
            state = JobState.BLOCKED
    inserted = tx.execute(
        "INSERT INTO jobs (id, tenant, kind, dedupe_key, lane, principal, payload, state, rank, run_at, deadline, "
        "cause, error, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            job.id,
            tenant,
            job.kind,
            job.dedupe_key,
            job.lane,
            codec.from_principal(job.principal),
            codec.from_data(job.payload),
            state,
            -job.priority,
            run_at,
            codec.from_time(job.deadline),
            job.cause,
            codec.from_text(job.error),
            now,
        ),
    )
    if not inserted:
        return _present(tx, tenant, job)
    tx.announce("jobs")
    return replace(job, state=state, run_at=from_micros(run_at), created_at=from_micros(now))


def _is_lane_taken(tx: Tx, tenant: str, lane: str, run_at: Micros) -> bool:
    """Whether somebody of the lane works, waits or tries again. An appointment counts from its time on.

    One that was due when it was put counts whatever its time: on PostgreSQL the clock is read before it is its turn.
    """
    row = tx.one(
        f"SELECT 1 FROM jobs WHERE tenant = ? AND lane = ? AND {_IN_LANE} "
        "AND (state <> 'queued' OR attempt > 0 OR run_at <= created_at OR run_at <= ?) LIMIT 1",
        (tenant, lane, run_at),
    )
    return row is not None


def _present(tx: Tx, tenant: str, job: Job) -> Job:
    row = tx.one(
        f"SELECT {_COLUMNS} FROM jobs WHERE tenant = ? AND (id = ? OR (kind = ? AND dedupe_key = ?)) LIMIT 1",
        (tenant, job.id, job.kind, job.dedupe_key or ""),
    )
    if row is None:
        raise Conflict(f"the job {job.id!r} could be neither put nor found; try again")
    return _parse(row)


def claim(
    tx: Tx, principal: Principal, *, worker: str, kinds: Collection[str], limit: int, lease_micros: int
) -> list[Job]:
    """Take up to `limit` jobs that are due, each under a lease with a new fence."""
    require_system(principal, "claim jobs")
    if not kinds or limit < 1:
        return []
    now = tx.now()
    lock = " FOR UPDATE SKIP LOCKED" if tx.dialect == "postgres" else ""
    marks = ", ".join("?" * len(kinds))
    rows = tx.all(
        f"SELECT number, tenant, lane FROM jobs j WHERE state = 'queued' AND run_at <= ? AND kind IN ({marks}) "
        f"AND (deadline IS NULL OR deadline > ?) AND (lane IS NULL OR NOT {_BUSY_LANE}) "
        f"ORDER BY rank, run_at, number LIMIT ?{lock}",
        (now, *sorted(kinds), now, limit),
    )
    if any(row[2] is not None for row in rows):
        tx.order()
    started = (_start(tx, number, worker, now, lease_micros) for number in _one_per_lane(rows))
    return [job for job in started if job is not None]


def take(tx: Tx, principal: Principal, job: Job, *, worker: str, lease_micros: int) -> Job | None:
    """Take just this job under a lease, whatever else is due; None when it is not to be had now."""
    require_system(principal, "take a job")
    now = tx.now()
    found = (job.principal.tenant, job.id, now)
    row = tx.one("SELECT number FROM jobs WHERE tenant = ? AND id = ? AND run_at <= ?", found)
    tx.order()
    return None if row is None else _start(tx, row[0], worker, now, lease_micros)


def in_lane(tx: Tx, principal: Principal, lane: str) -> tuple[Job, str] | None:
    """Return the job that runs in a lane, and the worker that has it."""
    where, parameters = within(principal)
    row = tx.one(
        f"SELECT {_COLUMNS}, owner FROM jobs WHERE {where} AND lane = ? AND state = 'running' LIMIT 1",
        (*parameters, lane),
    )
    return None if row is None else (_parse(row[:-1]), row[-1])


def _one_per_lane(rows: Iterable[Row]) -> list[int]:
    """Two jobs of one lane may be due at once; the first goes first."""
    seen: set[tuple[str, str]] = set()
    numbers = []
    for number, tenant, lane in rows:
        if lane is not None and (tenant, lane) in seen:
            continue
        seen.add((tenant, lane or ""))
        numbers.append(number)
    return numbers


def _start(tx: Tx, number: int, worker: str, now: Micros, lease_micros: int) -> Job | None:
    row = tx.one(
        "UPDATE jobs AS j SET state = 'running', attempt = attempt + 1, fence = fence + 1, owner = ?, lease_until = ?, "
        "lease = ? "
        f"WHERE number = ? AND state = 'queued' AND (lane IS NULL OR NOT {_BUSY_LANE}) RETURNING {_COLUMNS}",
        (worker, now + lease_micros, lease_micros, number),
    )
    if row is None:
        return None
    job = _parse(row)
    tx.execute(
        "INSERT INTO attempts (tenant, job, fence, number, worker, started_at) VALUES (?, ?, ?, ?, ?, ?)",
        (job.principal.tenant, job.id, job.fence, job.attempt, worker, now),
    )
    return job


def renew(tx: Tx, principal: Principal, held: Sequence[Job], *, lease_micros: int) -> list[Job]:
    """Prolong leases; return the jobs as they are now, leaving out those that are no longer ours."""
    require_system(principal, "renew leases")
    until = tx.now() + lease_micros
    kept = []
    for job in held:
        row = tx.one(
            "UPDATE jobs SET lease_until = ?, lease = ? "
            "WHERE tenant = ? AND id = ? AND fence = ? AND state = 'running' "
            f"RETURNING {_COLUMNS}",
            (until, lease_micros, job.principal.tenant, job.id, job.fence),
        )
        if row is not None:
            kept.append(_parse(row))
    return kept


def settle(tx: Tx, principal: Principal, job: Job, settlement: Settlement) -> Settlement | None:
    """End an attempt and return how: one that failed while somebody cancelled the job ends it as cancelled.

    Returns None when it has ended just so already. Raises LeaseLost when another has it, or had it since.
    """
    require_system(principal, "settle jobs")
    if job.lane is not None:
        tx.order()
    if settlement.outcome in {"done", "cancelled"}:
        stored = _store(tx, job, settlement, "")
    else:
        stored = _store(tx, job, settlement, "AND is_cancelling = 0") or _store(
            tx, job, Settlement("cancelled", error="cancelled"), "AND is_cancelling = 1"
        )
    if stored is None:
        _require_settled(tx, job, settlement)
        return None
    if job.lane is not None and stored.outcome != "again":
        _promote(tx, job.principal.tenant, job.lane)
    tx.announce("jobs")
    return stored


def _store(tx: Tx, job: Job, settlement: Settlement, condition: str) -> Settlement | None:
    """Write a settlement if the fence is the newest and the condition holds."""
    now, error = tx.now(), codec.from_text(settlement.error)
    is_over = settlement.outcome != "again"
    changed = tx.execute(
        "UPDATE jobs SET state = ?, result = ?, error = ?, run_at = coalesce(?, run_at), finished_at = ?, "
        "attempt = attempt - ?, owner = NULL, lease_until = NULL, is_cancelling = 0 "
        f"WHERE tenant = ? AND id = ? AND fence = ? AND state = 'running' {condition}",
        (
            settlement.outcome if is_over else JobState.QUEUED,
            None if settlement.result is None else codec.from_data(settlement.result),
            error,
            settlement.run_at,
            now if is_over else None,
            0 if settlement.is_counted else 1,
            job.principal.tenant,
            job.id,
            job.fence,
        ),
    )
    if not changed:
        return None
    tx.execute(
        "UPDATE attempts SET ended_at = ?, outcome = ?, error = ? WHERE tenant = ? AND job = ? AND fence = ?",
        (now, settlement.outcome, error, job.principal.tenant, job.id, job.fence),
    )
    return settlement


def _require_settled(tx: Tx, job: Job, settlement: Settlement) -> None:
    row = tx.one("SELECT fence FROM jobs WHERE tenant = ? AND id = ?", (job.principal.tenant, job.id))
    ended = tx.one(
        "SELECT outcome FROM attempts WHERE tenant = ? AND job = ? AND fence = ?",
        (job.principal.tenant, job.id, job.fence),
    )
    same = {settlement.outcome, "cancelled"} if settlement.outcome != "done" else {"done"}
    if row is None or row[0] != job.fence or ended is None or ended[0] not in same:
        raise LeaseLost(f"the lease of job {job.id!r} ran out or it has ended otherwise; nothing of this was stored")


def _promote(tx: Tx, tenant: str, lane: str) -> None:
    """Let the next of the lane step forward."""
    tx.execute(
        "UPDATE jobs SET state = 'queued' WHERE number = (SELECT number FROM jobs WHERE tenant = ? AND lane = ? "
        "AND state = 'blocked' AND lane IS NOT NULL ORDER BY number LIMIT 1)",
        (tenant, lane),
    )


def overdue(tx: Tx, principal: Principal, *, kinds: Collection[str], limit: int) -> list[Job]:
    """Return running jobs of some kinds whose lease has ended, the longest ago first."""
    require_system(principal, "take leases away")
    marks = ", ".join("?" * len(kinds))
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM jobs WHERE state = 'running' AND lease_until < ? AND kind IN ({marks}) "
        "ORDER BY lease_until LIMIT ?",
        (tx.now(), *sorted(kinds), limit),
    )
    return [_parse(row) for row in rows]


def abandoned(tx: Tx, principal: Principal, *, worker: str) -> list[Job]:
    """Return running jobs that anybody but `worker` or a person holds: a file has one worker, the others are dead."""
    require_system(principal, "take leases away")
    others = "state = 'running' AND owner <> ? AND substr(owner, 1, ?) <> ?"
    rows = tx.all(f"SELECT {_COLUMNS} FROM jobs WHERE {others} ORDER BY number", (worker, len(PERSON), PERSON))
    return [_parse(row) for row in rows]


def past_deadline(tx: Tx, principal: Principal, *, limit: int) -> list[Job]:
    """End jobs whose deadline passed before they began; return them as they are now."""
    require_system(principal, "end jobs")
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM jobs WHERE state IN ('queued', 'blocked') AND deadline IS NOT NULL AND deadline <= ? "
        "LIMIT ?",
        (tx.now(), limit),
    )
    ended = (_end(tx, _parse(row), JobState.DEAD, "its deadline passed before it could begin") for row in rows)
    return [job for job in ended if job is not None]


def cancel(tx: Tx, principal: Principal, job_id: JobId) -> Job:
    """Cancel a job that waits, or ask the worker of a running one to stop; return it as it is now."""
    job = _require(tx, principal, job_id)
    if job.state in {JobState.QUEUED, JobState.BLOCKED}:
        ended = _end(tx, job, JobState.CANCELLED, f"cancelled by {principal.name}")
        if ended is not None:
            return ended
        # On PostgreSQL a worker may have claimed it between the look and the word.
        job = _require(tx, principal, job_id)
    asked = tx.execute(
        "UPDATE jobs SET is_cancelling = 1 WHERE tenant = ? AND id = ? AND state = 'running'",
        (job.principal.tenant, job.id),
    )
    if not asked:
        raise Conflict(f"the job {job_id!r} is {job.state} already; there is nothing to cancel")
    tx.announce("cancel")
    return replace(job, is_cancelling=True)


def retry(tx: Tx, principal: Principal, job_id: JobId) -> Job:
    """Put a dead or cancelled job back in line, with all its attempts before it again."""
    job = _require(tx, principal, job_id)
    if job.state not in {JobState.DEAD, JobState.CANCELLED}:
        raise Conflict(f"the job {job_id!r} is {job.state}; only dead and cancelled jobs are retried")
    now = tx.now()
    state = JobState.QUEUED
    if job.lane is not None:
        tx.order()
        if _is_lane_taken(tx, job.principal.tenant, job.lane, now):
            state = JobState.BLOCKED
    changed = tx.execute(
        "UPDATE jobs SET state = ?, attempt = 0, run_at = ?, deadline = NULL, error = NULL, finished_at = NULL, "
        "is_cancelling = 0 WHERE tenant = ? AND id = ? AND state IN ('dead', 'cancelled')",
        (state, now, job.principal.tenant, job.id),
    )
    if not changed:
        raise Conflict(f"somebody else has retried the job {job_id!r} just now")
    tx.announce("jobs")
    return _require(tx, principal, job_id)


def _end(tx: Tx, job: Job, state: JobState, error: str) -> Job | None:
    """End a job that waits; None when it waits no more."""
    now = tx.now()
    if job.lane is not None:
        tx.order()
    changed = tx.execute(
        "UPDATE jobs SET state = ?, error = ?, finished_at = ? "
        "WHERE tenant = ? AND id = ? AND state IN ('queued', 'blocked')",
        (state, codec.from_text(error), now, job.principal.tenant, job.id),
    )
    if not changed:
        return None
    if job.lane is not None:
        _promote_if_free(tx, job.principal.tenant, job.lane)
    tx.announce("jobs")
    return replace(job, state=state, error=error, finished_at=from_micros(now))


def _promote_if_free(tx: Tx, tenant: str, lane: str) -> None:
    """The one that ended may have been a waiting one: then its forerunner still holds the lane."""
    row = tx.one(
        f"SELECT 1 FROM jobs WHERE tenant = ? AND lane = ? AND {_IN_LANE} "
        "AND (state = 'running' "
        "OR (state = 'queued' AND (attempt > 0 OR run_at <= created_at OR run_at <= ?))) LIMIT 1",
        (tenant, lane, tx.now()),
    )
    if row is None:
        _promote(tx, tenant, lane)


def settle_clock(tx: Tx, principal: Principal, *, jump_micros: int = 0) -> int:
    """After the clock was set back: bring near what it left in the future; return how many jobs that were.

    Only what the rows themselves prove is moved: a job that was put, or whose last attempt ended, later than now, and a
    lease that ends later than it is long. A job that was due when it was put moves with the clock, so that those put
    after the jump stay behind it; a wait between attempts begins anew.
    """
    require_system(principal, "correct times")
    now = tx.now()
    moved = tx.execute(
        "UPDATE jobs SET run_at = CASE WHEN run_at + ? < ? THEN run_at + ? ELSE ? END "
        "WHERE state IN ('queued', 'blocked') AND attempt = 0 AND run_at <= created_at AND run_at > ?",
        (jump_micros, now, jump_micros, now, now),
    )
    last = "(SELECT max(ended_at) FROM attempts a WHERE a.tenant = jobs.tenant AND a.job = jobs.id)"
    moved += tx.execute(
        f"UPDATE jobs SET run_at = run_at - ({last} - ?) "
        f"WHERE state = 'queued' AND attempt > 0 AND run_at > ? AND {last} > ?",
        (now, now, now),
    )
    return moved + tx.execute(
        "UPDATE jobs SET lease_until = ? + lease WHERE state = 'running' AND lease_until > ? + lease", (now, now)
    )


def get(tx: Tx, principal: Principal, job_id: JobId) -> Job | None:
    """Return one job of the principal's tenant."""
    where, parameters = within(principal)
    row = tx.one(f"SELECT {_COLUMNS} FROM jobs WHERE {where} AND id = ?", (*parameters, job_id))
    return None if row is None else _parse(row)


def find(
    tx: Tx, principal: Principal, *, state: JobState | None = None, kind: str | None = None, limit: int = 50
) -> list[Job]:
    """Return jobs, the newest first."""
    where, parameters = within(principal)
    conditions, values = [where], list(parameters)
    if state is not None:
        conditions.append("state = ?")
        values.append(state)
    if kind is not None:
        conditions.append("kind = ?")
        values.append(kind)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM jobs WHERE {' AND '.join(conditions)} ORDER BY number DESC LIMIT ?", (*values, limit)
    )
    return [_parse(row) for row in rows]


def beginning_with(tx: Tx, principal: Principal, prefix: str, *, limit: int) -> list[Job]:
    """Return jobs whose id begins so, the newest first; a job with just this id is alone."""
    where, parameters = within(principal)
    exact = get(tx, principal, JobId(prefix))
    if exact is not None:
        return [exact]
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM jobs WHERE {where} AND substr(id, 1, ?) = ? ORDER BY number DESC LIMIT ?",
        (*parameters, len(prefix), prefix, limit),
    )
    return [_parse(row) for row in rows]


def count(tx: Tx, principal: Principal) -> dict[str, int]:
    """Return how many jobs there are in each state."""
    where, parameters = within(principal)
    return dict(tx.all(f"SELECT state, count(*) FROM jobs WHERE {where} GROUP BY state ORDER BY state", parameters))


def attempts(tx: Tx, principal: Principal, job_id: JobId) -> list[Attempt]:
    """Return every try at a job, the first first."""
    where, parameters = within(principal)
    rows = tx.all(
        "SELECT job, fence, number, worker, started_at, ended_at, outcome, error FROM attempts "
        f"WHERE {where} AND job = ? ORDER BY fence",
        (*parameters, job_id),
    )
    return [Attempt(JobId(r[0]), r[1], r[2], r[3], from_micros(r[4]), codec.to_time(r[5]), r[6], r[7]) for r in rows]


def prune(tx: Tx, principal: Principal, before: Micros, *, limit: int = 1000) -> int:
    """Forget jobs that were done or cancelled before a time, and their attempts; the dead stay to be seen."""
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT tenant, id FROM jobs WHERE {where} AND state IN ('done', 'cancelled') AND finished_at < ? LIMIT ?",
        (*parameters, before, limit),
    )
    for tenant, job_id in rows:
        tx.execute("DELETE FROM attempts WHERE tenant = ? AND job = ?", (tenant, job_id))
        tx.execute("DELETE FROM jobs WHERE tenant = ? AND id = ?", (tenant, job_id))
    return len(rows)


def _require(tx: Tx, principal: Principal, job_id: JobId) -> Job:
    job = get(tx, principal, job_id)
    if job is None:
        raise NotFound(f"there is no job {job_id!r}; `hermes jobs list` shows those there are")
    return job


def _parse(row: Row) -> Job:
    return Job(
        id=JobId(row[0]),
        principal=codec.to_principal(row[5], Tenant(row[1])),
        kind=row[2],
        dedupe_key=row[3],
        lane=row[4],
        payload=codec.to_data(row[6]),
        state=JobState(row[7]),
        priority=-row[8],
        run_at=from_micros(row[9]),
        deadline=codec.to_time(row[10]),
        attempt=row[11],
        fence=row[12],
        lease_until=codec.to_time(row[13]),
        is_cancelling=bool(row[14]),
        cause=row[15],
        result=codec.to_optional_data(row[16]),
        error=row[17],
        created_at=codec.to_time(row[18]),
        finished_at=codec.to_time(row[19]),
    )
