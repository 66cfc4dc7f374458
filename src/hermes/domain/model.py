"""One call of a language model: what is asked, what streams back, what it cost.

Invariant: a request is bytes. Prefix and messages are encoded once; a later request of the same context begins with
the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Literal, NamedTuple, Protocol, TypeAlias

from hermes.domain.errors import LimitReached, Unavailable
from hermes.domain.event import JSON
from hermes.domain.message import Message
from hermes.domain.records import dataclass
from hermes.domain.tool import ToolSpec

Finish = Literal["stop", "tool_calls", "length", "refusal", "other"]


class Delta(NamedTuple):
    """A piece of the answer as it arrives; `call` carries the name of a tool that the model begins to order.

    `retry` says why the model is asked again: what was shown of this answer is void. `note` tells a person, in a line,
    what the model does before it answers: it is no part of the answer.
    """

    kind: Literal["text", "reasoning", "call", "retry", "note"]
    text: str


Show: TypeAlias = Callable[[Delta], None]
"""Called for each piece as it arrives; it returns at once and never raises."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, as the vendor counted them. `input` includes what was read from and written to its cache."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True, slots=True)
class Request:
    """One model call. The wire's body is `prefix`, then `messages` joined by commas, then a tail it makes of the rest.

    `ephemeral` is appended after the messages, and stored nowhere.
    """

    prefix: bytes
    messages: Sequence[bytes]
    ephemeral: Sequence[bytes] = ()
    max_tokens: int | None = None
    temperature: float | None = None
    schema: Mapping[str, JSON] | None = None
    """The answer is JSON of this schema."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Further fields of the body, such as `reasoning_effort`."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answered, also as the wire wants to have it back."""

    message: Message
    encoded: bytes
    finish: Finish
    usage: Usage
    model: str


class ContextOverflow(LimitReached):
    """The request is longer than the model's window: compact, then ask again."""


class Cut(Unavailable):
    """The answer broke off; `partial` is what had arrived."""

    def __init__(self, message: str, *, partial: Message | None = None, retry_after: float = 1.0) -> None:
        super().__init__(message, retry_after=retry_after)
        self.partial = partial


class Provider(Protocol):
    """One model at one vendor. Stateless between calls; one instance serves many runs at once.

    `call` raises Unavailable (try again, with `retry_after`), Cut (it broke off), ContextOverflow, LimitReached (quota
    used up), Denied (the key), NotFound (the model), Misconfigured (the request), Unsupported. Cancelling it closes
    the connection.
    """

    @property
    def name(self) -> str:
        """Vendor and model, as people write it: `openrouter/qwen/qwen3-coder`."""
        ...

    @property
    def wire(self) -> str:
        """The name of the wire format; encoded messages belong to it."""
        ...

    @property
    def window(self) -> int:
        """How many tokens the model can read."""
        ...

    def prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        """Encode what never changes within a context; the same arguments give the same bytes."""
        ...

    def encode(self, message: Message) -> bytes:
        """Encode one message; the same message gives the same bytes."""
        ...

    async def call(self, request: Request, show: Show) -> Reply:
        """Ask the model once, without retries."""
        ...
