"""Searches by ourselves, file by file, through the files of the machine.

Invariant: bounded in files, bytes and seconds; a pattern that could keep the process busy for ever is refused.
"""

import fnmatch
import re
from collections.abc import AsyncIterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined] # how a pattern is built is known nowhere else

import anyio.to_thread

from hermes.domain.errors import HermesError, Misconfigured
from hermes.domain.machine import FileStatus
from hermes.domain.tool import ToolContext
from hermes.tools.content import kind_of_binary
from hermes.tools.matches import LEFT_OUT, Match, Matches, Search, page, short

_MOST_FILES = 50_000
_LARGEST = 2_000_000
_SECONDS = 30
_LONGEST_LINE = 1_000
_MOST_REPEATS = 3
_NOTE = "searched without ripgrep: .gitignore is not read, and files over 2 MB are left out"


async def search(search: Search, context: ToolContext) -> Matches:
    """Return what was found. Raises Misconfigured for a pattern that is none, or too heavy."""
    rows: list[tuple[float, Match]] = []
    pattern = None if search.by_name else compiled(search.pattern)
    until = context.clock.monotonic() + _SECONDS
    note = _NOTE
    async for status in _files(search, context):
        if context.clock.monotonic() > until:
            note = f"{_NOTE}; it took too long: name a folder or a file_glob"
            break
        if pattern is None:
            if _fits(status.path, search.root, search.pattern):
                rows.append((status.modified, Match(status.path)))
        elif not search.glob or _fits(status.path, search.root, search.glob):
            rows += [(status.modified, one) for one in await _in_file(status, pattern, search, context)]
        if search.mode == "content" and not search.by_name and len(rows) > (search.first + search.most) * 25:
            break
    if search.by_name or search.mode == "files_only":
        rows.sort(key=lambda row: -row[0])
    return page([one for _, one in rows], search, note)


def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that takes a bounded time on a line; refuse any other."""
    try:
        tree = _parser.parse(pattern)
        if _weight(tree) > _MOST_REPEATS or _is_nested(tree, is_inside=False):
            raise Misconfigured(f"the pattern {pattern!r} repeats too much for a search here; write it simpler")
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise Misconfigured(f"the pattern {pattern!r} was not understood: {error}") from error


def _weight(tree: object) -> int:
    """Count the repetitions without a bound."""
    found = 0
    for kind, value in _nodes(tree):
        if kind in _repeats() and value[1] > _LONGEST_LINE // 10:
            found += 1
    return found


def _is_nested(tree: object, *, is_inside: bool) -> bool:
    """Whether a repetition is inside another, or chooses: then there are too many ways to read a line."""
    for kind, value in tree:  # type: ignore[attr-defined] # a list of pairs
        if kind in _repeats() and value[1] > 1:
            if is_inside or _is_nested(value[2], is_inside=True):
                return True
        elif (
            (is_inside and kind is _constants.BRANCH)
            or kind in (_constants.GROUPREF, _constants.GROUPREF_EXISTS)
            or any(_is_nested(part, is_inside=is_inside) for part in _parts(value))
        ):
            return True
    return False


def _repeats() -> tuple[object, ...]:
    return (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)


def _nodes(tree: object) -> list[tuple[object, tuple[int, int, object]]]:
    found = []
    for kind, value in tree:  # type: ignore[attr-defined] # a list of pairs
        found.append((kind, value))
        for part in _parts(value):
            found += _nodes(part)
    return found


def _parts(value: object) -> list[object]:
    if isinstance(value, _parser.SubPattern):
        return [value]
    if isinstance(value, (list, tuple)):
        return [part for one in value for part in _parts(one)]
    return []


async def _files(search: Search, context: ToolContext) -> AsyncIterator[FileStatus]:
    files = context.machine.files
    if not search.is_folder:
        status = await files.status(search.root)
        if status is not None:
            yield status
        return
    folders, seen = [search.root], 0
    while folders:
        try:
            names = await files.names(folders.pop())
        except HermesError:
            continue
        for one in names:
            if one.is_folder and one.path.name not in LEFT_OUT:
                folders.append(one.path)
            elif not one.is_folder:
                seen += 1
                yield one
        if seen > _MOST_FILES:
            return


async def _in_file(status: FileStatus, pattern: re.Pattern[str], search: Search, context: ToolContext) -> list[Match]:
    if status.size > _LARGEST:
        return []
    try:
        raw = await context.machine.files.read(status.path, limit=_LARGEST)
    except HermesError:
        return []
    if kind_of_binary(raw) is not None:
        return []
    return await anyio.to_thread.run_sync(_matched, status.path, raw, pattern, search)


def _matched(path: Path, raw: bytes, pattern: re.Pattern[str], search: Search) -> list[Match]:
    lines = raw.decode("utf-8", "replace").removesuffix("\n").split("\n")
    hits = [number for number, line in enumerate(lines) if pattern.search(line[:_LONGEST_LINE])]
    if not hits or search.mode == "files_only":
        return [Match(path)] if hits else []
    if search.mode == "count":
        return [Match(path, len(hits))]
    shown = {near for hit in hits for near in range(max(0, hit - search.around), hit + search.around + 1)}
    is_hit = set(hits)
    return [
        Match(path, number + 1, short(lines[number]), number in is_hit)
        for number in sorted(shown)
        if number < len(lines)
    ]


def _fits(path: Path, root: Path, glob: str) -> bool:
    name = path.relative_to(root).as_posix() if path != root else path.name
    return fnmatch.fnmatchcase(name if "/" in glob else path.name, glob.removeprefix("**/"))
