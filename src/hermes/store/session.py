"""Sessions and their contexts.

Invariants: a title names one session of a tenant; a context's prefix is written once; only its head moves.
"""

from collections.abc import Sequence
from dataclasses import replace

from hermes.domain.clock import from_micros
from hermes.domain.errors import Conflict, NotFound
from hermes.domain.message import MessageId
from hermes.domain.principal import Principal, Tenant
from hermes.domain.protocols import Row, Tx
from hermes.domain.session import Context, Session, SessionId
from hermes.store import codec
from hermes.store.scope import within

_COLUMNS = "id, tenant, owner, source, created_at, updated_at, title, parent, workspace, message_count"
_CONTEXT = "session, number, wire, model, tools, prefix, head, why, created_at"


def create(tx: Tx, principal: Principal, session: Session) -> Session:
    """Store a new session; storing it again is nothing."""
    _require_own(principal, session.tenant)
    codec.require_names(id=session.id, title=session.title, source=session.source)
    _require_free(tx, principal, session.id, session.title)
    now = tx.now()
    tx.execute(
        "INSERT INTO sessions (tenant, id, owner, source, title, parent, workspace, created_at, updated_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, id) DO NOTHING",
        (
            session.tenant,
            session.id,
            session.owner,
            session.source,
            session.title,
            session.parent,
            session.workspace,
            now,
            now,
        ),
    )
    return replace(session, created_at=from_micros(now), updated_at=from_micros(now))


def get(tx: Tx, principal: Principal, session: SessionId) -> Session | None:
    """Return one session of the principal's tenant."""
    where, parameters = within(principal)
    row = tx.one(f"SELECT {_COLUMNS} FROM sessions WHERE {where} AND id = ?", (*parameters, session))
    return None if row is None else _parse(row)


def called(tx: Tx, principal: Principal, word: str, *, limit: int = 10) -> list[Session]:
    """Return the sessions that `word` may name: its id or title alone, else those whose id or title begins so."""
    where, parameters = within(principal)
    exact = tx.all(
        f"SELECT {_COLUMNS} FROM sessions WHERE {where} AND (id = ? OR title = ?) ORDER BY updated_at DESC",
        (*parameters, word, word),
    )
    rows = exact or tx.all(
        f"SELECT {_COLUMNS} FROM sessions WHERE {where} AND "
        "(substr(id, 1, ?) = ? OR lower(substr(title, 1, ?)) = lower(?)) ORDER BY updated_at DESC LIMIT ?",
        (*parameters, len(word), word, len(word), word, limit),
    )
    return [_parse(row) for row in rows]


def recent(tx: Tx, principal: Principal, *, limit: int = 20, source: str | None = None) -> list[Session]:
    """Return sessions in which something was said, here or where they branched off, the latest first."""
    where, parameters = within(principal)
    if source is not None:
        where, parameters = f"{where} AND source = ?", (*parameters, source)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM sessions WHERE {where} AND (message_count > 0 OR parent IS NOT NULL) "
        "ORDER BY updated_at DESC, id DESC LIMIT ?",
        (*parameters, limit),
    )
    return [_parse(row) for row in rows]


def quiet_since(tx: Tx, principal: Principal, before: int, *, limit: int = 100) -> list[Session]:
    """Return sessions in which nothing has happened since `before`, the oldest first."""
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM sessions WHERE {where} AND updated_at < ? ORDER BY updated_at LIMIT ?",
        (*parameters, before, limit),
    )
    return [_parse(row) for row in rows]


def move(tx: Tx, principal: Principal, session: SessionId, workspace: str) -> int:
    """Say where a session works from now on."""
    where, parameters = within(principal)
    return tx.execute(f"UPDATE sessions SET workspace = ? WHERE {where} AND id = ?", (workspace, *parameters, session))


def rename(tx: Tx, principal: Principal, session: SessionId, title: str | None) -> None:
    """Give a session its title. Raises Conflict when another has it."""
    where, parameters = within(principal)
    codec.require_names(title=title)
    _require_free(tx, principal, session, title)
    if not tx.execute(f"UPDATE sessions SET title = ? WHERE {where} AND id = ?", (title, *parameters, session)):
        raise NotFound(f"there is no session {session!r}; `hermes sessions list` shows those there are")


