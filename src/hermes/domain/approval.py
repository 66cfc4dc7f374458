"""A person's word on one effect, or on all effects of a pattern.

Invariant: an answer belongs to the effect it was asked for, counts once, and only for five minutes.
"""

from datetime import datetime
from typing import Literal, Protocol

from hermes.domain.records import dataclass
from hermes.domain.session import RunId, SessionId

Scope = Literal["once", "session", "always"]
State = Literal["requested", "given", "denied", "expired", "revoked"]


@dataclass(frozen=True, slots=True)
class Approval:
    """One question. `effect` is the fingerprint of exactly what will be done; `pattern` is what a wider yes covers."""

    id: str
    session: SessionId
    run: RunId
    effect: str
    pattern: str
    shown: str
    rule: str
    created_at: datetime
    state: State = "requested"
    scope: Scope = "once"
    decided_by: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person said. `reason` is for the model when it was no."""

    state: State
    scope: Scope = "once"
    reason: str = ""


class Approver(Protocol):
    """Somebody who can be asked now: a screen, a chat. Cancelled when the time for an answer is up."""

    async def decide(self, asked: Approval) -> Decision:
        """Show exactly what will be done and why it is asked, and return the answer."""
        ...
