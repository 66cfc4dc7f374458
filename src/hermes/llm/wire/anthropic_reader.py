"""Messages, as Anthropic speaks it: how an answer is read, streamed or whole.

Invariant: thinking goes back as it came, at its place among the other blocks, or not at all when its signature is
missing; what cannot be understood is an error that says so.
"""

import json
from typing import Any

import msgspec

from hermes.domain.clock import Clock
from hermes.domain.errors import Unavailable
from hermes.domain.message import Message
from hermes.domain.model import Finish, Usage
from hermes.llm.tolerant import whole_characters
from hermes.llm.wire.answer import Answer, Call, ended
from hermes.llm.wire.failing import Complaint, complaint_in
from hermes.llm.wire.pieces import encoded

_FINISHES: dict[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "other",
}
_MOST_BLOCKS = 10_000


class _Delta(msgspec.Struct, gc=False):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Event(msgspec.Struct, gc=False):
    type: str | None = None
    index: int | None = None
    delta: _Delta | None = None
    content_block: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


_DECODE = msgspec.json.Decoder(_Event).decode


class AnthropicReader:
    """Reads one answer. `complaint` is set when the server reports an error in the middle of it."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.model = ""
        self.complaint: Complaint | None = None
        self.is_done = False
        self._counts: dict[str, int] = {}
        self._finish = ""
        self._calls: dict[int, Call] = {}
        self._thoughts: dict[int, dict[str, Any]] = {}
        self._order: list[tuple[int, str]] = []
        self._worded: set[int] = set()

    @property
    def has_ended(self) -> bool:
        """Whether the server said that this is all."""
        return self.is_done or bool(self._finish)

    @property
    def usage(self) -> Usage:
        """What has been counted so far; input that came from the cache is counted apart by the vendor."""
        read, wrote = self._counts.get("cache_read_input_tokens", 0), self._counts.get("cache_creation_input_tokens", 0)
        return Usage(
            input=self._counts.get("input_tokens", 0) + read + wrote,
            output=self._counts.get("output_tokens", 0),
            cache_read=read,
            cache_write=wrote,
            reasoning=self._counts.get("thinking_tokens", 0),
        )

    def take(self, _name: bytes, data: bytes) -> None:
        """Take one event of the stream."""
        try:
            event = _DECODE(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            event = _leniently(data)
        match event.type:
            case "content_block_delta":
                self._delta(event.index or 0, event.delta or _Delta())
            case "content_block_start":
                self._begin(event.index or 0, event.content_block or {})
            case "message_start":
                message = event.message or {}
                self.model = str(message.get("model") or "")
                self._count(message.get("usage"))
            case "message_delta":
                self._count(event.usage)
                if event.delta is not None and event.delta.stop_reason:
                    self._finish = event.delta.stop_reason
            case "message_stop":
                self.is_done = True
            case "error":
                self.complaint = complaint_in({"error": event.error})
            case _ if event.error:
                self.complaint = complaint_in({"error": event.error})
            case _:
                # Pings and events of a later version.
                return

    def whole(self, body: bytes) -> None:
        """Take an answer that was not streamed."""
        try:
            value = json.loads(body.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise Unavailable(f"the answer is not a JSON object: it begins with {_start(body)!r}")
        if value.get("error"):
            self.complaint = complaint_in(value)
            return
        content = value.get("content")
        blocks = content if isinstance(content, list) else []
        for index, block in enumerate(blocks):
            if isinstance(block, dict):
                self._begin(index, block)
        self.model = str(value.get("model") or "")
        self._finish = str(value.get("stop_reason") or "end_turn")
        self._count(value.get("usage"))
        self.is_done = True

    def _begin(self, index: int, block: dict[str, Any]) -> None:
        kind = block.get("type")
        if len(self._order) >= _MOST_BLOCKS:
            raise Unavailable(f"the answer has more than {_MOST_BLOCKS:,} blocks; it was not read further")
        self._order.append((index, str(kind)))
        if kind == "text":
            if text := block.get("text"):
                self._say(index, str(text))
        elif kind == "tool_use":
            call = self._calls[index] = self.answer.order(str(block.get("id") or ""), str(block.get("name") or ""))
            if given := block.get("input"):
                self.answer.add(call, given if isinstance(given, str) else json.dumps(given))
        elif kind in {"thinking", "redacted_thinking"}:
            self._thoughts[index] = dict(block)
            if thought := block.get("thinking"):
                self.answer.think(str(thought))

    def _delta(self, index: int, delta: _Delta) -> None:
        if delta.text:
            self._say(index, delta.text)
        elif delta.partial_json:
            call = self._calls.get(index)
            if call is None:
                call = self._calls[index] = self.answer.order("", "")
            self.answer.add(call, delta.partial_json)
        elif delta.thinking or delta.signature:
            block = self._thoughts.setdefault(index, {"type": "thinking", "thinking": ""})
            if delta.thinking:
                block["thinking"] = str(block.get("thinking") or "") + delta.thinking
                self.answer.think(delta.thinking)
            if delta.signature:
                block["signature"] = str(block.get("signature") or "") + delta.signature

    def _say(self, index: int, text: str) -> None:
        if index not in self._worded and not text.isspace():
            self._worded.add(index)
        self.answer.say(text)

    def _count(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        details = usage.get("output_tokens_details")
        counted = {**usage, **details} if isinstance(details, dict) else usage
        self._counts |= {name: value for name, value in counted.items() if isinstance(value, int) and value >= 0}

    def partial(self, clock: Clock) -> Message | None:
        """Return what had arrived when the answer broke off."""
        return self.answer.partial(clock)

    def result(self, clock: Clock, *, reads_calls: bool) -> tuple[Message, Finish]:
        """Return the answer and why it ended."""
        is_cut = _FINISHES.get(self._finish) == "length"
        kept = self._kept()
        opaque = {"anthropic": encoded(kept).decode()} if kept else {}
        message = self.answer.message(clock, opaque, is_cut=is_cut, reads_calls=reads_calls)
        return message, ended(self._finish or "end_turn", _FINISHES, has_calls=bool(message.calls))

    def _kept(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the blocks that the vendor wants back, each with its place in the content we will send.

        There all words are one block, which stands before the calls.
        """
        kept, has_text, calls, written = [], False, 0, 0
        for index, kind in self._order:
            if index in self._worded and not has_text:
                has_text = True
                written += 1
            elif kind == "tool_use":
                calls += 1
                written += 1
            elif index in self._thoughts:
                block = self._thoughts[index]
                if block.get("type") == "redacted_thinking" or block.get("signature"):
                    kept.append((written, block))
                    written += 1
        return kept


def _leniently(data: bytes) -> _Event:
    """Read what is JSON but not quite of this format, or not quite UTF-8."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise Unavailable(f"the answer is not JSON: it begins with {_start(data)!r}") from None
    if not isinstance(value, dict):
        raise Unavailable(f"the answer is not a JSON object: it begins with {_start(data)!r}")
    delta = value.get("delta")
    given = delta if isinstance(delta, dict) else {}
    texts = {name: text for name in _Delta.__struct_fields__ if isinstance(text := given.get(name), str)}
    objects = {
        name: one if isinstance(one := value.get(name), dict) else None
        for name in ("content_block", "message", "usage")
    }
    index = value.get("index")
    return _Event(
        str(value.get("type")),
        index if isinstance(index, int) else None,
        _Delta(**texts),
        objects["content_block"],
        objects["message"],
        objects["usage"],
        value.get("error"),
    )


def _start(data: bytes) -> str:
    return whole_characters(data[:80].decode("utf-8", "replace"))