def _require_free(tx: Tx, principal: Principal, session: SessionId, title: str | None) -> None:
    where, parameters = within(principal)
    other = title and tx.one(
        f"SELECT id FROM sessions WHERE {where} AND title = ? AND id <> ?", (*parameters, title, session)
    )
    if other:
        raise Conflict(f"the session {other[0]!r} is called {title!r} already; choose another title")


def delete(tx: Tx, principal: Principal, session: SessionId) -> int:
    """Forget a session with all that was said; return how many messages. The ledger keeps what it cost.

    Raises Conflict while others go on from it: they share what was said before they branched off.
    """
    where, parameters = within(principal)
    branches = tx.all(
        f"SELECT id FROM sessions WHERE {where} AND parent = ? ORDER BY id LIMIT 5", (*parameters, session)
    )
    if branches:
        names = ", ".join(str(row[0]) for row in branches)
        raise Conflict(f"the session {session!r} is what {names} went on from; delete these with it, or keep it")
    if not tx.execute(f"DELETE FROM sessions WHERE {where} AND id = ?", (*parameters, session)):
        return 0
    count = tx.execute(f"DELETE FROM messages WHERE {where} AND conversation_id = ?", (*parameters, session))
    for table in ("contexts", "runs", "approvals"):
        tx.execute(f"DELETE FROM {table} WHERE {where} AND session = ?", (*parameters, session))
    return max(count, 1)


def open_context(tx: Tx, principal: Principal, context: Context) -> Context:
    """Store a new context; the one that is there already under its number when it is a repetition."""
    owner = get(tx, principal, context.session)
    if owner is None:
        raise NotFound(f"there is no session {context.session!r}; `hermes sessions list` shows those there are")
    tx.execute(
        "INSERT INTO contexts (tenant, session, number, wire, model, tools, prefix, head, why, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, session, number) DO NOTHING",
        (
            owner.tenant,
            context.session,
            context.number,
            context.wire,
            context.model,
            context.tools,
            context.prefix.decode(),
            context.head,
            context.why,
            tx.now(),
        ),
    )
    return contexts(tx, principal, context.session)[context.number - 1]


def context(tx: Tx, principal: Principal, session: SessionId) -> Context | None:
    """Return the newest context of a session, the one that is sent."""
    where, parameters = within(principal)
    row = tx.one(
        f"SELECT {_CONTEXT} FROM contexts WHERE {where} AND session = ? ORDER BY number DESC LIMIT 1",
        (*parameters, session),
    )
    return None if row is None else _parse_context(row)


def contexts(tx: Tx, principal: Principal, session: SessionId) -> Sequence[Context]:
    """Return every context of a session in its order."""
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT {_CONTEXT} FROM contexts WHERE {where} AND session = ? ORDER BY number", (*parameters, session)
    )
    return [_parse_context(row) for row in rows]


def move_head(tx: Tx, principal: Principal, session: SessionId, number: int, head: MessageId | None) -> int:
    """Say which message is the last one sent; whoever goes back moves it, and deletes nothing."""
    where, parameters = within(principal)
    return tx.execute(
        f"UPDATE contexts SET head = ? WHERE {where} AND session = ? AND number = ?",
        (head, *parameters, session, number),
    )


def _require_own(principal: Principal, tenant: str) -> None:
    if not principal.is_system and tenant != principal.tenant:
        raise NotFound(f"there is no tenant {tenant!r} for {principal.name!r}")


def _parse(row: Row) -> Session:
    return Session(
        id=SessionId(row[0]),
        tenant=Tenant(row[1]),
        owner=row[2],
        source=row[3],
        created_at=from_micros(row[4]),
        updated_at=from_micros(row[5]),
        title=row[6],
        parent=row[7],
        workspace=row[8],
        message_count=row[9],
    )


def _parse_context(row: Row) -> Context:
    return Context(
        session=SessionId(row[0]),
        number=row[1],
        wire=row[2],
        model=row[3],
        tools=row[4],
        prefix=row[5].encode(),
        head=row[6],
        why=row[7],
        created_at=from_micros(row[8]),
    )
