"""What people see: aligned columns that fit the screen, their own time zone, one JSON document for programs.

Invariant: no control character of stored data reaches a terminal; it is shown as an escape.
"""

import json
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

ENDLESS = 1_000_000

_GAP = "  "
_LEAST = 4
# Controls, those that turn the direction of writing, invisible ones that break lines, and halves of pairs.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def say(text: str) -> None:
    """Write a line to standard output at once, so that a reader at the other end of a pipe has it."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def warn(text: str) -> None:
    """Write a line to standard error."""
    sys.stderr.write(f"hermes: {text}\n")
    sys.stderr.flush()


def clean(text: str) -> str:
    """Return the text with every character that a terminal would obey as its escape."""
    return _UNSAFE.sub(_escape, text)


def _escape(match: "re.Match[str]") -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode()


def document(value: object) -> str:
    """Return a value as JSON on several lines, for programs that read it whole."""
    return _json(value, indent=2)


def line(value: object) -> str:
    """Return a value as JSON on one line, or a part of one that people read."""
    return _json(value, indent=None)


def _json(value: object, *, indent: int | None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=_plain)
    # Inside JSON such characters stand in texts only, where an escape means the same.
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _plain(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat()
        case frozenset() | set():
            return sorted(value)
        case Mapping():
            return dict(value)
        case _:
            return str(value)


def columns() -> int:
    """Return how wide a line may be: as wide as the terminal; a program that reads us gets everything."""
    return max(40, shutil.get_terminal_size((ENDLESS, 24)).columns)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, whole: Sequence[str] = ()) -> list[str]:
    """Return the lines of a table; what does not fit is cut with an ellipsis, save in the columns named in `whole`."""
    cells = [list(headings), *([clean(cell) for cell in row] for row in rows)]
    wide = [max(width(row[number]) for row in cells) for number in range(len(headings))]
    can_give = [number for number, name in enumerate(headings) if name not in whole]
    room = columns() - len(_GAP) * (len(headings) - 1)
    while sum(wide) > room:
        widest = max(can_give, key=lambda number: wide[number], default=None)
        if widest is None or wide[widest] <= _LEAST:
            break
        wide[widest] -= 1
    return [_GAP.join(_fill(cell, length) for cell, length in zip(row, wide, strict=True)).rstrip() for row in cells]


def pairs(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Return lines of a name and its value, for one thing that is shown whole."""
    wide = max(width(name) for name, _ in rows)
    return [f"{_fill(name, wide)}{_GAP}{clean(value)}".rstrip() for name, value in rows]


def cut(text: str, length: int) -> str:
    """Return as much of a text as fits, with an ellipsis for the rest."""
    if width(text) <= length:
        return text
    while text and width(text) >= length:
        text = text[:-1]
    return f"{text}…"


def _fill(text: str, length: int) -> str:
    text = cut(text, length)
    return text + " " * (length - width(text))


def width(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def local_times(zone: str) -> "Callable[[datetime | None], str]":
    """Return what writes a moment in a time zone; nothing is written as a dash."""
    place = ZoneInfo(zone)

    def show(at: datetime | None) -> str:
        return "-" if at is None else f"{at.astimezone(place):%Y-%m-%d %H:%M:%S}"

    return show


def size(count: int) -> str:
    """Return a number of bytes for people, such as 12.3 MiB."""
    if count < 1024:
        return f"{count} bytes"
    amount = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= 1024
        if amount < 1024:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:.1f} TiB"


def many(count: int, one: str, more: str = "") -> str:
    """Return a count with its noun: 1 row, 2 rows."""
    return f"{count:,} {one if count == 1 else more or one + 's'}"
