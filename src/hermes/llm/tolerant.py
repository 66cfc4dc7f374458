"""Reads what a weak model meant as a JSON object.

Invariant: text that is JSON is returned as it stands; what is returned otherwise is JSON of an object, or None. What is
spelled otherwise is mended, what is missing is not: a text that ends before its object, or holds a second one, is none.
"""

import json
import re

import msgspec

from hermes.domain.event import JSON

DEEPEST = 64
_FENCE = re.compile(r"^```[a-zA-Z0-9_-]*\s*\n?(.*?)\n?\s*```$", re.DOTALL)
_WORD = re.compile(r"[A-Za-z_$][\w$.-]*")
_NUMBER = re.compile(r"[+-]?\d[\d_]*(\.\d*)?([eE][+-]?\d+)?|[+-]?\.\d+")
_BLANK = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_WORDS: dict[str, JSON] = {"true": True, "false": False, "none": None, "null": None, "undefined": None, "nan": None}
_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019"}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_OBJECT = msgspec.json.Decoder(dict)


class _Unreadable(Exception):
    """It cannot be made sense of."""


def is_object(text: str) -> bool:
    """Whether a text is JSON of an object."""
    try:
        _OBJECT.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


def object_in(text: str) -> str | None:
    """Return JSON of the object that a text means, or None when it means none."""
    if not text.strip():
        return "{}"
    if is_object(text):
        return text
    value = _value_in(text, 3)
    return whole_characters(json.dumps(value, ensure_ascii=False)) if isinstance(value, dict) else None


def whole_characters(text: str) -> str:
    """Join halves of characters that stand side by side, and replace those that stand alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _value_in(text: str, times: int) -> JSON:
    """Read a text that may be JSON inside of JSON, a few times over."""
    text = text.strip()
    if fenced := _FENCE.match(text):
        text = fenced[1].strip()
    try:
        value: JSON = json.loads(text, parse_constant=lambda _word: None)
    except (ValueError, RecursionError):
        value = _read(text)
    if isinstance(value, str) and times > 0:
        return _value_in(value, times - 1)
    return value


def _read(text: str) -> JSON:
    start = text.find("{")
    if start < 0:
        return None
    try:
        value, end = _object(text, start, 0)
    except _Unreadable:
        return None
    # One of two would be done in silence, and nobody could say which was meant.
    return value if "{" not in text[end:] else None


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return blank.end() if blank else at


def _value(text: str, at: int, depth: int) -> tuple[JSON, int]:
    at = _skip(text, at)
    if at >= len(text) or depth > DEEPEST:
        raise _Unreadable
    if text[at] == "{":
        return _object(text, at, depth + 1)
    if text[at] == "[":
        return _array(text, at, depth + 1)
    if text[at] in _QUOTES:
        return _string(text, at)
    if number := _NUMBER.match(text, at):
        return _number(number[0]), number.end()
    if (word := _WORD.match(text, at)) and word[0].lower() in _WORDS:
        return _WORDS[word[0].lower()], word.end()
    raise _Unreadable


def _number(text: str) -> JSON:
    digits = text.replace("_", "").lstrip("+")
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _object(text: str, at: int, depth: int) -> tuple[JSON, int]:
    found: dict[str, JSON] = {}
    at = _skip(text, at + 1)
    while at < len(text) and text[at] != "}":
        if text[at] == ",":
            at = _skip(text, at + 1)
            continue
        key, at = _key(text, at)
        at = _skip(text, at)
        if at >= len(text) or text[at] not in ":=":
            raise _Unreadable
        found[key], at = _value(text, at + 1, depth)
        at = _skip(text, at)
        if at < len(text) and text[at] == "]":
            # A closer of the wrong kind; the right one may follow.
            at = _skip(text, at + 1)
    _require_closed(text, at)
    return found, at + 1


def _require_closed(text: str, at: int) -> None:
    if at >= len(text):
        raise _Unreadable


def _key(text: str, at: int) -> tuple[str, int]:
    if text[at] in _QUOTES:
        return _string(text, at)
    word = _WORD.match(text, at)
    if word is None:
        raise _Unreadable
    return word[0], word.end()


def _array(text: str, at: int, depth: int) -> tuple[JSON, int]:
    found: list[JSON] = []
    at = _skip(text, at + 1)
    while at < len(text) and text[at] != "]":
        if text[at] == ",":
            at = _skip(text, at + 1)
            continue
        if text[at] == "}":
            return found, at
        value, at = _value(text, at, depth)
        found.append(value)
        at = _skip(text, at)
    _require_closed(text, at)
    return found, at + 1


def _string(text: str, at: int) -> tuple[str, int]:
    """Read a text; a quote inside it ends it only where something follows that may follow a text."""
    closer, pieces = _QUOTES[text[at]], []
    at += 1
    while at < len(text):
        letter = text[at]
        if letter == "\\" and at + 1 < len(text):
            piece, at = _escape(text, at + 1)
            pieces.append(piece)
            continue
        if letter == closer:
            after = _skip(text, at + 1)
            if after >= len(text) or text[after] in ",:}]=":
                return "".join(pieces), at + 1
        pieces.append(letter)
        at += 1
    raise _Unreadable


def _escape(text: str, at: int) -> tuple[str, int]:
    letter = text[at]
    if letter == "u":
        digits = text[at + 1 : at + 5]
        if len(digits) == 4 and all(d in "0123456789abcdefABCDEF" for d in digits):
            return chr(int(digits, 16)), at + 5
    return _ESCAPES.get(letter, letter), at + 1
