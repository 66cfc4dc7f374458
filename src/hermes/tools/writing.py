"""The tool `write_file`."""

from collections.abc import Sequence
from typing import Annotated

from hermes.domain.effect import Effect, WritePath
from hermes.domain.errors import Misconfigured
from hermes.domain.event import JSON
from hermes.domain.records import dataclass
from hermes.domain.tool import Outcome, ToolContext, ToolRetry
from hermes.effects.tool import Effects, FunctionTool, answer, tool
from hermes.tools.change import Change, apply, counts, diff, present
from hermes.tools.paths import path_of, resolve, shown
from hermes.tools.seen import Seen
from hermes.tools.syntax import mistake

_SHOWN = 3_000


@dataclass(frozen=True, slots=True)
class WriteFile:
    """What `write_file` takes."""

    path: str
    content: Annotated[str, "all of the file"]


def write_file_tool(seen: Seen) -> FunctionTool:
    """Make the tool."""

    @tool(toolset="file", access="write", effects=_plan, see_also={"patch": "Change parts of a file with patch."})
    async def write_file(arguments: WriteFile, effects: Effects, context: ToolContext) -> Outcome:
        """Write a whole file; folders are made."""
        path = path_of(effects)
        name = shown(path, context)
        old = await present(path, context)
        if old is not None and seen.is_stale(context.session, path, old):
            return ToolRetry(f"{name!r} has changed since you read it; read it again, then write what is right now")
        change = Change(path, old, arguments.content.encode())
        await apply([change], context, seen)
        fields: dict[str, JSON] = {"success": True, "path": name, **counts(change)}
        if old is not None:
            fields["diff"] = diff(change, name)
        wrong = mistake(path.name, arguments.content)
        return answer({**fields, "syntax_error": wrong} if wrong else fields)

    return write_file


def _plan(arguments: WriteFile, context: ToolContext) -> Sequence[Effect]:
    try:
        size = len(arguments.content.encode())
    except UnicodeEncodeError:
        raise Misconfigured("the content holds half characters, which no file in UTF-8 can; write it anew") from None
    summary = f"{size:,} bytes:\n{arguments.content[:_SHOWN]}" + ("\n…" if len(arguments.content) > _SHOWN else "")
    return (WritePath(resolve(arguments.path, context), summary),)
