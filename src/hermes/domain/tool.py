"""What a model can do: a tool says what it would touch, is judged, and only then acts.

Invariant: `plan` is pure; `call` does what its plan says and nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from pathlib import Path
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

from hermes.domain.approval import Approver
from hermes.domain.clock import Clock
from hermes.domain.effect import Effect
from hermes.domain.event import JSON
from hermes.domain.machine import Machine, MayConnect, Mode
from hermes.domain.message import CallId, ImagePart
from hermes.domain.principal import Principal
from hermes.domain.records import dataclass
from hermes.domain.session import RunId, SessionId

P = TypeVar("P")

Access = Literal["read", "write", "external"]
"""Reads run side by side and again after a crash; writes run in order, and are never repeated in silence."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is told of a tool. `see_also` is added to the description only when that tool is there too."""

    name: str
    description: str
    parameters: Mapping[str, JSON]
    access: Access
    toolset: str
    timeout: timedelta = timedelta(minutes=10)
    requires_env: tuple[str, ...] = ()
    see_also: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """It worked; `text` is what the model reads."""

    text: str
    images: tuple[ImagePart, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolRetry:
    """The model can mend this: wrong arguments, a text that was not found."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """It did not work, and other arguments will not help."""

    text: str


@dataclass(frozen=True, slots=True)
class Deferred:
    """The answer comes later, as a new message, under this id."""

    id: str


Outcome: TypeAlias = ToolResult | ToolRetry | ToolFailed | Deferred


def _unseen(_call: CallId) -> None:
    """Nobody looks."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where and for whom a tool acts. `progress` shows a line to whoever looks; `ask` puts a question to the person
    and returns None when nobody is there.
    """

    principal: Principal
    session: SessionId
    run: RunId
    call: CallId
    clock: Clock
    machine: Machine
    workspace: Path
    progress: Callable[[str], None]
    ask: "Ask"
    mode: Mode = "workspace"
    may_connect: MayConnect | None = None
    """Judges the connections of what a tool starts; set by the executor."""
    session_tools: frozenset[str] = frozenset()
    """The names of the tools that the model has."""
    approver: Approver | None = None
    """The person who is there in this run and can be asked."""
    begin: Callable[[CallId], None] = _unseen
    """Called when a call was judged, and is done from now on."""


class Ask(Protocol):
    """A question to the person in front of the screen."""

    async def __call__(self, question: str, choices: Sequence[str] = ()) -> str | None:
        """Return the answer, or None when nobody can be asked."""
        ...


class Tool(Protocol, Generic[P]):
    """One tool. `plan` raises Misconfigured for arguments that cannot be: the model reads the message."""

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        ...

    def plan(self, arguments: Mapping[str, JSON], context: ToolContext) -> "Planned[P]":
        """Say what the call would touch. No I/O but resolving paths."""
        ...

    async def call(self, planned: "Planned[P]", context: ToolContext) -> Outcome:
        """Do it. What it raises of HermesError becomes ToolFailed; it honours cancellation."""
        ...


@dataclass(frozen=True, slots=True)
class Planned(Generic[P]):
    """What a call would touch, and the parsed arguments to do it with."""

    effects: tuple[Effect, ...]
    arguments: P


class Toolset(Protocol):
    """A group of tools that comes and goes as one: local functions, a server's, another agent's."""

    @property
    def name(self) -> str:
        """How it is switched on and off."""
        ...

    def tools(self) -> Sequence[Tool[object]]:
        """The tools that are available now, by name."""
        ...

    def instructions(self) -> str:
        """What the model is told about the group; may be empty."""
        ...
