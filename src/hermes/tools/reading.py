"""The tool `read_file`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from hermes.domain.effect import Effect, ReadPath
from hermes.domain.errors import NotFound
from hermes.domain.event import JSON
from hermes.domain.machine import FileStatus
from hermes.domain.records import dataclass
from hermes.domain.tool import Outcome, ToolContext, ToolFailed, ToolResult, ToolRetry
from hermes.effects.tool import Effects, FunctionTool, answer, tool
from hermes.tools.content import Text, kind_of_binary, read_text
from hermes.tools.paths import path_of, resolve, shown, similar
from hermes.tools.seen import Seen, sight

LARGEST = 20_000_000
_MOST_BYTES = 42_000
_LONGEST_LINE = 2_000
_MOST_NAMES = 50


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What `read_file` takes."""

    path: Annotated[str, "relative to the workspace, or absolute"]
    offset: Annotated[int, Meta(ge=1, description="first line")] = 1
    limit: Annotated[int, Meta(ge=1, le=2000)] = 500


def read_file_tool(seen: Seen) -> FunctionTool:
    """Make the tool."""

    @tool(toolset="file", access="read", effects=_plan, see_also={"search_files": "Find files with search_files."})
    async def read_file(arguments: ReadFile, effects: Effects, context: ToolContext) -> Outcome:
        """Read a text file as LINE|TEXT, a page at a time. Notebooks are shown as cells."""
        path = path_of(effects)
        status = await context.machine.files.status(path)
        refusal = await _refusal(path, status, context)
        if refusal is not None or status is None:
            return refusal or ToolFailed(f"{str(path)!r} is gone")
        part = (arguments.offset, arguments.limit)
        last = seen.get(context.session, path)
        if last is not None and last.is_first_repetition(status, part):
            seen.note(context.session, path, replace(last, is_repeated=True))
            note = "already read, and unchanged since; look above, or call once more to see it again"
            return answer({"path": shown(path, context), "note": note})
        raw = await context.machine.files.read(path, limit=LARGEST)
        kind = kind_of_binary(raw)
        if kind is not None:
            return ToolFailed(f"{shown(path, context)!r} is {kind}, {len(raw):,} bytes: no text to be read")
        seen.note(context.session, path, sight(status, raw, part))
        return _page(read_text(raw, name=path.name), arguments, shown(path, context))

    return read_file


def _plan(arguments: ReadFile, context: ToolContext) -> Sequence[Effect]:
    return (ReadPath(resolve(arguments.path, context)),)


async def _refusal(path: Path, status: FileStatus | None, context: ToolContext) -> Outcome | None:
    name = shown(path, context)
    if status is None:
        near = await similar(path, context)
        raise NotFound(f"{name!r} does not exist" + (f"; there is {', '.join(near)}" if near else ""))
    if status.is_folder:
        names = [one.path.name + "/" * one.is_folder for one in await context.machine.files.names(path)]
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        return ToolRetry(f"{name!r} is a folder; in it: {', '.join(names[:_MOST_NAMES]) or 'nothing'}{more}")
    if status.size > LARGEST:
        return ToolFailed(
            f"{name!r} has {status.size:,} bytes; files up to {LARGEST:,} can be read. "
            "Take a part of it, such as sed -n 1,200p or grep in the terminal"
        )
    return None


def _page(text: Text, arguments: ReadFile, name: str) -> ToolResult | ToolRetry:
    lines = text.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    first = arguments.offset - 1
    if first >= len(lines) > 0:
        return ToolRetry(f"{name!r} has {len(lines)} lines; there is no line {arguments.offset}")
    page: list[str] = []
    size = 0
    for number, line in enumerate(lines[first : first + arguments.limit], arguments.offset):
        row = f"{number}|{_short(line)}"
        size += _encoded(row)
        if size > _MOST_BYTES and page:
            break
        page.append(row)
    after = first + len(page)
    fields: dict[str, JSON] = {"content": "\n".join(page), "total_lines": len(lines), "truncated": after < len(lines)}
    if after < len(lines):
        fields["next_offset"] = after + 1
    if text.note:
        fields["note"] = text.note
    return answer(fields)


def _encoded(row: str) -> int:
    """How long a line is in JSON."""
    if row.isascii() and row.isprintable():
        return len(row) + row.count('"') + row.count("\\") + 2
    return len(msgspec.json.encode(row))


def _short(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}… ({len(line) - _LONGEST_LINE:,} more)"
