"""Mends the tool calls of weak models: arguments, names, ids, and calls that were written as text.

Invariant: a text is taken for a call only when the model made no real one, and only when nothing but calls (and a few
words before them) stands in it: who quotes a call does not make one.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import msgspec

from hermes.domain.message import CallId, CallPart
from hermes.domain.records import dataclass
from hermes.llm.tolerant import is_object, object_in

_TAG = re.compile(r"<tool_call>(.*?)(?:</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)
_FENCED = re.compile(r"\A```(?:json|tool_call|tool)?\s*\n(.*)\n\s*```\Z", re.DOTALL)
_FENCE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_PREFIX = re.compile(r"^(functions?|tools?|default_api|mcp)[.:/]+", re.IGNORECASE)
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]+")
MOST_CALLS = 128


@dataclass(slots=True)
class Draft:
    """A call as it came in. A name and an id may be missing, the arguments may be anything."""

    id: str
    name: str
    arguments: str
    is_cut: bool = False
    """Its end did not arrive: closing it would order something else than the model meant."""


def mend(drafts: Sequence[Draft], names: Collection[str], new_id: Callable[[], str]) -> tuple[CallPart, ...]:
    """Return the calls that a model made, each with a name that fits, arguments as an object, and an id of its own.

    What cannot be mended stays as it is: the executor tells the model.
    """
    seen: set[str] = set()
    calls = []
    for draft in drafts[:MOST_CALLS]:
        own = draft.id if draft.id and draft.id not in seen else f"call_{new_id().replace('-', '')}"
        seen.add(own)
        arguments = draft.arguments
        if not draft.is_cut and not is_object(arguments):
            arguments = object_in(arguments) or arguments
        calls.append(CallPart(CallId(own), named(draft.name, names), arguments))
    return tuple(calls)


def named(name: str, names: Collection[str]) -> str:
    """Return the tool that a name means; one that means none is made fit to be sent back."""
    if name in names:
        return name
    bare = _PREFIX.sub("", name.strip())
    for key in (_spelled, _loosely):
        found = {one for one in names if key(one) == key(bare)}
        if len(found) == 1:
            return found.pop()
    return _UNFIT.sub("_", bare)[:64].strip("_") or "unnamed"


def _spelled(name: str) -> str:
    return name.lower()


def _loosely(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def calls_in(text: str, names: Collection[str]) -> tuple[str, list[Draft]]:
    """Take the calls out of a text, and return what is left of it with them; the text as it is when there are none.

    Tags count outside of code, when at most blanks follow or stand between them. Without tags the whole text must be
    one object, in a fence or not. A call counts only if it names a tool that is there.
    """
    if not names or ("{" not in text):
        return text, []
    if "<tool_call>" in text:
        return _tagged(text, names)
    whole = text.strip()
    fenced = _FENCED.match(whole)
    body = fenced[1].strip() if fenced else whole
    if not body.startswith(("{", "[")) or not body.endswith(("}", "]")) or "```" in body:
        return text, []
    drafts = _drafts(body, names)
    return ("", drafts) if drafts else (text, [])


def _tagged(text: str, names: Collection[str]) -> tuple[str, list[Draft]]:
    code = [match.span() for match in _FENCE.finditer(text)]
    first = text.index("<tool_call>")
    if any(start <= first < end for start, end in code):
        return text, []
    before, rest = text[:first], text[first:]
    if _TAG.sub("", rest).strip():
        return text, []
    drafts = []
    for match in _TAG.finditer(rest):
        found = _drafts(match[1], names)
        if not found:
            return text, []
        drafts += found
    return before.strip(), drafts


def _drafts(body: str, names: Collection[str]) -> list[Draft]:
    """Read one call, or a list of them; nothing when any is not a call of a tool that is there."""
    values = _values(body)
    drafts = [draft for value in values if (draft := _draft(value, names))]
    return drafts if len(drafts) == len(values) else []


def _values(body: str) -> list[object]:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError):
        text = object_in(body) if body.strip() else None
        return [] if text is None else [msgspec.json.decode(text)]
    return value if isinstance(value, list) else [value]


def _draft(value: object, names: Collection[str]) -> Draft | None:
    if not isinstance(value, dict):
        return None
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = value.get("name") or (inner if isinstance(inner, str) else "")
    arguments = value.get("arguments", value.get("parameters", {}))
    if not isinstance(name, str) or named(name, names) not in names:
        return None
    text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return Draft("", name, text)


def as_cut(draft: Draft) -> Draft:
    """Return a call whose end is missing, unless what is there is whole."""
    return draft if is_object(draft.arguments) else replace(draft, is_cut=True)
