"""The tool `patch`: one replacement, or a patch of several files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from hermes.domain.effect import Effect, WritePath
from hermes.domain.errors import Conflict, Misconfigured, NotFound
from hermes.domain.event import JSON
from hermes.domain.records import dataclass
from hermes.domain.tool import Outcome, ToolContext, ToolRetry
from hermes.effects.tool import Effects, FunctionTool, answer, tool
from hermes.tools import fuzzy, v4a
from hermes.tools.change import Change, apply, as_text, diff, present
from hermes.tools.paths import path_of, resolve, shown, similar
from hermes.tools.seen import Seen
from hermes.tools.syntax import mistake

_SHOWN = 3_000
_MOST_FILES = 100
_MOST_DIFF = 12_000


@dataclass(frozen=True, slots=True)
class Patch:
    """What `patch` takes."""

    mode: Annotated[Literal["replace", "patch"], "replace: path, old_string, new_string; patch: patch"] = "replace"
    path: str = ""
    old_string: Annotated[str, "must be unique, or set replace_all"] = ""
    new_string: str = ""
    replace_all: bool = False
    patch: Annotated[str, "*** Begin Patch / *** Update|Add|Delete File: / *** Move to: / @@ / *** End Patch"] = ""


def patch_tool(seen: Seen) -> FunctionTool:
    """Make the tool."""

    @tool(toolset="file", access="write", effects=_plan)
    async def patch(arguments: Patch, effects: Effects, context: ToolContext) -> Outcome:
        """Edit files: replace a text, or apply a V4A patch to several files, all or nothing."""
        try:
            if arguments.mode == "replace":
                changes, notes = await _replaced(arguments, path_of(effects), context)
            else:
                changes, notes = await _patched(v4a.parse(arguments.patch), effects, context), {}
        except (Misconfigured, NotFound, Conflict) as error:
            return ToolRetry(str(error))
        stale = [
            shown(one.path, context) for one in changes if one.old and seen.is_stale(context.session, one.path, one.old)
        ]
        await apply(changes, context, seen)
        return _answer(changes, {**notes, **({"changed_since_read": stale} if stale else {})}, context)

    return patch


def _plan(arguments: Patch, context: ToolContext) -> Sequence[Effect]:
    if arguments.mode == "replace":
        if not arguments.path or not arguments.old_string:
            raise Misconfigured("replace needs path, old_string and new_string; to write a new file use write_file")
        if arguments.old_string == arguments.new_string:
            raise Misconfigured("old_string and new_string are the same; there is nothing to change")
        summary = f"replace:\n{arguments.old_string[:_SHOWN]}\nby:\n{arguments.new_string[:_SHOWN]}"
        return (WritePath(resolve(arguments.path, context), summary),)
    operations = v4a.parse(arguments.patch)
    if len(operations) > _MOST_FILES:
        raise Misconfigured(f"the patch has {len(operations)} files; at most {_MOST_FILES} are taken at once")
    effects = []
    for one in operations:
        effects.append(WritePath(resolve(one.path, context), one.summary))
        if one.move_to is not None:
            effects.append(WritePath(resolve(one.move_to, context), f"moved from {one.path}"))
    return effects


async def _replaced(arguments: Patch, path: Path, context: ToolContext) -> tuple[list[Change], dict[str, JSON]]:
    raw = await _existing(path, context)
    content, newline = _plain(as_text(path, raw))
    old, new = arguments.old_string.replace("\r\n", "\n"), arguments.new_string.replace("\r\n", "\n")
    found = fuzzy.find(content, old)
    name = shown(path, context)
    if found is None:
        near = fuzzy.nearest(content, old)
        raise NotFound(f"old_string is not in {name!r}" + (f"; the nearest lines are:\n{near}" if near else ""))
    if len(found.spans) > 1 and (not arguments.replace_all or found.strategy != "exact"):
        numbers = ", ".join(str(content.count("\n", 0, first) + 1) for first, _ in found.spans[:20])
        raise Conflict(
            f"old_string is {len(found.spans)} times in {name!r}, at lines {numbers}; give more lines around it"
        )
    for first, last in reversed(found.spans):
        content = content[:first] + found.fit(new) + content[last:]
    notes: dict[str, JSON] = {"replacements": len(found.spans)}
    if found.strategy != "exact":
        notes["matched_by"] = found.strategy
    return [Change(path, raw, _encoded(content, newline))], notes


async def _patched(operations: Sequence[v4a.Operation], effects: Effects, context: ToolContext) -> list[Change]:
    """Work everything out before anything is written. Each path is the one that was judged."""
    paths = iter([one.path for one in effects if isinstance(one, WritePath)])
    old: dict[Path, bytes | None] = {}
    new: dict[Path, bytes | None] = {}
    for one in operations:
        path = next(paths)
        target = next(paths) if one.move_to is not None else path
        for place in (path, target):
            if place not in old:
                old[place] = new[place] = await present(place, context)
        _work_out(one, path, target, new)
    return [Change(path, old[path], new[path]) for path in new if old[path] != new[path]]


def _work_out(one: v4a.Operation, path: Path, target: Path, new: dict[Path, bytes | None]) -> None:
    present_now = new[path]
    if one.kind == "add":
        if present_now is not None:
            raise Conflict(f"{one.path!r} is there already; use '*** Update File'")
        new[path] = "".join(f"{line}\n" for line in one.lines).encode()
        return
    if present_now is None:
        raise NotFound(f"{one.path!r} does not exist, so it cannot be {one.kind}d")
    if one.kind == "delete":
        new[path] = None
        return
    content, newline = _plain(as_text(path, present_now))
    if target != path and new[target] is not None:
        raise Conflict(f"{one.move_to!r} is there already; nothing is moved over it")
    new[path] = None
    new[target] = _encoded(v4a.updated(one, content), newline)


async def _existing(path: Path, context: ToolContext) -> bytes:
    raw = await present(path, context)
    if raw is None:
        near = await similar(path, context)
        hint = f"; there is {', '.join(near)}" if near else ""
        raise NotFound(f"{shown(path, context)!r} does not exist{hint}")
    return raw


def _plain(text: str) -> tuple[str, str]:
    """Return a text with plain line ends, and those it had."""
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    return (text.replace("\r\n", "\n") if newline == "\r\n" else text), newline


def _encoded(text: str, newline: str) -> bytes:
    try:
        return (text.replace("\n", "\r\n") if newline == "\r\n" else text).encode()
    except UnicodeEncodeError:
        raise Misconfigured("the new text holds half characters, which no file in UTF-8 can; write it anew") from None


def _answer(changes: Sequence[Change], notes: dict[str, JSON], context: ToolContext) -> Outcome:
    diffs, wrong = [], {}
    for change in changes:
        name = shown(change.path, context)
        diffs.append(diff(change, name) if change.new is not None else f"{name}: deleted")
        found = mistake(change.path.name, change.new.decode()) if change.new is not None else None
        if found:
            wrong[name] = found
    text = "\n".join(diffs)
    fields: dict[str, JSON] = {"success": True, "diff": text[:_MOST_DIFF], **notes}
    return answer({**fields, "syntax_errors": wrong} if wrong else fields)
