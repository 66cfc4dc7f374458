"""A fact, in the past tense. Durable facts get a number in their stream; live ones (deltas, progress) are only shown.

Invariant: within one stream the numbers of durable events are 1, 2, 3 … without a gap.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import NewType, TypeAlias, Union

from hermes.domain.principal import Tenant
from hermes.domain.records import dataclass

JSON: TypeAlias = Union[bool, int, float, str, Sequence["JSON"], Mapping[str, "JSON"], None]  # noqa: UP007 - it names itself
Data: TypeAlias = Mapping[str, JSON]
EventId = NewType("EventId", str)
Stream = NewType("Stream", str)

LIVE_ENDINGS = (".delta", ".progress")
OUTSIDE = "hub:"
"""Streams that outsiders may write to begin with this; internal subscribers never match them by a wildcard."""


@dataclass(frozen=True, slots=True)
class Event:
    """One fact. `id` and `dedupe_key` are the caller's, so that publishing again is nothing.

    `seq` counts within the stream and `position` over the whole database; both are given when the event is stored and
    are absent from live events.
    """

    id: EventId
    stream: Stream
    type: str
    source: str
    tenant: Tenant
    at: datetime
    data: Data = field(default_factory=dict)
    subject: str | None = None
    schema: str | None = None
    trace: str | None = None
    cause: str | None = None
    dedupe_key: str | None = None
    seq: int | None = None
    position: int | None = None

    @property
    def is_live(self) -> bool:
        """Whether this is shown to those who look now, and stored nowhere."""
        return self.type.endswith(LIVE_ENDINGS)

    def numbered(self, seq: int, position: int) -> "Event":
        """Return this event as it is stored. By hand, since it is made for every event and `replace` costs twice."""
        return Event(
            self.id,
            self.stream,
            self.type,
            self.source,
            self.tenant,
            self.at,
            self.data,
            self.subject,
            self.schema,
            self.trace,
            self.cause,
            self.dedupe_key,
            seq,
            position,
        )
