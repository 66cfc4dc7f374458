"""Accounts of people. Every tenant has exactly one owner, made the first time somebody asks."""

from hermes.domain.clock import from_micros
from hermes.domain.errors import NotFound
from hermes.domain.principal import Principal, Tenant
from hermes.domain.protocols import Row, Tx
from hermes.domain.user import User
from hermes.store.scope import require_system, within

_COLUMNS = "id, tenant, name, role, created_at"


def ensure_owner(tx: Tx, principal: Principal, tenant: Tenant) -> User:
    """Return the tenant's owner, who is made when there is none."""
    require_system(principal, "make accounts")
    tx.execute(
        "INSERT INTO users (tenant, id, name, role, created_at) VALUES (?, 'owner', 'owner', 'owner', ?) "
        "ON CONFLICT DO NOTHING",
        (tenant, tx.now()),
    )
    row = tx.one(f"SELECT {_COLUMNS} FROM users WHERE tenant = ? AND id = 'owner'", (tenant,))
    if row is None:
        raise NotFound(f"the tenant {tenant!r} has no owner and none could be made")
    return _parse(row)


def get(tx: Tx, principal: Principal, user_id: str) -> User | None:
    """Return one account of the principal's tenant."""
    where, parameters = within(principal)
    row = tx.one(f"SELECT {_COLUMNS} FROM users WHERE {where} AND id = ?", (*parameters, user_id))
    return None if row is None else _parse(row)


def _parse(row: Row) -> User:
    return User(id=row[0], tenant=Tenant(row[1]), name=row[2], role=row[3], created_at=from_micros(row[4]))
