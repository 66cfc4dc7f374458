"""A tool made from a typed function: its arguments are a record, its plan a function that says what it would touch.

Invariant: a function that may change something and does not say what, is judged as something nobody can see into.
"""

import inspect
import json
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, make_dataclass
from datetime import timedelta
from typing import Any, TypeAlias

import msgspec

from hermes.domain.effect import CallTool, Effect
from hermes.domain.event import JSON
from hermes.domain.records import dataclass
from hermes.domain.tool import (
    Access,
    Deferred,
    Outcome,
    Planned,
    ToolContext,
    ToolFailed,
    ToolResult,
    ToolRetry,
    ToolSpec,
)
from hermes.effects.arguments import Arguments

Effects: TypeAlias = tuple[Effect, ...]
Answer: TypeAlias = Outcome | str | Mapping[str, JSON]
Planner: TypeAlias = Callable[[Any, ToolContext], Sequence[Effect]]
"""Takes the parsed arguments; raises Misconfigured for those that cannot be."""
Function: TypeAlias = Callable[..., Awaitable[Answer]]

_OURS = ("context", "effects")
_LONGEST_SHOWN = 4_000


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """Implements `Tool` with a function. It is called with its record, or with keywords, and with what it asks for by
    name: `context`, and `effects` as they were judged.
    """

    spec: ToolSpec
    function: Function
    arguments: Arguments[Any]
    planner: Planner
    is_record: bool
    wants: frozenset[str]

    def plan(self, arguments: Mapping[str, JSON], context: ToolContext) -> Planned[object]:
        """Parse the arguments, and say what would be touched."""
        parsed = self.arguments.parse(arguments)
        return Planned(tuple(self.planner(parsed, context)), parsed)

    async def call(self, planned: Planned[object], context: ToolContext) -> Outcome:
        """Do it."""
        ours = {"context": context, "effects": planned.effects}
        keywords: dict[str, object] = {name: ours[name] for name in self.wants}
        if self.is_record:
            said = await self.function(planned.arguments, **keywords)
        else:
            named = {name: getattr(planned.arguments, name) for name in planned.arguments.__dataclass_fields__}  # type: ignore[attr-defined] # it was made below
            said = await self.function(**named, **keywords)
        return _as_outcome(said)


@dataclass(frozen=True, slots=True)
class ToolMaker:
    """What a tool is beside its function; applied to the function it makes the tool."""

    toolset: str
    access: Access
    effects: Planner | None = None
    timeout: timedelta = timedelta(minutes=10)
    requires_env: tuple[str, ...] = ()
    see_also: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None

    def __call__(self, function: Function) -> FunctionTool:
        """Make the tool. Its name is the function's; its description is the function's docstring."""
        name = self.name or function.__name__
        hints = typing.get_type_hints(function, include_extras=True)
        signature = inspect.signature(function)
        given = [one for one in signature.parameters.values() if one.name not in _OURS]
        is_record = len(given) == 1 and hasattr(hints.get(given[0].name), "__dataclass_fields__")
        record = hints[given[0].name] if is_record else _record(name, given, hints)
        arguments = Arguments(record)
        spec = ToolSpec(
            name=name,
            description=" ".join((inspect.getdoc(function) or "").split()),
            parameters=arguments.schema,
            access=self.access,
            toolset=self.toolset,
            timeout=self.timeout,
            requires_env=self.requires_env,
            see_also=self.see_also,
        )
        wants = frozenset(_OURS) & frozenset(signature.parameters)
        return FunctionTool(spec, function, arguments, self.effects or self._unseen(name), is_record, wants)

    def _unseen(self, name: str) -> Planner:
        def plan(arguments: object, _context: ToolContext) -> Sequence[Effect]:
            if self.access == "read":
                return ()
            return (CallTool(name, repr(arguments)[:_LONGEST_SHOWN]),)

        return plan


tool = ToolMaker
"""Make a tool of the async function below: `@tool(toolset="x", access="read")`."""


def touches_nothing(_arguments: object, _context: ToolContext) -> Sequence[Effect]:
    """The planner of a tool that changes nothing outside itself."""
    return ()


def answer(fields: Mapping[str, JSON]) -> ToolResult:
    """Answer with compact JSON, as models are used to."""
    return ToolResult(to_json(fields))


def to_json(value: JSON) -> str:
    """Write compact JSON; half characters, as file names may hold them, become escapes."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))


def _record(name: str, given: Sequence[inspect.Parameter], hints: Mapping[str, object]) -> type[Any]:
    made: list[Any] = []
    for one in sorted(given, key=lambda parameter: parameter.default is not parameter.empty):
        kind = hints.get(one.name, str)
        made.append((one.name, kind) if one.default is one.empty else (one.name, kind, field(default=one.default)))
    return make_dataclass(name, made, frozen=True)


def _as_outcome(said: Answer) -> Outcome:
    match said:
        case ToolResult() | ToolRetry() | ToolFailed() | Deferred():
            return said
        case str():
            return ToolResult(said)
        case _:
            return answer(said)
