"""Approvals: asked, answered once, and remembered where the answer was meant for more than once."""

from hermes.domain.approval import Approval, Scope, State
from hermes.domain.clock import from_micros
from hermes.domain.errors import NotFound
from hermes.domain.principal import Principal
from hermes.domain.protocols import Row, Tx
from hermes.domain.session import RunId, SessionId
from hermes.store import session
from hermes.store.scope import within

_GRANTS = "state = 'given' AND scope IN ('always', 'session') AND pattern <> ''"
_COLUMNS = "id, session, run, effect, pattern, shown, rule, created_at, state, scope, decided_by"


def request(tx: Tx, principal: Principal, approval: Approval) -> None:
    """Store a question; storing it again is nothing."""
    owner = session.get(tx, principal, approval.session)
    if owner is None:
        raise NotFound(f"there is no session {approval.session!r}; `hermes sessions list` shows those there are")
    tx.execute(
        "INSERT INTO approvals (tenant, id, session, run, effect, pattern, shown, rule, state, scope, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'requested', 'once', ?) ON CONFLICT (tenant, id) DO NOTHING",
        (
            owner.tenant,
            approval.id,
            approval.session,
            approval.run,
            approval.effect,
            approval.pattern,
            approval.shown,
            approval.rule,
            tx.now(),
        ),
    )


def decide(tx: Tx, principal: Principal, approval: str, state: State, scope: Scope) -> bool:
    """Answer a question; False when it had its answer. The first answer counts."""
    where, parameters = within(principal)
    return bool(
        tx.execute(
            f"UPDATE approvals SET state = ?, scope = ?, decided_by = ?, decided_at = ? "
            f"WHERE {where} AND id = ? AND state = 'requested'",
            (state, scope, principal.name, tx.now(), *parameters, approval),
        )
    )


def is_granted(tx: Tx, principal: Principal, pattern: str, of: SessionId) -> bool:
    """Whether a person has said yes to this pattern for the session or for always."""
    where, parameters = within(principal)
    row = tx.one(
        f"SELECT 1 FROM approvals WHERE {where} AND pattern = ? AND state = 'given' AND "
        "(scope = 'always' OR (scope = 'session' AND session = ?)) LIMIT 1",
        (*parameters, pattern, of),
    )
    return row is not None


def find(tx: Tx, principal: Principal, *, limit: int = 100, only_grants: bool = False) -> list[Approval]:
    """Return what was asked, the latest first; or only what a wider yes still covers."""
    where, parameters = within(principal)
    which = f"{where} AND {_GRANTS}" if only_grants else where
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM approvals WHERE {which} ORDER BY created_at DESC, id DESC LIMIT ?",
        (*parameters, limit),
    )
    return [_parse(row) for row in rows]


def beginning_with(tx: Tx, principal: Principal, prefix: str, *, limit: int) -> list[Approval]:
    """Return the wider yeses whose id begins so; one with just this id is alone."""
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM approvals WHERE {where} AND {_GRANTS} AND substr(id, 1, ?) = ? ORDER BY id LIMIT ?",
        (*parameters, len(prefix), prefix, limit),
    )
    found = [_parse(row) for row in rows]
    return [one for one in found if one.id == prefix] or found


def revoke(tx: Tx, principal: Principal, pattern: str) -> int:
    """Take back every wider yes to a pattern; return how many there were."""
    where, parameters = within(principal)
    return tx.execute(
        f"UPDATE approvals SET state = 'revoked', decided_by = ?, decided_at = ? "
        f"WHERE {where} AND {_GRANTS} AND pattern = ?",
        (principal.name, tx.now(), *parameters, pattern),
    )


def _parse(row: Row) -> Approval:
    return Approval(
        id=row[0],
        session=SessionId(row[1]),
        run=RunId(row[2]),
        effect=row[3],
        pattern=row[4],
        shown=row[5],
        rule=row[6],
        created_at=from_micros(row[7]),
        state=row[8],
        scope=row[9],
        decided_by=row[10],
    )
