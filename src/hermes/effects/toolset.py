"""Groups of tools, and what can be made of groups: more, fewer, other names, other bounds.

Invariant: a combination calls the tool it was made of and nothing else; what was asked about stays asked about.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from hermes.domain.effect import CallTool
from hermes.domain.errors import Conflict, LimitReached, Misconfigured
from hermes.domain.event import JSON
from hermes.domain.records import dataclass
from hermes.domain.session import RunId
from hermes.domain.tool import Outcome, Planned, Tool, ToolContext, Toolset, ToolSpec

_MOST_RUNS = 1_000


def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Tools:
    """Implements `Toolset` with tools that are given. `is_available` is asked each time; it returns at once."""

    name: str
    given: tuple[Tool[object], ...]
    said: str = ""
    is_available: Callable[[], bool] = _always

    def tools(self) -> Sequence[Tool[object]]:
        """The tools, when they are available."""
        return self.given if self.is_available() else ()

    def instructions(self) -> str:
        """What the model is told about the group."""
        return self.said if self.is_available() else ""


@dataclass(frozen=True, slots=True)
class _Changed:
    """A toolset whose tools are other than those of the one inside."""

    inside: Toolset
    change: Callable[[Sequence[Tool[object]]], Sequence[Tool[object]]]

    @property
    def name(self) -> str:
        return self.inside.name

    def tools(self) -> Sequence[Tool[object]]:
        return self.change(self.inside.tools())

    def instructions(self) -> str:
        return self.inside.instructions() if self.tools() else ""


@dataclass(frozen=True, slots=True)
class _Wrapped:
    """A tool that differs from the one inside in what the model is told."""

    inside: Tool[object]
    spec: ToolSpec

    def plan(self, arguments: Mapping[str, JSON], context: ToolContext) -> Planned[object]:
        return self.inside.plan(arguments, context)

    async def call(self, planned: Planned[object], context: ToolContext) -> Outcome:
        return await self.inside.call(planned, context)


@dataclass(frozen=True, slots=True)
class _Approved:
    """A tool that a person is asked about, whatever it would touch."""

    inside: Tool[object]

    @property
    def spec(self) -> ToolSpec:
        return self.inside.spec

    def plan(self, arguments: Mapping[str, JSON], context: ToolContext) -> Planned[object]:
        planned = self.inside.plan(arguments, context)
        return replace(planned, effects=(CallTool(self.spec.name, repr(planned.arguments)), *planned.effects))

    async def call(self, planned: Planned[object], context: ToolContext) -> Outcome:
        return await self.inside.call(replace(planned, effects=planned.effects[1:]), context)


@dataclass(frozen=True, slots=True)
class _Budgeted:
    """A tool that may be called so many times in a run; the tools of one group count together."""

    inside: Tool[object]
    calls: int
    used: OrderedDict[RunId, int]

    @property
    def spec(self) -> ToolSpec:
        return self.inside.spec

    def plan(self, arguments: Mapping[str, JSON], context: ToolContext) -> Planned[object]:
        return self.inside.plan(arguments, context)

    async def call(self, planned: Planned[object], context: ToolContext) -> Outcome:
        used = self.used.get(context.run, 0)
        if used >= self.calls:
            raise LimitReached(f"{self.spec.name!r} was used {used} times in this run, which is all it may be used")
        self.used[context.run] = used + 1
        self.used.move_to_end(context.run)
        while len(self.used) > _MOST_RUNS:
            self.used.popitem(last=False)
        return await self.inside.call(planned, context)


def combined(toolsets: Sequence[Toolset], *, name: str = "all") -> Toolset:
    """All tools of several groups. Raises Conflict where two have the same name."""
    return _Combined(name, tuple(toolsets))


@dataclass(frozen=True, slots=True)
class _Combined:
    name: str
    groups: tuple[Toolset, ...]

    def tools(self) -> Sequence[Tool[object]]:
        found: dict[str, Tool[object]] = {}
        for group in self.groups:
            for one in group.tools():
                if one.spec.name in found:
                    first = found[one.spec.name].spec.toolset
                    raise Conflict(
                        f"the tool {one.spec.name!r} is in {first!r} and in {group.name!r}; rename or disable one"
                    )
                found[one.spec.name] = one
        return tuple(found.values())

    def instructions(self) -> str:
        return "\n\n".join(said for group in self.groups if (said := group.instructions()))


def filtered(toolset: Toolset, keep: Callable[[ToolSpec], bool]) -> Toolset:
    """The tools for which `keep` says yes."""
    return _Changed(toolset, lambda tools: [one for one in tools if keep(one.spec)])


def equipped(toolset: Toolset, variables: Collection[str]) -> Toolset:
    """The tools whose required variables are all set."""
    return filtered(toolset, lambda spec: all(name in variables for name in spec.requires_env))


def renamed(toolset: Toolset, names: Mapping[str, str]) -> Toolset:
    """Other names for some tools."""
    return _Changed(toolset, lambda tools: [_named(one, names.get(one.spec.name, one.spec.name)) for one in tools])


def prefixed(toolset: Toolset, prefix: str) -> Toolset:
    """The same words before every name."""
    return _Changed(toolset, lambda tools: [_named(one, prefix + one.spec.name) for one in tools])


def timed(toolset: Toolset, limit: timedelta) -> Toolset:
    """No call may take longer."""
    if limit <= timedelta(0):
        raise Misconfigured(f"a tool cannot take {limit} at most; give it some seconds")

    def change(tools: Sequence[Tool[object]]) -> Sequence[Tool[object]]:
        return [_Wrapped(one, replace(one.spec, timeout=min(one.spec.timeout, limit))) for one in tools]

    return _Changed(toolset, change)


def approved(toolset: Toolset, names: Collection[str] | None = None) -> Toolset:
    """A person is asked before each call of these tools, or of all."""
    return _Changed(
        toolset, lambda tools: [_Approved(one) if names is None or one.spec.name in names else one for one in tools]
    )


def budgeted(toolset: Toolset, calls: int) -> Toolset:
    """The tools may together be called so many times in a run."""
    used: OrderedDict[RunId, int] = OrderedDict()
    return _Changed(toolset, lambda tools: [_Budgeted(one, calls, used) for one in tools])


def _named(one: Tool[object], name: str) -> Tool[object]:
    return one if name == one.spec.name else _Wrapped(one, replace(one.spec, name=name))
