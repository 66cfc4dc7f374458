"""A program to be killed: an assistant works in one session, with a model that orders tools at random.

The tool `mark` writes its number into `effects.log` once for each time it is done; `look` reads. What the program was
told is finished stands in `acknowledged.log`. With `--rest` it takes one more turn and ends with 0.
"""

import argparse
import json
import os
import random
import sys
from pathlib import Path

import anyio
from target import Ledger

from hermes.agent.agent import Agent
from hermes.agent.beginning import Parts
from hermes.agent.compaction import Terms
from hermes.agent.house import House
from hermes.agent.model import Model
from hermes.agent.session import Sessions
from hermes.agent.turn import Turn
from hermes.app import App, open_app
from hermes.config import load
from hermes.domain.clock import SystemClock
from hermes.domain.errors import NotFound
from hermes.domain.event import Event
from hermes.domain.message import CallId, CallPart, Message, MessageId, TextPart
from hermes.domain.model import Reply, Request, Show, Usage
from hermes.domain.principal import LOCAL, Principal
from hermes.domain.session import Session, SessionId
from hermes.effects.approving import Gate, OwnMemory
from hermes.effects.executor import Executor, Surroundings
from hermes.effects.places import Grounds
from hermes.effects.spill import Spill
from hermes.effects.tool import tool
from hermes.effects.toolset import Tools
from hermes.jobs.lane import Lane
from hermes.machines.local import LocalMachine, open_local
from hermes.testing.crash import READY, Probe

OWNER = Principal.owner()
SESSION = SessionId("20270104_120000_victim")
MOST_STEPS = 5


class Whimsical:
    """A model that orders one to three tools a step, a few steps long, then answers."""

    name, wire, window = "test/whimsical", "test", 40_000

    def __init__(self) -> None:
        self._steps = 0

    def prefix(self, system: str, tools: object) -> bytes:
        return json.dumps([system, [spec.name for spec in tools]]).encode()  # type: ignore[attr-defined]

    def encode(self, message: Message) -> bytes:
        said = [[part.call, part.text] for part in message.results] or [c.arguments for c in message.calls]
        return json.dumps([message.role, message.text, said]).encode()

    async def call(self, request: Request, _show: Show) -> Reply:
        await anyio.sleep(random.random() * 0.01)
        self._steps = (self._steps + 1) % random.randint(2, MOST_STEPS)
        size = (len(request.prefix) + sum(map(len, request.messages))) // 4
        if not request.messages or b'"mark"' not in request.prefix or not self._steps:
            # Without tools it is asked for a summary.
            parts: tuple[TextPart | CallPart, ...] = (TextPart(f"answer {os.urandom(4).hex()}"),)
        else:
            parts = tuple(self._order() for _ in range(random.randint(1, 3)))
        message = Message(MessageId(""), "assistant", parts, SystemClock().now())
        return Reply(message, self.encode(message), "stop", Usage(size, 10), self.name)

    def _order(self) -> CallPart:
        name = os.urandom(6).hex()
        kind = "mark" if random.random() < 0.7 else "look"
        return CallPart(CallId(f"c{name}"), kind, json.dumps({"number": name}))


class Victim:
    def __init__(self, folder: Path, app: App) -> None:
        self.app = app
        self.folder = folder
        self.effects = Ledger(folder / "effects.log")
        self.finished = Ledger(folder / "acknowledged.log")

    def tools(self) -> Tools:
        @tool(toolset="test", access="write", effects=lambda _arguments, _context: ())
        async def mark(number: str) -> str:
            """Do something once."""
            await anyio.sleep(random.random() * 0.004)
            self.effects.note("mark", number)
            await anyio.sleep(random.random() * 0.004)
            return f"marked {number}"

        @tool(toolset="test", access="read")
        async def look(number: str) -> str:
            """Look, as often as you like."""
            await anyio.sleep(random.random() * 0.004)
            return f"saw {number} {'.' * random.choice((0, 3000))}"

        return Tools("test", (mark, look))

    def watch(self, event: Event) -> None:
        if event.type == "tool.progress" and event.data["state"] == "ended" and event.data["name"] == "mark":
            number = json.loads(str(event.data["arguments"]))["number"]
            if not event.data["is_error"]:
                self.finished.note("mark", number)

    def agent(self, machine: LocalMachine) -> Agent:
        clock, store = self.app.clock, self.app.store
        provider = Whimsical()
        grounds = Grounds(home=self.folder.resolve(), user_home=Path.home())
        hands = Executor(self.tools(), Surroundings(grounds, Gate(OwnMemory(), None, clock), Spill(self.folder, clock)))

        async def opened() -> LocalMachine:
            return machine

        return Agent(
            Parts(
                store=store,
                clock=clock,
                lane=Lane.of_this_process(store),
                model=Model(provider, provider.call, lambda _name, usage: usage.output),  # type: ignore[arg-type] # enough of a Provider
                hands=hands,
                machine=opened,
                house=House(self.folder, clock, has_files=False),
                compaction=Terms(threshold=0.5, first=1, last=4),
                watches=lambda: (self.watch,),
            )
        )

    async def turns(self, agent: Agent, *, count: int) -> None:
        now = self.app.clock.now()
        session = Session(SESSION, LOCAL, "owner", "test", now, now)
        sessions = Sessions(self.app.store, self.app.clock, Lane.of_this_process(self.app.store))
        try:
            await sessions.find(OWNER, SESSION)
            is_new = False
        except NotFound:
            is_new = True
        for _ in range(count):
            said = os.urandom(6).hex()
            turn = Turn(
                principal=OWNER,
                session=session,
                parts=(TextPart(f"turn {said}"),),
                workspace=self.folder / "work",
                is_new=is_new,
            )
            ended = await agent.run(turn)
            if ended.error is not None:
                sys.exit(f"a run failed: {ended.error}")
            self.finished.note("run", ended.run)
            is_new = False


async def main(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.folder)
    (folder / "work").mkdir(exist_ok=True)
    settings = load(home=folder, environ={})
    async with (
        open_app(settings, probe=Probe.parse(arguments.die_at)) as app,
        open_local(settings, app.clock) as machine,
    ):
        victim = Victim(folder, app)
        agent = victim.agent(machine)
        print(READY, flush=True)
        await victim.turns(agent, count=1 if arguments.rest else 1_000_000)


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--die-at", default="")
    parser.add_argument("--rest", action="store_true")
    return parser.parse_args(argv)


if __name__ == "__main__":
    anyio.run(main, parse(sys.argv[1:]))
