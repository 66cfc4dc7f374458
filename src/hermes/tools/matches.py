"""What is searched for, and what was found: the same whoever searches."""

from pathlib import Path
from typing import Literal

from hermes.domain.records import dataclass

LONGEST_LINE = 400
MOST_BYTES = 30_000

LEFT_OUT = frozenset({".git", "node_modules", "__pycache__", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache"})
"""Folders whose files nobody means who searches a project."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search. `pattern` is a regular expression, or a glob when it is by name."""

    pattern: str
    root: Path
    is_folder: bool
    by_name: bool
    glob: str
    first: int
    most: int
    mode: Literal["content", "files_only", "count"]
    around: int


@dataclass(frozen=True, slots=True)
class Match:
    """A line, a file, or how many lines of a file; `is_match` is False for a line around one."""

    path: Path
    line: int = 0
    text: str = ""
    is_match: bool = True


@dataclass(frozen=True, slots=True)
class Matches:
    """A page of what was found."""

    rows: tuple[Match, ...]
    is_cut: bool = False
    note: str = ""


def page(found: list[Match], search: Search, note: str = "") -> Matches:
    """Return the page that was asked for, as far as it is not too long."""
    rows: list[Match] = []
    seen, size = 0, 0
    waiting: list[Match] = []
    for one in found:
        if not one.is_match:
            waiting.append(one)
            continue
        seen += 1
        if seen <= search.first:
            waiting = []
            continue
        size += len(one.text.encode("utf-8", "replace")) + len(str(one.path)) + 40
        if seen > search.first + search.most or (size > MOST_BYTES and rows):
            return Matches(tuple(rows), is_cut=True, note=note)
        rows += [*waiting, one]
        waiting = []
    return Matches((*rows, *waiting) if rows else tuple(rows), note=note)


def short(line: str) -> str:
    """Keep the beginning of a long line."""
    line = line.rstrip("\r\n")
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"
