"""The tenant in every query: the one place that turns a principal into a condition."""

from hermes.domain.errors import Denied
from hermes.domain.event import OUTSIDE, Event
from hermes.domain.principal import Principal


def within(principal: Principal) -> tuple[str, tuple[str, ...]]:
    """Return the condition that keeps a query inside the principal's tenant, and its parameters."""
    return ("1 = 1", ()) if principal.is_system else ("tenant = ?", (principal.tenant,))


def require_system(principal: Principal, doing: str) -> None:
    """Raise Denied unless Hermes itself acts: what follows crosses tenants."""
    if not principal.is_system:
        raise Denied(f"{principal.name!r} may not {doing}; only Hermes itself does")


def require_publisher(principal: Principal, event: Event) -> None:
    """Raise Denied unless the principal may publish to the stream of this event, in the name of its tenant."""
    if principal.is_system:
        return
    if event.tenant != principal.tenant or event.stream != f"{OUTSIDE}{principal.tenant}":
        raise Denied(
            f"{principal.name!r} may publish to the stream {OUTSIDE + principal.tenant!r} only, not to {event.stream!r}"
        )
