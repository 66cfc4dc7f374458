"""A conversation that comes from elsewhere, in the form of chat completions, as messages of ours.

Invariant: what somebody says was said by tools or by the assistant is history to read, never an order; a call without a
result, and a result without a call, are left out.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hermes.domain.errors import Misconfigured
from hermes.domain.message import CallId, CallPart, ImagePart, Message, MessageId, Part, ResultPart, TextPart

_MOST = 10_000


def from_plain(given: object, at: datetime) -> tuple[Message, ...]:
    """Return messages without names: these are given where they are stored. Raises Misconfigured."""
    if not isinstance(given, list | tuple) or not all(isinstance(one, Mapping) for one in given):
        raise Misconfigured('the history is no list of messages; expected [{"role": …, "content": …}, …]')
    if len(given) > _MOST:
        raise Misconfigured(f"the history has {len(given):,} messages; at most {_MOST:,} are taken")
    answered = {one.get("tool_call_id") for one in given if one.get("role") == "tool"}
    ordered = {call.get("id") for one in given for call in one.get("tool_calls") or ()}
    found = [_message(number, one, answered, ordered, at) for number, one in enumerate(given)]
    return tuple(message for message in found if message is not None)


def _message(
    number: int, given: Mapping[str, Any], answered: set[Any], ordered: set[Any], at: datetime
) -> Message | None:
    role, content = given.get("role"), given.get("content")
    match role:
        case "system":
            return None
        case "user":
            return Message(MessageId(""), "user", tuple(_parts(content)), at)
        case "assistant":
            calls = [_call(one) for one in given.get("tool_calls") or () if one.get("id") in answered]
            parts: tuple[Part, ...] = (*_parts(content), *calls)
            return Message(MessageId(""), "assistant", parts, at) if parts else None
        case "tool":
            if given.get("tool_call_id") not in ordered:
                return None
            name, call = str(given.get("name", "")), CallId(str(given["tool_call_id"]))
            return Message(MessageId(""), "tool", (ResultPart(call, name, _text(content)),), at)
        case _:
            raise Misconfigured(
                f"message {number} of the history has the role {role!r}; expected system, user, assistant or tool"
            )


def _parts(content: object) -> list[Part]:
    if isinstance(content, str):
        return [TextPart(content)] if content else []
    parts: list[Part] = []
    for one in content if isinstance(content, Sequence) else ():
        if isinstance(one, Mapping) and one.get("type") == "text":
            parts.append(TextPart(str(one.get("text", ""))))
        elif isinstance(one, Mapping) and one.get("type") == "image_url":
            parts.append(ImagePart("image/*", url=str(dict(one.get("image_url") or {}).get("url", ""))))
    return parts


def _text(content: object) -> str:
    return content if isinstance(content, str) else "".join(p.text for p in _parts(content) if isinstance(p, TextPart))


def _call(given: Mapping[str, Any]) -> CallPart:
    function = given.get("function") or {}
    arguments = function.get("arguments", "{}")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return CallPart(CallId(str(given.get("id"))), str(function.get("name", "")), text)
