"""Runs: one turn each. A run that has ended does not end again."""

from hermes.domain.clock import from_micros
from hermes.domain.errors import NotFound
from hermes.domain.principal import Principal
from hermes.domain.protocols import Row, Tx
from hermes.domain.session import Run, RunId, RunState, SessionId
from hermes.store import codec, session
from hermes.store.scope import within

_COLUMNS = "id, session, principal, tenant, state, started_at, ended_at, reason, steps"


def start(tx: Tx, principal: Principal, run: Run) -> None:
    """Store that a run has begun; storing it again is nothing."""
    owner = session.get(tx, principal, run.session)
    if owner is None:
        raise NotFound(f"there is no session {run.session!r}; `hermes sessions list` shows those there are")
    tx.execute(
        "INSERT INTO runs (tenant, id, session, principal, state, started_at) VALUES (?, ?, ?, ?, 'running', ?) "
        "ON CONFLICT (tenant, id) DO NOTHING",
        (owner.tenant, run.id, run.session, codec.from_principal(run.principal), tx.now()),
    )


def end(tx: Tx, principal: Principal, run: RunId, state: RunState, reason: str | None, *, steps: int) -> bool:
    """Store how a run ended; False when it had ended before."""
    where, parameters = within(principal)
    return bool(
        tx.execute(
            f"UPDATE runs SET state = ?, reason = ?, steps = ?, ended_at = ? "
            f"WHERE {where} AND id = ? AND state = 'running'",
            (state, codec.from_text(reason), steps, tx.now(), *parameters, run),
        )
    )


def is_running(tx: Tx, principal: Principal, run: RunId) -> bool:
    """Whether a run has not ended: whoever takes its session over ends what was left there."""
    where, parameters = within(principal)
    row = tx.one(f"SELECT 1 FROM runs WHERE {where} AND id = ? AND state = 'running'", (*parameters, run))
    return row is not None


def get(tx: Tx, principal: Principal, run: RunId) -> Run | None:
    """Return a run; None when there is none."""
    where, parameters = within(principal)
    row = tx.one(f"SELECT {_COLUMNS} FROM runs WHERE {where} AND id = ?", (*parameters, run))
    return None if row is None else _parse(row)


def unfinished(tx: Tx, principal: Principal, of: SessionId) -> list[Run]:
    """Return the runs of a session that have not ended: at most one, or one that a crash has left behind."""
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM runs WHERE {where} AND session = ? AND state = 'running' ORDER BY started_at",
        (*parameters, of),
    )
    return [_parse(row) for row in rows]


def of_session(tx: Tx, principal: Principal, of: SessionId, *, limit: int = 100) -> list[Run]:
    """Return the runs of a session, the latest first."""
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM runs WHERE {where} AND session = ? ORDER BY started_at DESC, id DESC LIMIT ?",
        (*parameters, of, limit),
    )
    return [_parse(row) for row in rows]


def _parse(row: Row) -> Run:
    return Run(
        id=RunId(row[0]),
        session=SessionId(row[1]),
        principal=codec.to_principal(row[2], row[3]),
        state=row[4],
        started_at=from_micros(row[5]),
        ended_at=codec.to_time(row[6]),
        reason=row[7],
        steps=row[8],
    )
