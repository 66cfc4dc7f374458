"""The tool `process`: look at, wait for, write to and end background processes."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal

from msgspec import Meta

from hermes.domain.effect import Effect, RunCommand
from hermes.domain.errors import Misconfigured
from hermes.domain.event import JSON
from hermes.domain.machine import ProcessState
from hermes.domain.records import dataclass
from hermes.domain.tool import Outcome, ToolContext, ToolFailed
from hermes.effects.spill import clip
from hermes.effects.tool import FunctionTool, answer, tool
from hermes.tools.terminal import Shells, readable

_MOST_SECONDS = 600
_POLLED = 4_000
_PAGE = 24_000
_EXPECTED = timedelta(seconds=30)

Action = Literal["list", "poll", "log", "wait", "write", "submit", "close", "kill"]
_WRITING = ("write", "submit")


@dataclass(frozen=True, slots=True)
class Process:
    """What `process` takes."""

    action: Annotated[Action, "poll: state and news; log: a page; submit: write and Enter; close: end of input"]
    session_id: str = ""
    data: str = ""
    timeout: Annotated[int, Meta(ge=1, description="wait: seconds")] = 60
    offset: Annotated[int, Meta(ge=0, description="log: first byte")] = 0
    limit: Annotated[int, Meta(ge=1, description="log: bytes")] = 8000


def process_tool(shells: Shells) -> FunctionTool:
    """Make the tool."""

    def plan(arguments: Process, context: ToolContext) -> Sequence[Effect]:
        if arguments.action != "list" and not arguments.session_id:
            raise Misconfigured(f"{arguments.action!r} needs the session_id that terminal returned")
        if arguments.action in _WRITING and arguments.session_id in shells.unheld:
            # Nothing holds the process, so what it is told is as good as a command, and no yes covers the next one.
            told = f"(input of the background process {arguments.session_id})\n{arguments.data}"
            return (RunCommand(told, context.workspace, is_background=True, is_full=True),)
        return ()

    @tool(toolset="terminal", access="write", effects=plan, timeout=timedelta(seconds=_MOST_SECONDS) + _EXPECTED)
    async def process(arguments: Process, context: ToolContext) -> Outcome:
        """Background processes started by terminal."""
        machine, name = context.machine, arguments.session_id
        states = {one.id: one for one in machine.processes(context.session)}
        if arguments.action == "list":
            return answer({"processes": [_described(one) for one in states.values()]})
        if name not in states:
            return ToolFailed(f"there is no background process {name!r} here; there are: {', '.join(states) or 'none'}")
        match arguments.action:
            case "poll":
                return await _with_tail(states[name], context)
            case "log":
                return await _page(states[name], arguments, context)
            case "wait":
                limit = timedelta(seconds=min(arguments.timeout, _MOST_SECONDS))
                return await _with_tail(await machine.wait(name, limit), context)
            case "write" | "submit" | "close":
                end = "\n" if arguments.action == "submit" else ""
                data = (arguments.data + end).encode("utf-8", "replace") if arguments.action != "close" else b""
                await machine.write(name, data, close=arguments.action == "close")
                return answer({"status": "closed" if arguments.action == "close" else "written", "bytes": len(data)})
            case _:
                return await _with_tail(await machine.kill(name), context)

    return process


def _described(state: ProcessState) -> dict[str, JSON]:
    fields: dict[str, JSON] = {
        "session_id": state.id,
        "command": state.command[:200],
        "status": "running" if state.exit_code is None else "exited",
        "uptime_seconds": round(state.seconds, 1),
    }
    return fields if state.exit_code is None else {**fields, "exit_code": state.exit_code}


async def _with_tail(state: ProcessState, context: ToolContext) -> Outcome:
    first = max(0, state.total - _POLLED)
    raw = await context.machine.output(state.id, offset=first, limit=_POLLED)
    left_out = {"earlier_bytes": first} if first else {}
    return answer({**_described(state), "output": readable(raw), **left_out})


async def _page(state: ProcessState, arguments: Process, context: ToolContext) -> Outcome:
    size = min(arguments.limit, _PAGE)
    raw = await context.machine.output(state.id, offset=arguments.offset, limit=size)
    after = arguments.offset + len(raw)
    text = readable(raw)
    cut = clip(text, _PAGE, 1_500)
    fields = {**_described(state), "output": cut.text if cut else text, "total_bytes": state.total}
    return answer({**fields, "next_offset": after} if after < state.total else fields)
