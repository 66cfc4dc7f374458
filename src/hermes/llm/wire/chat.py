"""Chat completions, as OpenAI and most others speak it: how a request is written.

Invariant: a message's bytes depend on the message and the vendor alone, and never on what stands before it.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from hermes.domain.errors import Misconfigured
from hermes.domain.event import JSON
from hermes.domain.message import ImagePart, Message, ResultPart, TextPart
from hermes.domain.model import Request
from hermes.domain.tool import ToolSpec
from hermes.llm.vendor import Quirks
from hermes.llm.wire.pieces import NEVER_CAME, Fields, address, encoded, fitting_id, is_strict, members, readable

NAME = "chat"
RESERVED = frozenset({"model", "messages", "stream", "stream_options", "tools", "n"})
_NOTHING = "(no answer)"
_SHOWN = "This is what the result shows of "
_RESULT = b'{"role":"tool"'
_PICTURES = b'{"role":"user","content":[{"type":"text","text":"' + _SHOWN.encode()


def prefix(model: str, quirks: Quirks, system: str, tools: Sequence[ToolSpec]) -> bytes:
    """Write everything up to the first message, its comma included."""
    fields: Fields = {"model": model, "stream": True}
    if quirks.has_usage:
        fields["stream_options"] = {"include_usage": True}
    if quirks.caches and "claude" in model:
        fields["cache_control"] = {"type": "ephemeral"}
    if tools:
        fields["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in tools
        ]
    first = encoded({"role": "system", "content": system}) + b"," if system else b""
    return encoded(fields)[:-1] + b',"messages":[' + first


def tail(quirks: Quirks, request: Request) -> bytes:
    """Write everything after the last message."""
    if reserved := RESERVED & request.extra.keys():
        raise Misconfigured(
            f"{sorted(reserved)} cannot be given as further fields of a request; they are set by Hermes"
        )
    fields: Fields = {}
    if request.max_tokens is not None:
        fields[quirks.limit] = request.max_tokens
    if request.temperature is not None:
        fields["temperature"] = request.temperature
    ask = b""
    if request.schema is not None:
        if quirks.schema == "json_schema":
            format_: Fields = {"name": "answer", "schema": request.schema, "strict": is_strict(request.schema)}
            fields["response_format"] = {"type": "json_schema", "json_schema": format_}
        else:
            fields["response_format"] = {"type": "json_object"}
            words = (
                f"Answer with one JSON object of this JSON schema, and nothing else: {encoded(request.schema).decode()}"
            )
            ask = b"," + encoded({"role": "user", "content": words})
    for name, value in request.extra.items():
        if name == "reasoning_effort":
            fields |= _effort(quirks, value)
        else:
            fields[name] = value
    return ask + b"]" + members(fields) + b"}"


def _effort(quirks: Quirks, value: JSON) -> Fields:
    match quirks.effort:
        case "reasoning":
            return {"reasoning": {"enabled": False} if value == "none" else {"effort": value}}
        case "none":
            return {}
        case "reasoning_effort":
            return {"reasoning_effort": value}


def encode(quirks: Quirks, message: Message) -> bytes:
    """Write one message; results of several tools become as many, with commas between."""
    match message.role:
        case "user":
            return encoded({"role": "user", "content": _content(message)})
        case "assistant":
            return encoded(_assistant(quirks, message))
        case "tool":
            results = [encoded(_result(part)) for part in message.results]
            return b",".join([*results, *(_pictures(part) for part in message.results if part.images)])


def _content(message: Message) -> object:
    if not any(isinstance(part, ImagePart) for part in message.parts):
        return message.text
    content: list[Fields] = []
    for part in message.parts:
        match part:
            case TextPart() if part.text:
                content.append({"type": "text", "text": part.text})
            case ImagePart():
                content.append({"type": "image_url", "image_url": {"url": address(part)}})
            case _:
                continue
    return content


def _assistant(quirks: Quirks, message: Message) -> Fields:
    calls = message.calls
    fields: Fields = {"role": "assistant", "content": message.text or (None if calls else _NOTHING)}
    if quirks.returns and (kept := message.opaque.get(NAME)):
        thoughts: Mapping[str, object] = msgspec.json.decode(kept)
        if quirks.returns in thoughts:
            fields[quirks.returns] = thoughts[quirks.returns]
    if calls:
        fields["tool_calls"] = [
            {
                "id": fitting_id(call.id),
                "type": "function",
                "function": {"name": call.name, "arguments": readable(call.arguments)},
            }
            for call in calls
        ]
    return fields


def _result(part: ResultPart) -> Fields:
    return {"role": "tool", "tool_call_id": fitting_id(part.call), "content": part.text}


def _pictures(part: ResultPart) -> bytes:
    """Write the pictures of a result as a message of the user: the wire takes none in a result."""
    words: Fields = {"type": "text", "text": f"{_SHOWN}{part.name}:"}
    pictures = [{"type": "image_url", "image_url": {"url": address(image)}} for image in part.images]
    return encoded({"role": "user", "content": [words, *pictures]})


def joined(messages: Sequence[bytes]) -> bytes:
    """Join messages. Pictures of results are moved behind the results of the other calls of the same answer."""
    whole = b",".join(messages)
    return b",".join(_moved(messages)) if _PICTURES in whole else whole


def _moved(messages: Sequence[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    for message in messages:
        if not message.startswith(_RESULT):
            yield from waiting
            waiting.clear()
        result, mark, pictures = message.partition(b"," + _PICTURES)
        yield result
        if mark:
            waiting.append(_PICTURES + pictures)
    yield from waiting


def unanswered(message: bytes) -> list[tuple[bytes, bytes]]:
    """Return for each call of an assistant message how its result would begin, and one that says it never came."""
    value = msgspec.json.decode(message)
    found = []
    for call in value.get("tool_calls") or []:
        head = encoded({"role": "tool", "tool_call_id": call["id"]})[:-1]
        found.append((head, head + b',"content":' + encoded(NEVER_CAME) + b"}"))
    return found
