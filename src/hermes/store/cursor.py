"""How far each durable subscriber has come, and who reads for it now.

Invariant: only the holder of the newest fence moves a cursor, in the transaction in which it handled the events.
"""

from hermes.domain.errors import LeaseLost
from hermes.domain.principal import Principal
from hermes.domain.protocols import Tx
from hermes.domain.records import dataclass
from hermes.store.scope import require_system


@dataclass(frozen=True, slots=True)
class Cursor:
    """A subscriber's place. `failures` counts the tries at the event that comes next."""

    name: str
    position: int
    failures: int
    fence: int


def take(tx: Tx, principal: Principal, name: str, owner: str, *, lease_micros: int, start: int) -> Cursor | None:
    """Become the reader of a subscription, or stay it; None while another one's lease runs.

    A subscription that is new begins after the position `start`.
    """
    require_system(principal, "read for a subscription")
    now = tx.now()
    tx.execute("INSERT INTO cursors (name, position) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, start))
    row = tx.one(
        # A lease that ends later than it is long was given before the clock was set back.
        "UPDATE cursors SET fence = CASE WHEN owner = ? THEN fence ELSE fence + 1 END, owner = ?, lease_until = ?, "
        "lease = ? WHERE name = ? "
        "AND (owner IS NULL OR owner = ? OR lease_until < ? OR lease_until > ? + lease) "
        "RETURNING position, failures, fence",
        (owner, owner, now + lease_micros, lease_micros, name, owner, now, now),
    )
    return None if row is None else Cursor(name, row[0], row[1], row[2])


def free(tx: Tx, principal: Principal, name: str, owner: str) -> None:
    """Take a subscription away from anybody but `owner`: a file has one server, so the others are dead."""
    require_system(principal, "take a cursor away")
    tx.execute("UPDATE cursors SET owner = NULL WHERE name = ? AND owner <> ?", (name, owner))


def advance(tx: Tx, principal: Principal, cursor: Cursor, position: int, *, lease_micros: int) -> bool:
    """Move on to `position` and keep the lease, before the events up to there are handled in the same transaction.

    Returns False when the cursor is there already: a commit whose answer was lost, so nothing is to be handled. Raises
    LeaseLost when somebody else reads now.
    """
    require_system(principal, "move a cursor")
    moved = tx.execute(
        "UPDATE cursors SET position = ?, failures = 0, lease_until = ? WHERE name = ? AND fence = ? AND position < ?",
        (position, tx.now() + lease_micros, cursor.name, cursor.fence, position),
    )
    if not moved:
        _require_held(tx, cursor)
    return bool(moved)


def note_failure(tx: Tx, principal: Principal, cursor: Cursor) -> None:
    """Remember that the next event could not be handled once more."""
    require_system(principal, "move a cursor")
    tx.execute(
        "UPDATE cursors SET failures = ? WHERE name = ? AND fence = ? AND position = ?",
        (cursor.failures + 1, cursor.name, cursor.fence, cursor.position),
    )
    _require_held(tx, cursor)


def drop(tx: Tx, principal: Principal, cursor: Cursor) -> None:
    """Let somebody else read at once."""
    require_system(principal, "move a cursor")
    tx.execute("UPDATE cursors SET owner = NULL WHERE name = ? AND fence = ?", (cursor.name, cursor.fence))


def positions(tx: Tx, principal: Principal) -> list[tuple[str, int, int]]:
    """Return name, position and failures of every subscription."""
    require_system(principal, "look at cursors")
    rows = tx.all("SELECT name, position, failures FROM cursors ORDER BY name")
    return [(row[0], row[1], row[2]) for row in rows]


def _require_held(tx: Tx, cursor: Cursor) -> None:
    row = tx.one("SELECT fence FROM cursors WHERE name = ?", (cursor.name,))
    if row is None or row[0] != cursor.fence:
        raise LeaseLost(f"another process now reads for the subscription {cursor.name!r}")
