"""Events, numbered within their streams.

Invariants: `seq` is gap-free within a stream, positions become visible in their order, and an event that is appended
again (same id, or same dedupe key in its stream) is the one that was there.
"""

from collections.abc import Sequence
from itertools import takewhile

from hermes.domain.clock import Micros, from_micros, to_micros
from hermes.domain.errors import Conflict, Misconfigured
from hermes.domain.event import Event, EventId, Stream
from hermes.domain.principal import Principal, Tenant
from hermes.domain.protocols import Row, Tx
from hermes.store import codec
from hermes.store.scope import require_publisher, within

_SKEW_MICROS = 3_600_000_000
_COLUMNS = "position, id, tenant, stream, seq, type, source, subject, at, data, schema, trace, cause, dedupe_key"

# The numbers in use are their own counter; `streams` remembers the last one of those that were forgotten.
_LAST = (
    "SELECT coalesce((SELECT max(seq) FROM events WHERE tenant = ? AND stream = ?), "
    "(SELECT seq FROM streams WHERE tenant = ? AND name = ?), 0)"
)
_INSERT = (
    "INSERT INTO events (id, tenant, stream, seq, type, source, subject, at, data, schema, trace, cause, dedupe_key) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)


def append(tx: Tx, principal: Principal, event: Event) -> Event:
    """Store a durable event and return it with its numbers; the one already there when it is a repetition."""
    codec.require_names(
        id=event.id,
        stream=event.stream,
        type=event.type,
        source=event.source,
        subject=event.subject,
        schema=event.schema,
        trace=event.trace,
        cause=event.cause,
        key=event.dedupe_key,
    )
    require_publisher(principal, event)
    if not principal.is_system:
        _require_past(tx, event)
    tx.order()
    seq = int(tx.all(_LAST, (event.tenant, event.stream, event.tenant, event.stream))[0][0]) + 1
    position = tx.insert(
        _INSERT,
        (
            event.id,
            event.tenant,
            event.stream,
            seq,
            event.type,
            event.source,
            event.subject,
            to_micros(event.at),
            codec.from_data(event.data),
            event.schema,
            event.trace,
            event.cause,
            event.dedupe_key,
        ),
        "position",
    )
    if position is None:
        return _present(tx, event)
    tx.announce("events")
    return event.numbered(seq, position)


def get(tx: Tx, principal: Principal, event_id: EventId) -> Event | None:
    """Return one event of the principal's tenant."""
    where, parameters = within(principal)
    row = tx.one(f"SELECT {_COLUMNS} FROM events WHERE {where} AND id = ?", (*parameters, event_id))
    return None if row is None else _parse(row)


def beginning_with(tx: Tx, principal: Principal, prefix: str, *, limit: int) -> list[Event]:
    """Return events whose id begins so, the newest first; an event with just this id is alone."""
    where, parameters = within(principal)
    exact = get(tx, principal, EventId(prefix))
    if exact is not None:
        return [exact]
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM events WHERE {where} AND substr(id, 1, ?) = ? ORDER BY position DESC LIMIT ?",
        (*parameters, len(prefix), prefix, limit),
    )
    return [_parse(row) for row in rows]


def before(tx: Tx, principal: Principal, position: int, *, limit: int) -> list[Event]:
    """Return events before `position`, the newest first."""
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM events WHERE position < ? AND {where} ORDER BY position DESC LIMIT ?",
        (position, *parameters, limit),
    )
    return [_parse(row) for row in rows]


def after(tx: Tx, principal: Principal, position: int, *, limit: int) -> list[Event]:
    """Return events in the order of the whole database, beginning after `position`."""
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM events WHERE position > ? AND {where} ORDER BY position LIMIT ?",
        (position, *parameters, limit),
    )
    return [_parse(row) for row in rows]


def of_stream(tx: Tx, principal: Principal, stream: Stream, *, after_seq: int = 0, limit: int = 100) -> list[Event]:
    """Return events of one stream in their order, beginning after `after_seq`."""
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM events WHERE {where} AND stream = ? AND seq > ? ORDER BY seq LIMIT ?",
        (*parameters, stream, after_seq, limit),
    )
    return [_parse(row) for row in rows]


def last_position(tx: Tx, principal: Principal) -> int:
    """Return the position of the newest event that the principal may see, 0 when there is none."""
    where, parameters = within(principal)
    row = tx.one(f"SELECT position FROM events WHERE {where} ORDER BY position DESC LIMIT 1", parameters)
    return 0 if row is None else int(row[0])


def prune(tx: Tx, principal: Principal, before: Micros, *, limit: int = 1000) -> int:
    """Forget old events that every durable subscriber has seen; return how many. No number is ever given twice.

    They go from the oldest position on without leaving one out, so that what remains of a stream has no gap.
    """
    where, parameters = within(principal)
    tx.order()
    seen = tx.one("SELECT coalesce(min(position), 9223372036854775807) FROM cursors")
    rows = tx.all(
        f"SELECT position, at FROM events WHERE {where} AND position <= ? ORDER BY position LIMIT ?",
        (*parameters, seen[0] if seen else 0, limit),
    )
    old = list(takewhile(lambda row: row[1] < before, rows))
    if not old:
        return 0
    forgotten = f"FROM events WHERE {where} AND position <= ?"
    tx.execute(
        f"INSERT INTO streams (tenant, name, seq) SELECT tenant, stream, max(seq) {forgotten} GROUP BY tenant, stream "
        "ON CONFLICT (tenant, name) DO UPDATE SET seq = excluded.seq",
        (*parameters, old[-1][0]),
    )
    return tx.execute(f"DELETE {forgotten}", (*parameters, old[-1][0]))


def _require_past(tx: Tx, event: Event) -> None:
    """An outsider's fact from a far future would never grow old, and keep all that is older from being forgotten."""
    if to_micros(event.at) > tx.now() + _SKEW_MICROS:
        raise Misconfigured(f"the event {event.id!r} lies in the future ({event.at.isoformat()}); look at your clock")


def _present(tx: Tx, event: Event) -> Event:
    """Return the event that kept this one out."""
    rows: Sequence[Row] = tx.all(
        f"SELECT {_COLUMNS} FROM events WHERE tenant = ? AND (id = ? OR (stream = ? AND dedupe_key = ?)) LIMIT 1",
        (event.tenant, event.id, event.stream, event.dedupe_key or ""),
    )
    present = _parse(rows[0])
    if present.stream != event.stream or present.type != event.type:
        raise Conflict(f"the event id {event.id!r} is taken by a {present.type!r} of {present.stream!r}; make a new id")
    return present


def _parse(row: Row) -> Event:
    return Event(
        position=row[0],
        id=EventId(row[1]),
        tenant=Tenant(row[2]),
        stream=Stream(row[3]),
        seq=row[4],
        type=row[5],
        source=row[6],
        subject=row[7],
        at=from_micros(row[8]),
        data=codec.to_data(row[9]),
        schema=row[10],
        trace=row[11],
        cause=row[12],
        dedupe_key=row[13],
    )
