"""What a model is sent of one session: a prefix, and the messages on the way to the head, each encoded once.

Invariant: within a context the prefix is the same bytes for ever, and a message is the same bytes in every request.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field

from hermes.domain.message import CallId, CallPart, Message, MessageId
from hermes.domain.model import Provider, Usage
from hermes.domain.records import dataclass
from hermes.domain.session import Context

_BYTES_A_TOKEN = 3.6
"""What a token is taken for until the model has counted some: close for code and English, high for other scripts."""
_FEWEST, _MOST = 1.5, 6.0


@dataclass(slots=True)
class Conversation:
    """One context in hand. Owned by one run at a time; kept between runs as long as its head is the stored one."""

    context: Context
    messages: list[Message] = field(default_factory=list)
    encoded: list[bytes] = field(default_factory=list)
    size: int = 0
    _open: dict[CallId, CallPart] = field(default_factory=dict)
    _counted: int = 0
    _counted_size: int = 0

    @classmethod
    def load(cls, context: Context, messages: Iterable[Message], provider: Provider) -> "Conversation":
        """Encode what is stored. The same messages give the same bytes, also after a restart."""
        loaded = cls(context, size=len(context.prefix))
        for message in messages:
            loaded.add(message, provider.encode(message))
        return loaded

    def add(self, message: Message, encoded: bytes) -> None:
        """Append a message that is stored."""
        self.messages.append(message)
        self.encoded.append(encoded)
        self.size += len(encoded) + 1
        for call in message.calls:
            self._open[call.id] = call
        for result in message.results:
            self._open.pop(result.call, None)

    @property
    def head(self) -> MessageId | None:
        """The newest message."""
        return self.messages[-1].id if self.messages else self.context.head

    @property
    def unanswered(self) -> Sequence[CallPart]:
        """The calls that have no result, in the order they were made."""
        return tuple(self._open.values())

    def count(self, usage: Usage) -> None:
        """Remember what the model counted for all that was sent and answered; later estimates begin there."""
        if usage.input:
            self._counted = usage.input + usage.output
            self._counted_size = self.size

    @property
    def tokens(self) -> int:
        """About how many tokens the next request has: what was counted last, and an estimate of what came since."""
        if not self._counted:
            return int(self.size / _BYTES_A_TOKEN)
        rate = min(max(self._counted_size / self._counted, _FEWEST), _MOST)
        return self._counted + int((self.size - self._counted_size) / rate)
