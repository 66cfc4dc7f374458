"""The kinds of value a setting may have: how each is read from text, written back and shown.

Invariant: `parse(write(value))` is `value`, for every value that `parse` can give.
"""

import math
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

from hermes.config.secret import MASK, Secret, Url
from hermes.domain.records import dataclass

_WHOLE = re.compile(r"[+-]?\d[\d_]*", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)", re.ASCII)
_UNITS = {
    "w": timedelta(weeks=1),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of value. `parse(text, home)` raises ValueError that says what was expected.

    `is_bare` means that quotes in YAML turn it into a text, which it is not.
    """

    name: str
    parse: Callable[[str, Path], object]
    write: Callable[[object], str] = str
    is_bare: bool = False
    is_list: bool = False
    is_secret: bool = False
    is_optional: bool = False

    def show(self, value: object) -> str:
        """Return the value for people: a secret is masked."""
        if value is None:
            return ""
        return str(value) if self.is_secret else self.write(value)


def kind_of(annotation: object) -> Kind:
    """Derive the kind from a field's type; raise TypeError for a type no setting can have."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _choice(arguments)
    if origin in {Union, UnionType} and NoneType in arguments and len(arguments) == 2:
        return _optional(kind_of(next(a for a in arguments if a is not NoneType)))
    if origin is tuple and arguments == (str, ...):
        return Kind("a list of texts", _parse_list, _write_list, is_list=True)
    raise TypeError(f"a setting cannot be of type {annotation!r}")


def _parse_bool(text: str, _home: Path) -> bool:
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise ValueError("expected true or false")
    return word in _TRUE


def _write_bool(value: object) -> str:
    return "true" if value else "false"


def _parse_int(text: str, _home: Path) -> int:
    if not _WHOLE.fullmatch(text):
        raise ValueError("expected a whole number")
    return int(text)


def _parse_float(text: str, _home: Path) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError("expected a number") from None
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    return number


def _parse_text(text: str, _home: Path) -> str:
    _require_storable(text)
    return text


def _parse_secret(text: str, _home: Path) -> Secret:
    if MASK in text:
        raise ValueError("this is the mask, not the secret; give the secret itself")
    _require_storable(text)
    return Secret(text)


def _parse_url(text: str, _home: Path) -> Url:
    if MASK in text:
        raise ValueError("this is the masked URL; give the real one")
    _require_storable(text)
    try:
        return Url(text)
    except ValueError:
        # The parser's own message may quote a part of the password.
        raise ValueError("expected a URL such as scheme://user:password@host/name") from None


def _parse_path(text: str, home: Path) -> Path:
    _require_storable(text)
    if not text:
        raise ValueError("expected a path")
    try:
        return home / Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(f"expected a path ({error})") from None


def _parse_duration(text: str, _home: Path) -> timedelta:
    total, end = timedelta(0), 0
    try:
        for part in _DURATION_PART.finditer(text):
            if part.start() != end:
                break
            number, unit = part.groups()
            total += int(number) * _UNITS[unit] if number.isdigit() else float(number) * _UNITS[unit]
            end = part.end()
    except OverflowError:
        raise ValueError("expected a shorter duration") from None
    if end == 0 or end != len(text):
        raise ValueError("expected a duration such as 30s, 10m, 2h or 7d")
    return total


def _write_duration(value: object) -> str:
    if not isinstance(value, timedelta):
        raise TypeError(f"{value!r} is no duration")
    rest, text = value, ""
    for unit, length in _UNITS.items():
        count, remainder = divmod(rest, length)
        # 90m stays 90m: only a unit that leaves nothing over is used, or the smallest one.
        if count and not remainder:
            return f"{count}{unit}"
    whole, rest = divmod(rest, timedelta(seconds=1))
    text = f"{whole}s" if whole else ""
    return f"{text}{rest / _UNITS['ms']:.3f}ms" if rest else text or "0s"


def _parse_list(text: str, _home: Path) -> tuple[str, ...]:
    _require_storable(text)
    return tuple(item for item in (part.strip() for part in text.split(",")) if item)


def _write_list(value: object) -> str:
    return ", ".join(str(item) for item in value) if isinstance(value, tuple) else ""


def _require_storable(text: str) -> None:
    if "\0" in text:
        raise ValueError("expected a text without NUL")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("expected a text in UTF-8") from None


def _reveal(value: object) -> str:
    if not isinstance(value, (Secret, Url)):
        raise TypeError("only a secret can be revealed")
    return value.reveal()


def _choice(words: tuple[object, ...]) -> Kind:
    choices = tuple(str(word) for word in words)
    name = "one of " + ", ".join(choices)

    def parse(text: str, _home: Path) -> str:
        if text not in choices:
            raise ValueError(f"expected {name}")
        return text

    return Kind(name, parse)


def _optional(kind: Kind) -> Kind:
    def parse(text: str, home: Path) -> object:
        return kind.parse(text, home) if text else None

    def write(value: object) -> str:
        return "" if value is None else kind.write(value)

    return Kind(f"{kind.name}, or nothing", parse, write, kind.is_bare, kind.is_list, kind.is_secret, is_optional=True)


_PLAIN: dict[object, Kind] = {
    bool: Kind("true or false", _parse_bool, _write_bool, is_bare=True),
    int: Kind("a whole number", _parse_int, is_bare=True),
    float: Kind("a number", _parse_float, repr, is_bare=True),
    str: Kind("a text", _parse_text),
    Secret: Kind("a secret", _parse_secret, _reveal, is_secret=True),
    Url: Kind("a URL", _parse_url, _reveal, is_secret=True),
    Path: Kind("a path; a relative one begins in the home", _parse_path),
    timedelta: Kind("a duration such as 30s, 10m, 2h or 7d", _parse_duration, _write_duration),
}
