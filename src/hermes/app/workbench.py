"""Tools without a model: what a person tries by hand, through the same choke point as everything else.

Invariant: nobody is asked; what would need a yes is refused.
"""

import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.core import App
from hermes.config import Settings
from hermes.config.settings import secrets
from hermes.config.variables import process_environment
from hermes.domain.message import CallId, CallPart
from hermes.domain.principal import Principal
from hermes.domain.records import dataclass
from hermes.domain.session import RunId, SessionId
from hermes.domain.tool import ToolContext, Toolset
from hermes.effects.approving import Gate, StoredMemory
from hermes.effects.executor import Executor, Performed, Surroundings
from hermes.effects.places import Grounds
from hermes.effects.spill import Spill
from hermes.effects.toolset import combined, equipped
from hermes.telemetry.redactor import Redactor
from hermes.tools import BuiltIn, built_in
from hermes.tools.choosing import Choosing

if TYPE_CHECKING:
    from hermes.machines.checkpoint import Checkpoints


def grounds_of(settings: Settings) -> Grounds:
    """Say which places of this machine are whose."""
    return Grounds(
        home=Path(os.path.realpath(settings.home)),
        user_home=Path(os.path.realpath(Path.home())),
        runs_from=tuple(Path(os.path.realpath(place)) for place in (sys.prefix, Path(__file__).parents[1])),
        listed=settings.sandbox.listed,
    )


def choosing_of(settings: Settings, platform: str = "cli") -> Choosing:
    """Say which tools are on."""
    return Choosing(settings.tools.enabled, settings.tools.disabled, platform)


def surroundings_of(app: App, spill: Spill) -> Surroundings:
    """Put together what stands around every call of a tool in this installation."""
    checkpoints: Checkpoints | None = None

    async def before_write(context: ToolContext, outside: Sequence[Path]) -> str | None:
        nonlocal checkpoints
        if checkpoints is None:
            from hermes.machines.checkpoint import Checkpoints

            checkpoints = Checkpoints(app.settings.home, app.clock)
        return await checkpoints.before_write(context, outside)

    return Surroundings(
        grounds_of(app.settings),
        Gate(StoredMemory(app.store), None, app.clock),
        spill,
        before_write=before_write,
        clean=Redactor(secrets(app.settings)).clean,
    )


@dataclass(frozen=True, slots=True)
class Workbench:
    """One workspace with all tools that are on. `every` are also those that are off or lack a variable."""

    executor: Executor
    every: Toolset
    context: ToolContext
    parts: BuiltIn

    async def perform(self, name: str, arguments: str) -> Performed:
        """Call one tool and return how it ended."""
        kept: list[Performed] = []

        async def note(_call: CallPart, performed: Performed) -> None:
            kept.append(performed)

        await self.executor.perform([CallPart(CallId("1"), name, arguments)], self.context, note)
        return kept[0]


@asynccontextmanager
async def open_workbench(app: App, workspace: Path, principal: Principal) -> AsyncIterator[Workbench]:
    """Open the machine, and lay out its tools."""
    from hermes.machines.local import open_local

    settings, clock = app.settings, app.clock
    spill = Spill(settings.home, clock)
    parts = built_in(spill)
    every = combined((*parts.toolsets, *app.toolsets))
    chosen = equipped(choosing_of(settings).of(every), process_environment())
    run = clock.new_id()
    async with open_local(settings, clock) as machine:
        context = ToolContext(
            principal=principal,
            session=SessionId(f"tools-{run}"),
            run=RunId(run),
            call=CallId("1"),
            clock=clock,
            machine=machine,
            workspace=workspace,
            progress=lambda _line: None,
            ask=_nobody,
            mode=settings.terminal.mode,
        )
        try:
            yield Workbench(Executor(chosen, surroundings_of(app, spill)), every, context, parts)
        finally:
            await parts.stop(machine, context.session)


async def _nobody(question: str, choices: Sequence[str] = ()) -> str | None:  # noqa: ARG001 - as the protocol names them
    return None
