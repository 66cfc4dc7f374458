"""The two wire formats behind one face, so that one provider serves both."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from hermes.domain.clock import Clock
from hermes.domain.message import Message
from hermes.domain.model import Finish, Request, Usage
from hermes.domain.records import dataclass
from hermes.domain.tool import ToolSpec
from hermes.llm.vendor import Quirks
from hermes.llm.wire import anthropic, chat
from hermes.llm.wire.answer import Answer
from hermes.llm.wire.anthropic_reader import AnthropicReader
from hermes.llm.wire.chat_reader import ChatReader
from hermes.llm.wire.failing import Complaint
from hermes.llm.wire.pieces import settled


class Reader(Protocol):
    """Reads one answer; see the readers of the two wires."""

    answer: Answer
    model: str
    complaint: Complaint | None
    is_done: bool

    @property
    def has_ended(self) -> bool:
        """Whether the server said that this is all."""
        ...

    @property
    def usage(self) -> Usage:
        """What the vendor counted."""
        ...

    def take(self, name: bytes, data: bytes) -> None:
        """Take one event."""
        ...

    def whole(self, body: bytes) -> None:
        """Take an answer that was not streamed."""
        ...

    def partial(self, clock: Clock) -> Message | None:
        """Return what had arrived."""
        ...

    def result(self, clock: Clock, *, reads_calls: bool) -> tuple[Message, Finish]:
        """Return the answer and why it ended."""
        ...


class Format(Protocol):
    """How one model at one vendor is spoken to."""

    @property
    def name(self) -> str:
        """The name of the wire."""
        ...

    @property
    def path(self) -> str:
        """What stands behind the base URL."""
        ...

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers that carry the key."""
        ...

    def prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        """Write what stands before the messages."""
        ...

    def encode(self, message: Message) -> bytes:
        """Write one message."""
        ...

    def tail(self, request: Request) -> bytes:
        """Write what stands after the messages."""
        ...

    def joined(self, messages: Sequence[bytes]) -> bytes:
        """Return the messages as they are sent: with commas, and a result for each call that lacks one."""
        ...

    def reader(self, answer: Answer) -> Reader:
        """Return what reads an answer."""
        ...

    def tool_names(self, prefix: bytes) -> frozenset[str]:
        """Return the names of the tools in a prefix."""
        ...


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """Chat completions."""

    model: str
    quirks: Quirks
    name: str = chat.NAME
    path: str = "/chat/completions"

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers that carry the key."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        """Write what stands before the messages."""
        return chat.prefix(self.model, self.quirks, system, tools)

    def encode(self, message: Message) -> bytes:
        """Write one message."""
        return chat.encode(self.quirks, message)

    def tail(self, request: Request) -> bytes:
        """Write what stands after the messages."""
        return chat.tail(self.quirks, request)

    def joined(self, messages: Sequence[bytes]) -> bytes:
        """Return the messages as they are sent."""
        return chat.joined(settled(messages, b'"tool_calls":', chat.unanswered))

    def reader(self, answer: Answer) -> Reader:
        """Return what reads an answer."""
        return ChatReader(answer, self.quirks.returns)

    def tool_names(self, prefix: bytes) -> frozenset[str]:
        """Return the names of the tools in a prefix."""
        tools = msgspec.json.decode(prefix.removesuffix(b",") + b"]}").get("tools", [])
        return frozenset(tool["function"]["name"] for tool in tools)


@dataclass(frozen=True, slots=True)
class AnthropicFormat:
    """Anthropic's messages."""

    model: str
    quirks: Quirks
    name: str = anthropic.NAME
    path: str = "/v1/messages"

    def headers(self, key: str) -> Mapping[str, str]:
        """Return the headers that carry the key."""
        version = {"anthropic-version": "2023-06-01"}
        return {"x-api-key": key, **version} if key else version

    def prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        """Write what stands before the messages."""
        return anthropic.prefix(self.model, caches=self.quirks.caches, system=system, tools=tools)

    def encode(self, message: Message) -> bytes:
        """Write one message."""
        return anthropic.encode(message)

    def tail(self, request: Request) -> bytes:
        """Write what stands after the messages."""
        return anthropic.tail(self.model, request)

    def joined(self, messages: Sequence[bytes]) -> bytes:
        """Return the messages as they are sent."""
        return b",".join(settled(messages, b'"type":"tool_use"', anthropic.unanswered))

    def reader(self, answer: Answer) -> Reader:
        """Return what reads an answer."""
        return AnthropicReader(answer)

    def tool_names(self, prefix: bytes) -> frozenset[str]:
        """Return the names of the tools in a prefix."""
        return frozenset(tool["name"] for tool in msgspec.json.decode(prefix + b"]}").get("tools", []))


FORMATS: Mapping[str, type[ChatFormat | AnthropicFormat]] = {chat.NAME: ChatFormat, anthropic.NAME: AnthropicFormat}
