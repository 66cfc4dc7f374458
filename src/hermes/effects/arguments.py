"""From a typed record to the JSON schema that a model is shown, and from what a model wrote to the record.

Invariant: a record that is returned has only known fields, of the declared types; what a model gets wrong in a harmless
way ("5" for 5, null for a default, one text for a list, a number beyond its bound) is mended, everything else is named.
"""

import difflib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, cast, get_args, get_origin

import msgspec

from hermes.domain.errors import Misconfigured
from hermes.domain.event import JSON

A = TypeVar("A")

_SIMPLE: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_LISTS = (list, tuple, Sequence)


class Arguments(Generic[A]):
    """The arguments of one tool: a frozen dataclass whose fields may be `Annotated` with a description."""

    def __init__(self, record: type[A]) -> None:
        self._record = record
        self._types = typing.get_type_hints(record, include_extras=True)
        self._fields: dict[str, Field[Any]] = {one.name: one for one in fields(cast(Any, record))}
        self.schema = _of_record(record)

    def parse(self, given: Mapping[str, JSON]) -> A:
        """Return the record; raise Misconfigured with every mistake that can be seen, in words for the model."""
        wrong = [self._unknown(name) for name in given if name not in self._fields]
        wrong += [f"{name!r} is missing" for name in self._required() if given.get(name) is None]
        if wrong:
            raise Misconfigured(f"{'; '.join(wrong)}. {self._expected()}")
        mended = {
            name: _mend(value, self._types[name]) for name, value in given.items() if not self._is_left(name, value)
        }
        try:
            return msgspec.convert(mended, self._record, strict=False)
        except (msgspec.ValidationError, RecursionError) as error:
            raise Misconfigured(f"{error}. {self._expected()}") from error

    def _required(self) -> list[str]:
        return [name for name, one in self._fields.items() if _is_required(one)]

    def _is_left(self, name: str, value: JSON) -> bool:
        return value is None and not _is_required(self._fields[name])

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name[:100], self._fields, n=1)
        return f"there is no argument {name[:100]!r}" + (f", did you mean {near[0]!r}?" if near else "")

    def _expected(self) -> str:
        described = (_in_words(name, _of_type(self._types[name]), one) for name, one in self._fields.items())
        return f"Expected: {', '.join(described)}"


def _in_words(name: str, schema: Mapping[str, JSON], one: "Field[Any]") -> str:
    choices = schema.get("enum")
    kind = "|".join(map(str, choices)) if isinstance(choices, list) else str(schema.get("type", "any"))
    return f"{name} ({kind}{', required' if _is_required(one) else ''})"


def _is_required(one: "Field[Any]") -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def _of_record(record: type[Any]) -> dict[str, JSON]:
    hints = typing.get_type_hints(record, include_extras=True)
    properties: dict[str, JSON] = {}
    for one in fields(record):
        schema = _of_type(hints[one.name])
        if isinstance(one.default, (str, int, float)) and one.default not in ("", False):
            schema["default"] = one.default
        properties[one.name] = schema
    required = [one.name for one in fields(record) if _is_required(one)]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _of_type(kind: object) -> dict[str, JSON]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        schema = _of_type(inner[0])
        for note in inner[1:]:
            schema |= _of_note(note)
        return schema
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if origin is Literal:
        return {"type": _SIMPLE[type(inner[0])], "enum": list(inner)}
    if origin in (Union, types.UnionType):
        return _of_type(next(one for one in inner if one is not type(None)))
    if origin in _LISTS:
        return {"type": "array", "items": _of_type(inner[0])}
    if is_dataclass(kind) and isinstance(kind, type):
        return _of_record(kind)
    if origin in (dict, Mapping):
        return {"type": "object"}
    raise Misconfigured(f"an argument cannot be of the type {kind!r}; use texts, numbers, lists and dataclasses")


def _of_note(note: object) -> dict[str, JSON]:
    match note:
        case str():
            return {"description": note}
        case msgspec.Meta():
            told = {
                "description": note.description,
                "minimum": note.ge,
                "maximum": note.le,
                "maxItems": note.max_length,
            }
            return {name: value for name, value in told.items() if value is not None}
        case _:
            return {}


def _mend(value: JSON, kind: object) -> JSON:
    """Return what was meant: a list that came as its only item or as JSON in a text, a whole number as a float."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _within(_mend(value, inner[0]), inner[1:])
    if origin in (Union, types.UnionType):
        return _mend(value, next(one for one in inner if one is not type(None)))
    if origin in _LISTS:
        return _mend_list(value, inner[0])
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if is_dataclass(kind) and isinstance(kind, type):
        return _mend_record(value, kind)
    if kind is str and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return value


def _within(value: JSON, notes: Sequence[object]) -> JSON:
    """Return the number, or the bound that it is beyond: the answer says how much it holds."""
    bounds = next((note for note in notes if isinstance(note, msgspec.Meta) and note.ge is not None), None)
    if bounds is not None and isinstance(value, str) and value.strip().lstrip("-").isdecimal():
        value = int(value.strip()[:18])
    if bounds is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    least = max(value, bounds.ge if bounds.ge is not None else value)
    return min(least, bounds.le) if bounds.le is not None else least


def _mend_record(value: JSON, record: type[Any]) -> JSON:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _decoded(value)
    if not isinstance(value, dict):
        return value
    hints = typing.get_type_hints(record, include_extras=True)
    return {name: _mend(one, hints[name]) if name in hints else one for name, one in value.items()}


def _mend_list(value: JSON, item: object) -> JSON:
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _decoded(value)
    if isinstance(value, (str, int, float, Mapping)):
        value = [value]
    return [_mend(one, item) for one in value] if isinstance(value, list) else value


def _decoded(text: str) -> JSON:
    try:
        found: JSON = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return found
