"""Messages, as Anthropic speaks it: how a request is written.

Invariant: a message's bytes depend on the message alone; what is cached is asked for in the prefix, never in a message.
"""

from collections.abc import Sequence

import msgspec

from hermes.domain.errors import Misconfigured
from hermes.domain.event import JSON
from hermes.domain.message import CallPart, ImagePart, Message, ResultPart, TextPart
from hermes.domain.model import Request
from hermes.domain.tool import ToolSpec
from hermes.llm.wire.pieces import NEVER_CAME, Fields, encoded, fitting_id, members, readable

NAME = "anthropic"
RESERVED = frozenset({"model", "messages", "stream", "system", "tools", "cache_control"})
_MARK: Fields = {"type": "ephemeral"}
_NOTHING = "(no answer)"
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 24_576, "xhigh": 32_768, "max": 48_000}
_WITH_BUDGET = (
    *("claude-3", "claude-haiku-4", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5"),
    *("claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5"),
)
"""Models that are told how many tokens to think with; newer ones are told how hard to try."""


def prefix(model: str, *, caches: bool, system: str, tools: Sequence[ToolSpec]) -> bytes:
    """Write everything up to the first message.

    With `caches` the vendor moves its mark to the end of each request by itself; the mark on the system prompt keeps
    what many sessions share.
    """
    fields: Fields = {"model": model, "stream": True}
    if caches:
        fields["cache_control"] = _MARK
    if tools:
        fields["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in tools
        ]
    if system:
        fields["system"] = [{"type": "text", "text": system, "cache_control": _MARK}]
    return encoded(fields)[:-1] + b',"messages":['


def tail(model: str, request: Request) -> bytes:
    """Write everything after the last message."""
    if reserved := RESERVED & request.extra.keys():
        raise Misconfigured(
            f"{sorted(reserved)} cannot be given as further fields of a request; they are set by Hermes"
        )
    limit = request.max_tokens or default_limit(model)
    fields: Fields = {}
    output: Fields = {}
    if request.schema is not None:
        output["format"] = {"type": "json_schema", "schema": request.schema}
    for name, value in request.extra.items():
        if name != "reasoning_effort":
            fields[name] = value
        elif model.startswith(_WITH_BUDGET):
            fields |= _budget(value, limit)
        elif value == "none":
            fields["thinking"] = {"type": "disabled"}
        else:
            fields["thinking"] = {"type": "adaptive", "display": "summarized"}
            output["effort"] = "low" if value == "minimal" else value
    if output:
        fields["output_config"] = output
    # A model that thinks takes no temperature.
    if request.temperature is not None and "thinking" not in fields:
        fields["temperature"] = request.temperature
    return b"]" + members({"max_tokens": limit, **fields}) + b"}"


def _budget(effort: JSON, limit: int) -> Fields:
    budget = min(_BUDGETS.get(str(effort), 0), limit - 1)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}} if budget >= 1024 else {}


def default_limit(model: str) -> int:
    """Return how long an answer may be when nobody says: the wire wants a number."""
    if model.startswith(("claude-3-5", "claude-3-7")):
        return 8192
    return 4096 if model.startswith(("claude-2", "claude-3")) else 16_000


def encode(message: Message) -> bytes:
    """Write one message. Results of tools come from the user; several such messages in a row are taken as one."""
    match message.role:
        case "user":
            return encoded({"role": "user", "content": _content(message) or [_text(_NOTHING)]})
        case "assistant":
            return encoded({"role": "assistant", "content": _assistant(message)})
        case "tool":
            return encoded({"role": "user", "content": [_result(part) for part in message.results]})


def _text(words: str) -> Fields:
    return {"type": "text", "text": words}


def _content(message: Message) -> list[Fields]:
    content: list[Fields] = []
    for part in message.parts:
        match part:
            # The vendor refuses texts of nothing but blanks.
            case TextPart() if part.text.strip():
                content.append(_text(part.text))
            case ImagePart():
                content.append(_image(part))
            case _:
                continue
    return content


def _image(image: ImagePart) -> Fields:
    if image.url:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.data}}


def _assistant(message: Message) -> list[object]:
    content: list[object] = []
    for part in message.parts:
        match part:
            case TextPart() if part.text.strip():
                content.append(_text(part.text.rstrip() if message.status == "interrupted" else part.text))
            case CallPart():
                arguments = msgspec.Raw(readable(part.arguments).encode("utf-8", "replace"))
                content.append({"type": "tool_use", "id": fitting_id(part.id), "name": part.name, "input": arguments})
            case _:
                continue
    if kept := message.opaque.get(NAME):
        for at, block in msgspec.json.decode(kept, type=list[tuple[int, msgspec.Raw]]):
            content.insert(at, block)
    has_more = any(isinstance(one, dict) for one in content)
    return content if has_more else [*content, _text(_NOTHING)]


def _result(part: ResultPart) -> Fields:
    fields: Fields = {"type": "tool_result", "tool_use_id": fitting_id(part.call)}
    if part.images:
        texts = [_text(part.text)] if part.text.strip() else []
        fields["content"] = [*texts, *(_image(image) for image in part.images)]
    else:
        fields["content"] = part.text
    if part.is_error:
        fields["is_error"] = True
    return fields


def unanswered(message: bytes) -> list[tuple[bytes, bytes]]:
    """Return for each call of an assistant message how its result would begin, and one that says it never came."""
    found = []
    for block in msgspec.json.decode(message)["content"]:
        if block.get("type") == "tool_use":
            head = encoded({"type": "tool_result", "tool_use_id": block["id"]})[:-1]
            result = head + b',"content":' + encoded(NEVER_CAME) + b',"is_error":true}'
            found.append((head, b'{"role":"user","content":[' + result + b"]}"))
    return found
