"""The tool `todo`: the agent's own list of work, one for each session."""

from collections import Counter, OrderedDict
from typing import Annotated, Literal

from msgspec import Meta

from hermes.domain.event import JSON
from hermes.domain.records import dataclass
from hermes.domain.session import SessionId
from hermes.domain.tool import Outcome, ToolContext, ToolRetry
from hermes.effects.tool import FunctionTool, answer, tool, touches_nothing

_MOST_SESSIONS = 1_000
_LONGEST = 2_000
_STATES = ("pending", "in_progress", "completed", "cancelled")


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of work."""

    id: str
    content: str
    status: Literal["pending", "in_progress", "completed", "cancelled"] = "pending"


@dataclass(frozen=True, slots=True)
class Todo:
    """What `todo` takes; nothing shows the list."""

    todos: Annotated[tuple[Item, ...], Meta(max_length=100)] | None = None
    merge: Annotated[bool, "change or add these, keep the others"] = False


def todo_tool() -> FunctionTool:
    """Make the tool, with no list yet."""
    lists: OrderedDict[SessionId, dict[str, Item]] = OrderedDict()

    @tool(toolset="todo", access="write", effects=touches_nothing)
    async def todo(arguments: Todo, context: ToolContext) -> Outcome:
        """Your list of work for what takes several steps; one item in_progress. Without todos it is shown."""
        now = lists.get(context.session, {})
        if arguments.todos is not None:
            given = {one.id: one for one in arguments.todos}
            if len(given) < len(arguments.todos):
                return ToolRetry("two items have the same id; give each its own")
            if any(len(one.content) > _LONGEST for one in arguments.todos):
                return ToolRetry(f"an item is longer than {_LONGEST:,} characters; keep it to a line")
            now = {**now, **given} if arguments.merge else given
            lists[context.session] = now
            lists.move_to_end(context.session)
            while len(lists) > _MOST_SESSIONS:
                lists.popitem(last=False)
        counted = Counter(one.status for one in now.values())
        items: list[JSON] = [{"id": one.id, "content": one.content, "status": one.status} for one in now.values()]
        summary: dict[str, JSON] = {"total": len(items), **{state: counted[state] for state in _STATES}}  # type: ignore[index] # the states are those of an item
        return answer({"todos": items, "summary": summary})

    return todo
