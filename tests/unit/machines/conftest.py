"""A machine with a workspace, on the machine of the tests."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from hermes.config import Settings
from hermes.domain.clock import SystemClock
from hermes.domain.machine import Command, Finished
from hermes.machines.local import LocalMachine, open_local


@dataclass(frozen=True, slots=True)
class Place:
    machine: LocalMachine
    workspace: Path
    home: Path

    async def sh(self, text: str, *, session: str = "s", seconds: float = 20, **more: object) -> Finished:
        """Run a command in the workspace."""
        command = self.command(text, session=session, seconds=seconds, **more)
        return await self.machine.run(command, lambda _: None)

    def command(self, text: str, *, session: str = "s", seconds: float = 20, **more: object) -> Command:
        timeout = timedelta(seconds=seconds)
        return Command(text, self.workspace, session, self.workspace, timeout=timeout, **more)  # type: ignore[arg-type] # the test names fields


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
async def place(tmp_path: Path, workspace: Path) -> AsyncIterator[Place]:
    settings = Settings(home=tmp_path / "home")
    async with open_local(settings, SystemClock()) as machine:
        yield Place(machine, workspace, settings.home)


@pytest.fixture
async def sandboxed(place: Place) -> Place:
    if place.machine.protection != "sandbox":
        pytest.skip(place.machine.describe())
    return place
