"""The suite of a machine over this machine and over the fake; the suite of a toolset over those that are built in."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from hermes.config import Settings
from hermes.domain.clock import SystemClock
from hermes.domain.message import CallId
from hermes.domain.principal import Principal
from hermes.domain.session import RunId, SessionId
from hermes.domain.tool import ToolContext, Toolset
from hermes.effects.spill import Spill
from hermes.effects.toolset import approved, budgeted, combined, prefixed, timed
from hermes.machines.local import open_local
from hermes.testing.clock import FakeClock
from hermes.testing.contracts.machine import Ground, MachineContract, answer
from hermes.testing.contracts.tools import ToolsetContract
from hermes.testing.machine import FakeMachine
from hermes.tools import built_in


@pytest.mark.anyio
class TestFakeMachine(MachineContract):
    @pytest.fixture
    def ground(self) -> Ground:
        machine = FakeMachine(answer)
        return Ground(machine, Path("/w"), machine.files.links.__setitem__)


@pytest.mark.anyio
class TestLocalMachine(MachineContract):
    @pytest.fixture
    async def ground(self, tmp_path: Path) -> AsyncIterator[Ground]:
        folder = tmp_path / "work"
        folder.mkdir()
        async with open_local(Settings(home=tmp_path / "home"), SystemClock()) as machine:
            yield Ground(machine, folder, Path.symlink_to)


class TestToolsets(ToolsetContract):
    @pytest.fixture(params=["terminal", "file", "todo", "clarify", "changed"])
    def toolset(self, request: pytest.FixtureRequest, tmp_path: Path) -> Toolset:
        made = {one.name: one for one in built_in(Spill(tmp_path, FakeClock())).toolsets}
        every = combined(list(made.values()))
        made["changed"] = timed(budgeted(approved(prefixed(every, "x_")), 3), timedelta(seconds=3))
        return made[request.param]

    @pytest.fixture
    def context(self) -> ToolContext:
        async def ask(question: str, choices: Sequence[str] = ()) -> str | None:
            return None

        return ToolContext(
            principal=Principal.owner(),
            session=SessionId("s"),
            run=RunId("r"),
            call=CallId("c"),
            clock=FakeClock(),
            machine=FakeMachine(),
            workspace=Path("/w"),
            progress=lambda _: None,
            ask=ask,
        )
