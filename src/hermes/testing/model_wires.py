"""How a vendor's server would write a turn, on both wires, streamed and whole; and what it refuses in a request."""

import json
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from hermes.testing.turn import Order, Say

_CHAT_ENDS = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "length": "length",
    "refusal": "content_filter",
    "other": "odd",
}
_ENDS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refusal": "refusal", "other": "odd"}
SIGNATURE = "c2lnbmVk"


def text_of(arguments: Mapping[str, Any] | str) -> str:
    """Return a call's arguments as the model wrote them."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


class ChatScribe:
    """Writes chat completions."""

    def __init__(self, model: str, number: int) -> None:
        self._about = {"id": f"chatcmpl-{number}", "created": 1_800_000_000, "model": model}
        self._number = number

    def stream(self, turn: Say, *, with_usage: bool = True) -> Iterator[bytes]:
        """Give the events of an answer."""
        yield self.chunk({"role": "assistant", "content": ""})
        for piece in turn.pieces(turn.reasoning):
            yield self.chunk({"reasoning_content": piece})
        for piece in turn.pieces(turn.text):
            yield self.chunk({"content": piece})
        for index, order in enumerate(turn.calls):
            yield from self.call(index, order, turn)
        yield self.chunk({}, finish=_CHAT_ENDS[turn.ends])
        if with_usage:
            yield self.event({"choices": [], "usage": self.usage(turn)})
        yield b"data: [DONE]\n\n"

    def call(self, index: int, order: Order, turn: Say) -> Iterator[bytes]:
        """Give the events of one call."""
        head = {"index": index, "id": order.id or self._id(index), "type": "function"}
        yield self.chunk({"tool_calls": [{**head, "function": {"name": order.name, "arguments": ""}}]})
        for piece in turn.pieces(text_of(order.arguments)):
            yield self.chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})

    def whole(self, turn: Say) -> dict[str, Any]:
        """Return an answer that is not streamed."""
        message: dict[str, Any] = {"role": "assistant", "content": turn.text or None, "refusal": None}
        if turn.reasoning:
            message["reasoning_content"] = turn.reasoning
        if turn.calls:
            message["tool_calls"] = [
                {
                    "id": order.id or self._id(index),
                    "type": "function",
                    "function": {"name": order.name, "arguments": text_of(order.arguments)},
                }
                for index, order in enumerate(turn.calls)
            ]
        choice = {"index": 0, "message": message, "finish_reason": _CHAT_ENDS[turn.ends], "logprobs": None}
        return {**self._about, "object": "chat.completion", "choices": [choice], "usage": self.usage(turn)}

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None, **more: object) -> bytes:
        """Write one event with one choice."""
        return self.event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]})

    def event(self, fields: Mapping[str, Any]) -> bytes:
        """Write one event."""
        return b"data: %s\n\n" % json.dumps({**self._about, "object": "chat.completion.chunk", **fields}).encode()

    def usage(self, turn: Say) -> dict[str, Any]:
        """Count as the vendor does."""
        return {
            "prompt_tokens": turn.usage.input,
            "completion_tokens": turn.usage.output,
            "total_tokens": turn.usage.input + turn.usage.output,
            "prompt_tokens_details": {"cached_tokens": turn.usage.cache_read},
            "completion_tokens_details": {"reasoning_tokens": turn.usage.reasoning},
        }

    def _id(self, index: int) -> str:
        return f"call_{self._number}_{index}"


class AnthropicScribe:
    """Writes Anthropic's messages."""

    def __init__(self, model: str, number: int) -> None:
        self._model = model
        self._number = number

    def stream(self, turn: Say) -> Iterator[bytes]:
        """Give the events of an answer."""
        started = self.whole(Say(usage=turn.usage)) | {"content": [], "stop_reason": None}
        started["usage"] |= {"output_tokens": 1}
        yield self.event("message_start", message=started)
        yield self.event("ping")
        index = count()
        if turn.reasoning:
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in turn.pieces(turn.reasoning)]
            yield from self.block(next(index), empty, [*deltas, {"type": "signature_delta", "signature": SIGNATURE}])
        if turn.text:
            deltas = [{"type": "text_delta", "text": piece} for piece in turn.pieces(turn.text)]
            yield from self.block(next(index), {"type": "text", "text": ""}, deltas)
        for number, order in enumerate(turn.calls):
            deltas = [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in ["", *turn.pieces(text_of(order.arguments))]
            ]
            start = {"type": "tool_use", "id": order.id or self._id(number), "name": order.name, "input": {}}
            yield from self.block(next(index), start, deltas)
        ended = {"stop_reason": _ENDS[turn.ends], "stop_sequence": None}
        yield self.event("message_delta", delta=ended, usage={"output_tokens": turn.usage.output})
        yield self.event("message_stop")

    def block(self, index: int, start: Mapping[str, Any], deltas: list[dict[str, str]]) -> Iterator[bytes]:
        """Give the events of one block."""
        yield self.event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield self.event("content_block_delta", index=index, delta=delta)
        yield self.event("content_block_stop", index=index)

    def whole(self, turn: Say) -> dict[str, Any]:
        """Return an answer that is not streamed."""
        content: list[dict[str, Any]] = []
        if turn.reasoning:
            content.append({"type": "thinking", "thinking": turn.reasoning, "signature": SIGNATURE})
        if turn.text:
            content.append({"type": "text", "text": turn.text})
        for number, order in enumerate(turn.calls):
            given = json.loads(text_of(order.arguments))
            content.append({"type": "tool_use", "id": order.id or self._id(number), "name": order.name, "input": given})
        return {
            "id": f"msg_{self._number}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": _ENDS[turn.ends],
            "stop_sequence": None,
            "usage": {
                "input_tokens": turn.usage.input - turn.usage.cache_read - turn.usage.cache_write,
                "output_tokens": turn.usage.output,
                "cache_read_input_tokens": turn.usage.cache_read,
                "cache_creation_input_tokens": turn.usage.cache_write,
            },
        }

    def event(self, kind: str, **fields: object) -> bytes:
        """Write one event."""
        return b"event: %s\ndata: %s\n\n" % (kind.encode(), json.dumps({"type": kind, **fields}).encode())

    def _id(self, index: int) -> str:
        return f"toolu_{self._number}_{index}"


