"""An executor with tools of the test's own, on a machine that runs nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hermes.domain.approval import Approval, Approver, Decision
from hermes.domain.message import CallId, CallPart
from hermes.domain.principal import Principal
from hermes.domain.session import RunId, SessionId
from hermes.domain.tool import Tool, ToolContext
from hermes.effects.approving import Gate, Memory, OwnMemory
from hermes.effects.executor import BeforeWrite, Executor, Performed, Surroundings
from hermes.effects.places import Grounds
from hermes.effects.spill import Spill
from hermes.effects.toolset import Tools
from hermes.testing.clock import FakeClock
from hermes.testing.machine import FakeMachine


@dataclass
class Person:
    """Answers every question the same, and remembers what was shown."""

    answer: Decision = field(default_factory=lambda: Decision("given"))
    asked: list[Approval] = field(default_factory=list)

    async def decide(self, asked: Approval) -> Decision:
        self.asked.append(asked)
        return self.answer


@dataclass
class Stage:
    """Performs calls and keeps what came of them, in the order in which it was noted."""

    folder: Path
    machine: FakeMachine = field(default_factory=FakeMachine)
    clock: FakeClock = field(default_factory=FakeClock)
    memory: Memory = field(default_factory=OwnMemory)
    approver: Approver | None = None
    before_write: BeforeWrite | None = None
    clean: Callable[[str], str] = lambda text: text
    lines: list[str] = field(default_factory=list)
    noted: list[Performed] = field(default_factory=list)

    def context(self) -> ToolContext:
        async def ask(question: str, choices: Sequence[str] = ()) -> str | None:
            return None

        return ToolContext(
            principal=Principal.owner(),
            session=SessionId("s"),
            run=RunId("r"),
            call=CallId(""),
            clock=self.clock,
            machine=self.machine,
            workspace=Path("/w"),
            progress=self.lines.append,
            ask=ask,
        )

    def gate(self) -> Gate:
        return Gate(self.memory, self.approver, self.clock)

    def executor(self, *tools: Tool[object]) -> Executor:
        grounds = Grounds(home=self.folder, user_home=Path("/home/me"))
        around = Surroundings(
            grounds, self.gate(), Spill(self.folder, self.clock), before_write=self.before_write, clean=self.clean
        )
        return Executor(Tools("t", tools), around)

    async def perform(self, executor: Executor, *calls: tuple[str, str]) -> list[Performed]:
        """Call tools, with the arguments as the model wrote them."""
        made = [CallPart(CallId(str(at)), name, given) for at, (name, given) in enumerate(calls)]

        async def note(call: CallPart, done: Performed) -> None:
            assert done.result.call == call.id
            self.noted.append(done)

        before = len(self.noted)
        await executor.perform(made, self.context(), note)
        return self.noted[before:]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "home")
