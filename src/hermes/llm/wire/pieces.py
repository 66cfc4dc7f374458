"""What both wires write the same way.

Invariant: the same values give the same bytes, in any process.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from hermes.domain.event import JSON
from hermes.domain.message import ImagePart
from hermes.llm.tolerant import is_object, whole_characters

Fields: TypeAlias = dict[str, object]

NEVER_CAME = "This call was interrupted; whether it did anything is unknown."

_ASSISTANT = b'{"role":"assistant"'
_ENCODE = msgspec.json.Encoder().encode
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_ID = 64


def encoded(value: object) -> bytes:
    """Write JSON; halves of characters, which no JSON can hold, are replaced."""
    try:
        return _ENCODE(value)
    except UnicodeEncodeError:
        return _ENCODE(_whole(value))


def _whole(value: object) -> object:
    match value:
        case str():
            return whole_characters(value)
        case list() | tuple():
            return [_whole(item) for item in value]
        case Mapping():
            return {_whole(key): _whole(item) for key, item in value.items()}
        case _:
            return value


def members(fields: Mapping[str, object]) -> bytes:
    """Write the members of an object, each after a comma, to be put behind others."""
    return b"," + encoded(fields)[1:-1] if fields else b""


def fitting_id(call: str) -> str:
    """Return a call's id as every vendor takes it; both the call and its result go through here."""
    fit = _UNFIT.sub("_", call)
    if len(fit) <= _LONGEST_ID:
        return fit or "call"
    return f"{fit[:40]}_{hashlib.sha256(call.encode('utf-8', 'replace')).hexdigest()[:16]}"


def readable(arguments: str) -> str:
    """Return a call's arguments as an object: servers put them into templates and fail on anything else."""
    if is_object(arguments):
        return arguments
    return encoded({"unreadable": arguments[:2000]}).decode()


def address(image: ImagePart) -> str:
    """Return an image as an address: where it is, or itself."""
    return image.url or f"data:{image.media_type};base64,{image.data}"


def is_strict(schema: Mapping[str, JSON]) -> bool:
    """Whether vendors that take only closed objects with no optional members can hold an answer to this."""
    match schema.get("type"):
        case "object":
            members = schema.get("properties")
            required = schema.get("required")
            return (
                isinstance(members, dict)
                and isinstance(required, list)
                and schema.get("additionalProperties") is False
                and set(map(str, required)) == set(members)
                and all(isinstance(one, dict) and is_strict(one) for one in members.values())
            )
        case "array":
            items = schema.get("items")
            return isinstance(items, dict) and is_strict(items)
        case _:
            return True


def settled(
    messages: Sequence[bytes], marker: bytes, unanswered: Callable[[bytes], list[tuple[bytes, bytes]]]
) -> Sequence[bytes]:
    """Return the messages with a result for each of the last calls that has none: no vendor takes a call alone.

    Looks no further back than the last answer of the model.
    """
    at = len(messages) - 1
    while at >= 0 and not messages[at].startswith(_ASSISTANT):
        at -= 1
    if at < 0 or marker not in messages[at]:
        return messages
    after = messages[at + 1 :]
    missing = [result for head, result in unanswered(messages[at]) if not any(head in one for one in after)]
    return [*messages[: at + 1], *missing, *after] if missing else messages
