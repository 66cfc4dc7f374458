"""The tool `search_files`: by content or by name, with ripgrep on the machine where it is, else by ourselves."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from hermes.domain.effect import Effect, ReadPath
from hermes.domain.errors import Denied, Misconfigured, Unavailable
from hermes.domain.event import JSON
from hermes.domain.records import dataclass
from hermes.domain.tool import Outcome, ToolContext, ToolFailed, ToolResult
from hermes.effects.tool import Effects, FunctionTool, answer, tool
from hermes.tools import ripgrep, walking
from hermes.tools.matches import Matches, Search
from hermes.tools.paths import path_of, resolve, shown, similar

_LIMIT = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class SearchFiles:
    """What `search_files` takes."""

    pattern: Annotated[str, "regex for content, glob such as *.py for files"]
    target: Literal["content", "files"] = "content"
    path: str = "."
    file_glob: Annotated[str, "content: only in such files"] = ""
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    offset: Annotated[int, Meta(ge=0)] = 0
    output_mode: Literal["content", "files_only", "count"] = "content"
    context: Annotated[int, Meta(ge=0, le=10, description="lines around a match")] = 0


def search_files_tool(*, has_ripgrep: bool = True) -> FunctionTool:
    """Make the tool. Without ripgrep it looks for itself."""

    @tool(toolset="file", access="read", effects=_plan, timeout=_LIMIT)
    async def search_files(arguments: SearchFiles, effects: Effects, context: ToolContext) -> Outcome:
        """Search in files, or find files by name (newest first)."""
        root = path_of(effects)
        status = await context.machine.files.status(root)
        if status is None:
            near = await similar(root, context)
            return ToolFailed(
                f"{shown(root, context)!r} does not exist" + (f"; there is {', '.join(near)}" if near else "")
            )
        search = _search(arguments, root, is_folder=status.is_folder)
        found = await _with_ripgrep(search, context) if has_ripgrep else None
        if found is None:
            found = await walking.search(search, context)
        return _answer(found, search, context)

    return search_files


def _plan(arguments: SearchFiles, context: ToolContext) -> Sequence[Effect]:
    if not arguments.pattern or "\0" in arguments.pattern + arguments.file_glob or len(arguments.pattern) > 2_000:
        raise Misconfigured(f"{arguments.pattern[:100]!r} is no pattern to search for; write a regex or a glob")
    return (ReadPath(resolve(arguments.path, context), is_deep=True),)


def _search(arguments: SearchFiles, root: Path, *, is_folder: bool) -> Search:
    pattern = arguments.pattern
    if arguments.target == "files" and not any(sign in pattern for sign in "*?[{"):
        pattern = f"*{pattern}*"
    return Search(
        pattern=pattern,
        root=root,
        is_folder=is_folder,
        by_name=arguments.target == "files",
        glob=arguments.file_glob,
        first=arguments.offset,
        most=arguments.limit,
        mode=arguments.output_mode,
        around=arguments.context if arguments.output_mode == "content" else 0,
    )


async def _with_ripgrep(search: Search, context: ToolContext) -> Matches | None:
    """Only what commands can see is searched by one."""
    workspace = context.machine.files.resolve(context.workspace)
    if not search.root.is_relative_to(workspace):
        return None
    try:
        return await ripgrep.search(search, context)
    except (Denied, Unavailable):
        return None


def _answer(found: Matches, search: Search, context: ToolContext) -> ToolResult:
    fields: dict[str, JSON] = {}
    if search.by_name or search.mode == "files_only":
        fields["files"] = [shown(one.path, context) for one in found.rows]
    elif search.mode == "count":
        fields["counts"] = {shown(one.path, context): one.line for one in found.rows}
    else:
        fields["matches"] = [
            {
                "path": shown(one.path, context),
                "line": one.line,
                "content": one.text,
                **({} if one.is_match else {"context": True}),
            }
            for one in found.rows
        ]
    if found.is_cut:
        fields["truncated"] = True
        fields["next_offset"] = search.first + len([one for one in found.rows if one.is_match])
    if found.note:
        fields["note"] = found.note
    return answer(fields)
