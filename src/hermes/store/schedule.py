"""Schedules: what is due next.

Invariant: a schedule moves on in the transaction that puts its jobs, and only if nobody has moved it before.
"""

from hermes.domain.clock import Micros
from hermes.domain.errors import Conflict, NotFound
from hermes.domain.principal import Principal
from hermes.domain.protocols import Row, Tx
from hermes.domain.schedule import Schedule, ScheduleId
from hermes.store import codec
from hermes.store.scope import require_system, within

_COLUMNS = "id, tenant, name, principal, rule, zone, kind, payload, lane, missed, is_paused, next_at, last_at"


def put(tx: Tx, principal: Principal, schedule: Schedule) -> Schedule:
    """Store a new schedule. Raises Conflict when the name is taken by another one."""
    codec.require_names(id=schedule.id, name=schedule.name, kind=schedule.kind, lane=schedule.lane)
    if not principal.is_system and schedule.principal.tenant != principal.tenant:
        raise NotFound(f"there is no tenant {schedule.principal.tenant!r} for {principal.name!r}")
    inserted = tx.execute(
        "INSERT INTO schedules (id, tenant, name, principal, rule, zone, kind, payload, lane, missed, is_paused, "
        "next_at, last_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            schedule.id,
            schedule.principal.tenant,
            schedule.name,
            codec.from_principal(schedule.principal),
            schedule.rule,
            schedule.zone,
            schedule.kind,
            codec.from_data(schedule.payload),
            schedule.lane,
            schedule.missed,
            int(schedule.is_paused),
            codec.from_time(schedule.next_at),
            codec.from_time(schedule.last_at),
        ),
    )
    present = _named(tx, schedule.principal, schedule.name)
    if not inserted and (present is None or present.id != schedule.id):
        raise Conflict(f"there is a schedule {schedule.name!r} already; remove it first, or choose another name")
    tx.announce("jobs")
    return present or schedule


def due(tx: Tx, principal: Principal, *, limit: int) -> list[Schedule]:
    """Return schedules whose time has come, the longest overdue first."""
    require_system(principal, "run schedules")
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM schedules WHERE is_paused = 0 AND next_at <= ? ORDER BY next_at LIMIT ?",
        (tx.now(), limit),
    )
    return [_parse(row) for row in rows]


def move_on(tx: Tx, principal: Principal, schedule: Schedule, *, next_at: Micros | None) -> bool:
    """Set the next time; False when somebody has moved this schedule since it was read."""
    require_system(principal, "run schedules")
    changed = tx.execute(
        "UPDATE schedules SET last_at = next_at, next_at = ? "
        "WHERE tenant = ? AND id = ? AND next_at = ? AND is_paused = 0",
        (next_at, schedule.principal.tenant, schedule.id, codec.from_time(schedule.next_at)),
    )
    return bool(changed)


def correct(tx: Tx, principal: Principal, schedule: Schedule, *, next_at: Micros | None, is_paused: bool) -> bool:
    """Set the next time although the one before has not come; False when somebody has moved this schedule since."""
    require_system(principal, "correct times")
    changed = tx.execute(
        "UPDATE schedules SET next_at = ?, is_paused = ? WHERE tenant = ? AND id = ? AND next_at = ? AND is_paused = 0",
        (next_at, int(is_paused), schedule.principal.tenant, schedule.id, codec.from_time(schedule.next_at)),
    )
    return bool(changed)


def get(tx: Tx, principal: Principal, name: str) -> Schedule | None:
    """Return the principal's schedule of that name."""
    return _named(tx, principal, name)


def find(tx: Tx, principal: Principal) -> list[Schedule]:
    """Return every schedule of the principal's tenant, by name."""
    where, parameters = within(principal)
    return [_parse(row) for row in tx.all(f"SELECT {_COLUMNS} FROM schedules WHERE {where} ORDER BY name", parameters)]


def pause(tx: Tx, principal: Principal, name: str, *, is_paused: bool, next_at: Micros | None) -> Schedule:
    """Pause a schedule, or let it go on with `next_at` as its next time."""
    schedule = _require(tx, principal, name)
    tx.execute(
        "UPDATE schedules SET is_paused = ?, next_at = ? WHERE tenant = ? AND id = ?",
        (int(is_paused), next_at, schedule.principal.tenant, schedule.id),
    )
    tx.announce("jobs")
    return _require(tx, principal, name)


def remove(tx: Tx, principal: Principal, name: str) -> Schedule:
    """Forget a schedule; jobs it has put stay. Returns what it was."""
    schedule = _require(tx, principal, name)
    tx.execute("DELETE FROM schedules WHERE tenant = ? AND id = ?", (schedule.principal.tenant, schedule.id))
    return schedule


def _named(tx: Tx, principal: Principal, name: str) -> Schedule | None:
    where, parameters = within(principal)
    row = tx.one(f"SELECT {_COLUMNS} FROM schedules WHERE {where} AND name = ?", (*parameters, name))
    return None if row is None else _parse(row)


def _require(tx: Tx, principal: Principal, name: str) -> Schedule:
    schedule = _named(tx, principal, name)
    if schedule is None:
        raise NotFound(f"there is no schedule {name!r}; `hermes cron list` shows those there are")
    return schedule


def _parse(row: Row) -> Schedule:
    return Schedule(
        id=ScheduleId(row[0]),
        principal=codec.to_principal(row[3], row[1]),
        name=row[2],
        rule=row[4],
        zone=row[5],
        kind=row[6],
        payload=codec.to_data(row[7]),
        lane=row[8],
        missed=row[9],
        is_paused=bool(row[10]),
        next_at=codec.to_time(row[11]),
        last_at=codec.to_time(row[12]),
    )
