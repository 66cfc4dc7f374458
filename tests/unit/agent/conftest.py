"""An assistant on a desk of its own: a scripted model, a few tools, a store on any engine."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest

from hermes.agent.agent import Agent
from hermes.agent.beginning import Parts
from hermes.agent.compaction import Terms
from hermes.agent.house import House
from hermes.agent.model import Model
from hermes.agent.session import Sessions
from hermes.agent.turn import Ended, Turn, nobody
from hermes.config import Settings
from hermes.domain.event import Event
from hermes.domain.message import CallId, CallPart, Message, MessageId, TextPart
from hermes.domain.model import Delta, Reply, Request, Show, Usage
from hermes.domain.principal import Principal
from hermes.domain.session import RunId, Session
from hermes.domain.tool import ToolContext, ToolSpec
from hermes.effects.approving import Gate, StoredMemory
from hermes.effects.executor import Executor, Surroundings
from hermes.effects.places import Grounds
from hermes.effects.spill import Spill
from hermes.effects.tool import tool
from hermes.effects.toolset import Tools
from hermes.jobs.lane import Lane
from hermes.machines.local import LocalMachine, open_local
from hermes.testing.clock import NOON, FakeClock
from hermes.testing.world import World, open_world

OWNER = Principal.owner()
Said: TypeAlias = "str | Exception | Sequence[tuple[str, object]] | Callable[[Request], Awaitable[Said]]"
"""What the scripted model answers: words, an error, calls of tools, or a function that says it later."""


@dataclass
class Script:
    """A model that says what it was told to. Keeps every request it was sent."""

    says: list[Said] = field(default_factory=list)
    window: int = 100_000
    model: str = "scripted"
    wire: str = "test"
    sent: list[bytes] = field(default_factory=list)
    calls: int = 0
    show: Show = lambda _delta: None

    @property
    def name(self) -> str:
        return f"test/{self.model}"

    def prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        return json.dumps([self.model, system, [spec.name for spec in tools]]).encode()

    def encode(self, message: Message) -> bytes:
        said: list[object] = [message.role, message.text]
        said += [[part.id, part.name, part.arguments] for part in message.calls]
        said += [[part.call, part.text] for part in message.results]
        return json.dumps(said).encode()

    async def call(self, request: Request, show: Show) -> Reply:
        body = b"\n".join([request.prefix, *request.messages, *request.ephemeral])
        self.sent.append(body)
        self.show = show
        said: Said = self.says.pop(0) if self.says else "done"
        while callable(said):
            said = await said(request)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, str):
            for word in said.split(" "):
                show(Delta("text", word))
            parts: tuple[TextPart | CallPart, ...] = (TextPart(said),)
        else:
            parts = tuple(self._call(name, arguments) for name, arguments in said)
        message = Message(MessageId("m"), "assistant", parts, NOON)
        finish = "stop" if isinstance(said, str) else "tool_calls"
        encoded = self.encode(message)
        usage = Usage(input=len(body) // 4, output=len(encoded) // 4)
        return Reply(message, encoded, finish, usage, self.model)  # type: ignore[arg-type] # one of its words

    def _call(self, name: str, arguments: object) -> CallPart:
        self.calls += 1
        return CallPart(CallId(f"c{self.calls}"), name, json.dumps(arguments))


@dataclass
class Desk:
    """One assistant at work."""

    world: World
    machine: LocalMachine
    home: Path
    workspace: Path
    script: Script = field(default_factory=Script)
    done: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    compaction: Terms = field(default_factory=Terms)
    gates: dict[str, anyio.Event] = field(default_factory=dict)
    reached: anyio.Event = field(default_factory=anyio.Event)

    def __post_init__(self) -> None:
        self.agent = self.make()
        self.session = self.sessions.make(OWNER, source="test", workspace=self.workspace)
        self.is_new = True

    @property
    def lane(self) -> Lane:
        return Lane.of_this_process(self.world.store)

    @property
    def sessions(self) -> Sessions:
        return Sessions(self.world.store, self.world.clock, self.lane)

    def make(self) -> Agent:
        """Make an assistant anew, as a process that was just started does."""
        return Agent(self.parts())

    def parts(self, lane: Lane | None = None) -> Parts:
        """Return what an assistant is made of; `lane` is that of another process."""
        return Parts(
            store=self.world.store,
            clock=self.world.clock,
            lane=lane or self.lane,
            model=Model(self.script, self.script.call, lambda _name, usage: usage.input),
            hands=self.hands(),
            machine=self.open_machine,
            house=House(self.home, self.world.clock),
            compaction=self.compaction,
            watches=lambda: (self.events.append,),
        )

    async def open_machine(self) -> LocalMachine:
        return self.machine

    def hands(self) -> Executor:
        grounds = Grounds(home=self.home.resolve(), user_home=Path.home())
        gate = Gate(StoredMemory(self.world.store), None, self.world.clock)
        around = Surroundings(grounds, gate, Spill(self.home, self.world.clock))
        return Executor(Tools("test", (self._look(), self._do(), self._wait())), around)

    def _look(self) -> object:
        @tool(toolset="test", access="read")
        async def look(what: str, size: int = 0) -> str:
            """Look at something."""
            self.done.append(f"look {what}")
            return f"saw {what}{'.' * size}"

        return look

    def _do(self) -> object:
        @tool(toolset="test", access="write", effects=lambda _arguments, _context: ())
        async def do(what: str) -> str:
            """Do something."""
            self.done.append(f"do {what}")
            return f"did {what}"

        return do

    def _wait(self) -> object:
        @tool(toolset="test", access="write", effects=lambda _arguments, _context: ())
        async def wait(name: str, context: ToolContext) -> str:
            """Wait for a test."""
            self.done.append(f"wait {name}")
            self.reached.set()
            await self.gates.setdefault(name, anyio.Event()).wait()
            return f"waited {name}"

        return wait

    async def context(self) -> ToolContext:
        """Where a tool of this session acts."""
        return ToolContext(
            principal=OWNER,
            session=self.session.id,
            run=RunId("r"),
            call=CallId("c"),
            clock=self.world.clock,
            machine=self.machine,
            workspace=self.workspace,
            progress=lambda _text: None,
            ask=nobody,
        )

    def turn(self, text: str, **more: object) -> Turn:
        parts = (TextPart(text),) if text else ()
        made = Turn(principal=OWNER, session=self.session, parts=parts, workspace=self.workspace, is_new=self.is_new)
        return replace(made, **more)  # type: ignore[arg-type] # the test names fields of Turn

    async def say(self, text: str, *says: Said, **more: object) -> Ended:
        """Say something, with what the model will answer to it."""
        self.script.says.extend(says)
        turn = self.turn(text, **more)
        self.is_new = False
        return await self.agent.run(turn)

    async def path(self, session: Session | None = None) -> list[Message]:
        return await self.sessions.path(OWNER, (session or self.session).id)

    async def story(self) -> list[str]:
        """What the model is sent, a word for the role and the words."""
        return [f"{m.role}: {m.text or ''.join(r.text for r in m.results)}".strip() for m in await self.path()]


MakeDesk: TypeAlias = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def make_desk(tmp_path: Path, database_url: str) -> MakeDesk:
    @asynccontextmanager
    async def make(**options: object) -> AsyncIterator[Desk]:
        home, workspace = tmp_path / "home", tmp_path / "work"
        home.mkdir(exist_ok=True)
        workspace.mkdir(exist_ok=True)
        clock = FakeClock()
        machine = open_local(Settings(home=home), clock, environment={})
        async with open_world(database_url, tmp_path, clock=clock) as world, machine:
            yield Desk(world, machine, home, workspace, **options)  # type: ignore[arg-type] # fields of Desk

    return make


@pytest.fixture
async def desk(make_desk: MakeDesk) -> AsyncIterator[Desk]:
    async with make_desk() as made:
        yield made
