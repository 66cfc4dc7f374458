"""A model's end of the choke point: call tools on the machine of the tests."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hermes.config import Settings
from hermes.domain.approval import Approval, Approver, Decision
from hermes.domain.clock import SystemClock
from hermes.domain.machine import Machine, Mode
from hermes.domain.message import CallId, CallPart
from hermes.domain.principal import Principal
from hermes.domain.session import RunId, SessionId
from hermes.domain.tool import ToolContext, Toolset
from hermes.effects.approving import Gate, OwnMemory
from hermes.effects.executor import Executor, Performed, Surroundings
from hermes.effects.places import Grounds
from hermes.effects.spill import Spill
from hermes.effects.toolset import combined
from hermes.machines.local import open_local
from hermes.tools import BuiltIn, built_in


@dataclass
class Person:
    """Answers every question the same, and remembers what was shown."""

    answer: Decision = field(default_factory=lambda: Decision("given"))
    asked: list[Approval] = field(default_factory=list)

    async def decide(self, asked: Approval) -> Decision:
        self.asked.append(asked)
        return self.answer


@dataclass
class Hand:
    """Calls tools as a model does."""

    machine: Machine
    workspace: Path
    home: Path
    clock: SystemClock = field(default_factory=SystemClock)
    session: str = "s"
    mode: Mode = "workspace"
    approver: Approver | None = None
    toolsets: Sequence[Toolset] = ()
    lines: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    is_lasting: bool = False
    _parts: tuple[BuiltIn, Spill] | None = None

    @property
    def parts(self) -> BuiltIn:
        return self._made()[0]

    def _made(self) -> tuple[BuiltIn, Spill]:
        if self._parts is None:
            spill = Spill(self.home, self.clock)
            self._parts = built_in(spill, is_lasting=self.is_lasting), spill
        return self._parts

    def executor(self) -> Executor:
        parts, spill = self._made()
        grounds = Grounds(home=self.home.resolve(), user_home=Path.home())
        gate = Gate(OwnMemory(), self.approver, self.clock)
        return Executor(combined(self.toolsets or parts.toolsets), Surroundings(grounds, gate, spill))

    def context(self) -> ToolContext:
        async def ask(question: str, choices: Sequence[str] = ()) -> str | None:
            return self.answers.pop(0) if self.answers else None

        return ToolContext(
            principal=Principal.owner(),
            session=SessionId(self.session),
            run=RunId("r"),
            call=CallId(""),
            clock=self.clock,
            machine=self.machine,
            workspace=self.workspace,
            progress=self.lines.append,
            ask=ask,
            mode=self.mode,
        )

    async def perform(self, *calls: tuple[str, object]) -> list[Performed]:
        """Call several tools; the results come in the order of the calls."""
        made = [
            CallPart(CallId(str(number)), name, given if isinstance(given, str) else json.dumps(given))
            for number, (name, given) in enumerate(calls)
        ]
        done: dict[str, Performed] = {}

        async def note(call: CallPart, performed: Performed) -> None:
            assert call.id not in done
            done[call.id] = performed

        await self.executor().perform(made, self.context(), note)
        return [done[call.id] for call in made]

    async def __call__(self, name: str, **arguments: object) -> dict[str, object]:
        """Call one tool and return what it answered, as the model reads it."""
        (done,) = await self.perform((name, arguments))
        found = json.loads(done.result.text)
        assert isinstance(found, dict)
        assert done.result.is_error == (set(found) == {"error"})
        return found


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
async def hand(tmp_path: Path, workspace: Path) -> AsyncIterator[Hand]:
    home = tmp_path / "home"
    home.mkdir()
    async with open_local(Settings(home=home), SystemClock()) as machine:
        yield Hand(machine, workspace, home)
