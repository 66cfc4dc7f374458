"""API keys. Only digests are stored, so a copy of the database opens no door."""

from hermes.domain.clock import Micros, from_micros
from hermes.domain.errors import Conflict, NotFound
from hermes.domain.key import ApiKey, KeyId
from hermes.domain.principal import Principal, Tenant
from hermes.domain.protocols import Row, Tx
from hermes.store import codec
from hermes.store.scope import require_system, within

_LEAST = 6
"""So much of an id or a key must be given."""
_COLUMNS = "id, tenant, user_id, name, prefix, digest, scopes, created_at, expires_at, revoked_at, used_at"


def put(tx: Tx, principal: Principal, key: ApiKey) -> ApiKey:
    """Store a new key; storing it again is nothing."""
    if not principal.is_system and key.tenant != principal.tenant:
        raise NotFound(f"there is no tenant {key.tenant!r} for {principal.name!r}")
    now = tx.now()
    inserted = tx.execute(
        "INSERT INTO api_keys (id, tenant, user_id, name, prefix, digest, scopes, created_at, expires_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            key.id,
            key.tenant,
            key.user,
            key.name,
            key.prefix,
            key.digest,
            " ".join(sorted(key.scopes)),
            now,
            codec.from_time(key.expires_at),
        ),
    )
    row = tx.one(f"SELECT {_COLUMNS} FROM api_keys WHERE tenant = ? AND id = ?", (key.tenant, key.id))
    if row is None or (not inserted and row[5] != key.digest):
        raise Conflict(f"the key {key.id!r} could not be stored; make a new one")
    return _parse(row)


def by_digest(tx: Tx, principal: Principal, digest: str) -> ApiKey | None:
    """Return the key with this digest, of whatever tenant: this is how a caller becomes a principal."""
    require_system(principal, "look keys up")
    row = tx.one(f"SELECT {_COLUMNS} FROM api_keys WHERE digest = ?", (digest,))
    return None if row is None else _parse(row)


def find(tx: Tx, principal: Principal) -> list[ApiKey]:
    """Return every key of the principal's tenant, the newest first."""
    where, parameters = within(principal)
    rows = tx.all(f"SELECT {_COLUMNS} FROM api_keys WHERE {where} ORDER BY created_at DESC, id DESC", parameters)
    return [_parse(row) for row in rows]


def revoke(tx: Tx, principal: Principal, word: str, digest: str) -> ApiKey:
    """End a key at once, named by its name, its id, how one of these or the key itself begins, or its digest.

    The first revocation counts.
    """
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM api_keys WHERE {where} AND (name = ? OR digest = ? OR "
        "(length(?) >= ? AND (substr(id, 1, length(?)) = ? OR substr(prefix, 1, length(?)) = ?)))",
        (*parameters, word, digest, word, _LEAST, word, word, word, word),
    )
    if not rows:
        raise NotFound("there is no such key; `hermes keys list` shows those there are")
    if len(rows) > 1:
        found = ", ".join(f"{row[4]}… ({row[0]})" for row in rows)
        raise Conflict(f"{len(rows)} keys are called so; name one by its id or by how it begins: {found}")
    key = _parse(rows[0])
    tx.execute(
        "UPDATE api_keys SET revoked_at = coalesce(revoked_at, ?) WHERE tenant = ? AND id = ?",
        (tx.now(), key.tenant, key.id),
    )
    return _parse(tx.all(f"SELECT {_COLUMNS} FROM api_keys WHERE tenant = ? AND id = ?", (key.tenant, key.id))[0])


def note_use(tx: Tx, principal: Principal, key: ApiKey, at: Micros) -> None:
    """Remember when a key was last used."""
    require_system(principal, "note the use of keys")
    tx.execute("UPDATE api_keys SET used_at = ? WHERE tenant = ? AND id = ?", (at, key.tenant, key.id))


def _parse(row: Row) -> ApiKey:
    return ApiKey(
        id=KeyId(row[0]),
        tenant=Tenant(row[1]),
        user=row[2],
        name=row[3],
        prefix=row[4],
        digest=row[5],
        scopes=frozenset(row[6].split()),
        created_at=from_micros(row[7]),
        expires_at=codec.to_time(row[8]),
        revoked_at=codec.to_time(row[9]),
        used_at=codec.to_time(row[10]),
    )
