"""The ledger: what every model call has used and cost, whatever it was for. Nothing is ever taken out of it.

Invariant: one call is one row; the same call written again is the same row.
"""

from hermes.domain.clock import Micros
from hermes.domain.errors import NotFound
from hermes.domain.ledger import Entry, Total
from hermes.domain.model import Usage
from hermes.domain.principal import Principal
from hermes.domain.protocols import Row, Tx
from hermes.domain.session import SessionId
from hermes.store.scope import within

_SUMS = (
    "count(*), coalesce(sum(input), 0), coalesce(sum(output), 0), coalesce(sum(cache_read), 0), "
    "coalesce(sum(cache_write), 0), coalesce(sum(reasoning), 0), coalesce(sum(cost), 0), "
    "coalesce(sum(CASE WHEN cost IS NULL THEN 1 ELSE 0 END), 0)"
)


def write(tx: Tx, principal: Principal, entry: Entry) -> None:
    """Add one call."""
    if not principal.is_system and entry.tenant != principal.tenant:
        raise NotFound(f"there is no tenant {entry.tenant!r} for {principal.name!r}")
    used = entry.usage
    tx.execute(
        "INSERT INTO ledger (tenant, id, at, actor, session, run, purpose, model, input, output, cache_read, "
        "cache_write, reasoning, cost) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (tenant, id) DO NOTHING",
        (
            entry.tenant,
            entry.id,
            tx.now(),
            entry.actor,
            entry.session,
            entry.run,
            entry.purpose,
            entry.model,
            used.input,
            used.output,
            used.cache_read,
            used.cache_write,
            used.reasoning,
            entry.cost,
        ),
    )


def of_session(tx: Tx, principal: Principal, session: SessionId) -> Total:
    """Return what a session has used, side calls included."""
    where, parameters = within(principal)
    return _total(tx.all(f"SELECT {_SUMS} FROM ledger WHERE {where} AND session = ?", (*parameters, session))[0])


def since(tx: Tx, principal: Principal, at: Micros) -> Total:
    """Return what the tenant has used since a moment."""
    where, parameters = within(principal)
    return _total(tx.all(f"SELECT {_SUMS} FROM ledger WHERE {where} AND at >= ?", (*parameters, at))[0])


def by_model(tx: Tx, principal: Principal, at: Micros) -> dict[tuple[str, str], Total]:
    """Return what was used since a moment, by model and purpose."""
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT model, purpose, {_SUMS} FROM ledger WHERE {where} AND at >= ? GROUP BY model, purpose "
        "ORDER BY model, purpose",
        (*parameters, at),
    )
    return {(row[0], row[1]): _total(row[2:]) for row in rows}


def _total(row: Row) -> Total:
    return Total(
        calls=int(row[0]),
        usage=Usage(*(int(number) for number in row[1:6])),
        cost=int(row[6]),
        unpriced=int(row[7]),
    )
