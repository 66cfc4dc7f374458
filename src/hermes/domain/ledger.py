"""What a model call has used and cost. Money is in millionths of a dollar."""

from hermes.domain.model import Usage
from hermes.domain.principal import Tenant
from hermes.domain.records import dataclass
from hermes.domain.session import RunId, SessionId


@dataclass(frozen=True, slots=True)
class Entry:
    """One call. `purpose` is `turn`, or the side task it was made for; `cost` is None when no price is known."""

    id: str
    tenant: Tenant
    actor: str
    purpose: str
    model: str
    usage: Usage
    cost: int | None
    session: SessionId | None = None
    run: RunId | None = None


@dataclass(frozen=True, slots=True)
class Total:
    """What several calls have used together; `unpriced` of them are not in `cost`."""

    calls: int
    usage: Usage
    cost: int
    unpriced: int
