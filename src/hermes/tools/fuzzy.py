"""Finds the lines that a model means, where it did not write them exactly as they stand.

Invariant: the strategies go from exact to rough, the first that finds anything decides, and a rough one must find one
place only.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Sequence

from hermes.domain.records import dataclass

_LIKE = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u2013": "-",
    "\u2014": "-",
    "\u2026": "...",
    "\u00a0": " ",
}
_LIKE_TABLE = str.maketrans(_LIKE)
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\'": "'", r"\\": "\\"}
_ESCAPE = re.compile(r"\\[nt\"'\\]")
_ALIKE = 0.7
_NEAREST = 0.5
_MOST_LINES = 20_000


@dataclass(frozen=True, slots=True)
class Found:
    """Where a text is, as spans of the content, and how it was found. `indent` is what it has and what it had."""

    spans: tuple[tuple[int, int], ...]
    strategy: str
    indents: tuple[str, str] = ("", "")

    def fit(self, new: str) -> str:
        """Return the new text with the indentation of the place."""
        had, has = self.indents
        if had == has:
            return new
        lines = new.split("\n")
        return "\n".join(has + line[len(had) :] if line.strip() and line.startswith(had) else line for line in lines)


def find(content: str, wanted: str) -> Found | None:
    """Return the places of a text, by the first of nine strategies that finds any."""
    if spans := _exact(content, wanted):
        return Found(spans, "exact")
    unescaped = _ESCAPE.sub(lambda match: _ESCAPES[match[0]], wanted)
    if found := find_lines(content, wanted):
        return found
    if unescaped != wanted and (spans := _exact(content, unescaped)):
        return Found(spans, "escapes")
    return None


def find_lines(content: str, wanted: str) -> Found | None:
    """Return the places of whole lines; a part of a line is none."""
    if found := _by_line(content, wanted, str, "exact"):
        return found
    for strategy, normal in _BY_LINE:
        if found := _by_line(content, wanted, normal, strategy):
            return found
    trimmed = wanted.strip("\n")
    if trimmed.strip() and trimmed != wanted and (found := _by_line(content, trimmed, str.strip, "blank edges")):
        return found
    return _by_anchors(content, wanted)


def nearest(content: str, wanted: str, *, around: int = 2) -> str:
    """Return the lines most like the first line of a text, with their numbers; empty when nothing is like it."""
    lines = content.split("\n")[:_MOST_LINES]
    first = next((line.strip() for line in wanted.split("\n") if line.strip()), "")[:500]
    matcher = difflib.SequenceMatcher(b=first, autojunk=False)
    best, at = _NEAREST, -1
    for number, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:500])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, at = ratio, number
    if at < 0:
        return ""
    shown = range(max(0, at - around), min(len(lines), at + around + 1))
    return "\n".join(f"{number + 1}|{lines[number][:300]}" for number in shown)


def _exact(content: str, wanted: str) -> tuple[tuple[int, int], ...]:
    return tuple((match.start(), match.end()) for match in re.finditer(re.escape(wanted), content))


def _collapsed(line: str) -> str:
    return " ".join(line.split())


def _unspaced(line: str) -> str:
    return "".join(line.split())


_BY_LINE: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("trailing space", str.rstrip),
    ("indentation", str.strip),
    ("spaces", _collapsed),
    ("quotes and dashes", lambda line: _collapsed(line.translate(_LIKE_TABLE))),
    ("no spaces", lambda line: _unspaced(line.translate(_LIKE_TABLE))),
)


def _by_line(content: str, wanted: str, normal: Callable[[str], str], strategy: str) -> Found | None:
    lines, sought = content.split("\n"), _lines_of(wanted)
    have, want = [normal(line) for line in lines], [normal(line) for line in sought]
    if not any(want):
        return None
    size = len(want)
    first = [at for at in _positions(have, want[0]) if have[at : at + size] == want]
    return _found(lines, sought, first, size, strategy, ends_line=wanted.endswith("\n"))


def _by_anchors(content: str, wanted: str) -> Found | None:
    """The first and the last line are there, and what is between is much alike."""
    lines, sought = content.split("\n"), _lines_of(wanted)
    size = len(sought)
    have, want = [line.strip() for line in lines], [line.strip() for line in sought]
    if size < 3 or not want[0] or not want[-1]:
        return None
    between = "\n".join(want[1:-1])
    starts = [at for at in _positions(have, want[0]) if have[at + size - 1 : at + size] == want[-1:]]
    alike = [at for at in starts[:200] if _likeness("\n".join(have[at + 1 : at + size - 1]), between) >= _ALIKE]
    return _found(lines, sought, alike, size, "first and last line", ends_line=wanted.endswith("\n"))


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one[:4_000], other[:4_000], autojunk=False).ratio()


def _lines_of(wanted: str) -> list[str]:
    lines = wanted.split("\n")
    return lines[:-1] if len(lines) > 1 and lines[-1] == "" else lines


def _positions(lines: Sequence[str], line: str) -> Iterator[int]:
    return (at for at, one in enumerate(lines) if one == line)


def _found(
    lines: Sequence[str], sought: Sequence[str], starts: Sequence[int], size: int, strategy: str, *, ends_line: bool
) -> Found | None:
    if not starts:
        return None
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    spans = []
    for at in starts:
        is_last = at + size >= len(lines)
        spans.append((offsets[at], offsets[at + size] - (0 if ends_line and not is_last else 1)))
    return Found(tuple(spans), strategy, (_indent(sought), _indent(lines[starts[0] : starts[0] + size])))


def _indent(lines: Sequence[str]) -> str:
    line = next((one for one in lines if one.strip()), "")
    return line[: len(line) - len(line.lstrip())]
