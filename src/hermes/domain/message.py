"""What was said: by the user, by the model, by a tool. The messages are the truth of a session.

Invariant: a message never changes once it is stored; every call part has exactly one result part, in a later message.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Literal, NewType, TypeAlias

from hermes.domain.records import dataclass

MessageId = NewType("MessageId", str)
CallId = NewType("CallId", str)

Role = Literal["user", "assistant", "tool"]
Status = Literal["complete", "uncertain", "interrupted"]
"""`uncertain`: whether the tool did its work is unknown. `interrupted`: the answer was cut short."""


@dataclass(frozen=True, slots=True)
class TextPart:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class ImagePart:
    """A picture, as base64 or as an address."""

    media_type: str
    data: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """What the model thought aloud; for people to read. What the vendor wants back stands in `Message.opaque`."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPart:
    """The model orders a tool. `arguments` is the JSON text of an object, repaired where the model wrote it badly."""

    id: CallId
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ResultPart:
    """What a tool answered to one call."""

    call: CallId
    name: str
    text: str
    is_error: bool = False
    images: tuple[ImagePart, ...] = ()


Part: TypeAlias = TextPart | ImagePart | ReasoningPart | CallPart | ResultPart


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `opaque` holds, by wire format, what a vendor wants back unchanged (signed thinking)."""

    id: MessageId
    role: Role
    parts: tuple[Part, ...]
    at: datetime
    status: Status = "complete"
    parent: MessageId | None = None
    opaque: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All words of it, without reasoning."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))

    @property
    def reasoning(self) -> str:
        """What the model thought aloud."""
        return "".join(part.text for part in self.parts if isinstance(part, ReasoningPart))

    @property
    def calls(self) -> tuple[CallPart, ...]:
        """The tools it orders."""
        return tuple(part for part in self.parts if isinstance(part, CallPart))

    @property
    def results(self) -> tuple[ResultPart, ...]:
        """The tool results it brings."""
        return tuple(part for part in self.parts if isinstance(part, ResultPart))