def wrong_in_chat(request: Mapping[str, Any]) -> str | None:
    """Return what a strict server would refuse in a request, None when nothing."""
    if not isinstance(request.get("model"), str) or not request.get("messages"):
        return "model and messages are required"
    open_calls: set[str] = set()
    for message in request["messages"]:
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            return "an assistant message with 'tool_calls' must be followed by tool messages responding to each"
        if role == "assistant":
            calls = message.get("tool_calls") or []
            ids = [call["id"] for call in calls]
            if len(set(ids)) < len(ids) or (not calls and not content):
                return "an assistant message needs content or tool_calls with ids of their own"
            for one in calls:
                if not isinstance(json.loads(one["function"]["arguments"]), dict):
                    return "arguments must be an object"
            open_calls = set(ids)
        elif role not in {"system", "user", "developer"} or content is None:
            return f"unknown role {role!r} or no content"
    return "a call is without its result" if open_calls else None


def wrong_in_anthropic(request: Mapping[str, Any]) -> str | None:
    """Return what a strict server would refuse in a request, None when nothing."""
    if not isinstance(request.get("max_tokens"), int) or not request.get("messages"):
        return "max_tokens and messages are required"
    merged: list[tuple[str, list[dict[str, Any]]]] = []
    for message in request["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(blocks)
        else:
            merged.append((message["role"], list(blocks)))
    if merged[0][0] != "user":
        return "the first message must be the user's"
    wanted: set[str] = set()
    for role, blocks in merged:
        if not blocks or any(b["type"] == "text" and not b["text"].strip() for b in blocks):
            return "text content blocks must be non-empty"
        given = {b["tool_use_id"] for b in blocks if b["type"] == "tool_result"}
        if given != wanted:
            return f"tool_use ids {sorted(wanted)} were answered by tool_result ids {sorted(given)}"
        if any(b["type"] == "thinking" and not b.get("signature") for b in blocks):
            return "thinking needs its signature"
        ids = [b["id"] for b in blocks if b["type"] == "tool_use"]
        if len(set(ids)) < len(ids) or (role == "user" and ids):
            return "tool_use ids must be unique, and the assistant's"
        wanted = set(ids)
    return f"tool_use ids {sorted(wanted)} have no tool_result" if wanted else None
