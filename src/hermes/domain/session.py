"""A conversation, for ever under one id; what of it is sent to the model; and one turn of it.

Invariants: a context's prefix never changes; a run ends exactly once; nothing that was said is deleted by going back.
"""

from datetime import datetime
from typing import Literal, NewType

from hermes.domain.message import MessageId
from hermes.domain.principal import Principal, Tenant
from hermes.domain.records import dataclass

SessionId = NewType("SessionId", str)
RunId = NewType("RunId", str)

RunState = Literal["running", "done", "failed", "cancelled", "suspended"]


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation. `parent` is the session it was branched from."""

    id: SessionId
    tenant: Tenant
    owner: str
    source: str
    created_at: datetime
    updated_at: datetime
    title: str | None = None
    parent: SessionId | None = None
    workspace: str = ""
    message_count: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """What is sent: `prefix`, then the messages from the root to `head`. A reset opens the next number.

    `tools` is a fingerprint of the tools that the prefix names.
    """

    session: SessionId
    number: int
    wire: str
    model: str
    tools: str
    prefix: bytes
    head: MessageId | None
    why: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Run:
    """One turn: from a message of the user to the answer, or to what stopped it."""

    id: RunId
    session: SessionId
    principal: Principal
    state: RunState
    started_at: datetime
    ended_at: datetime | None = None
    reason: str | None = None
    steps: int = 0
