"""The assistant of this installation: a model, its tools, this machine and the rules of the house, wired together.

Invariant: whoever opens closes; when the block is left, no process of its sessions is alive.
"""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from hermes.agent.agent import Agent
from hermes.agent.beginning import Parts
from hermes.agent.compaction import Terms
from hermes.agent.export import JsonLog
from hermes.agent.house import House
from hermes.agent.model import Model
from hermes.agent.recall import recall
from hermes.agent.session import Sessions
from hermes.agent.turn import Ended, Turn
from hermes.app.core import App
from hermes.app.model import open_model
from hermes.app.workbench import surroundings_of
from hermes.config.settings import Settings
from hermes.config.variables import process_environment
from hermes.domain.approval import Approval
from hermes.domain.clock import Clock, to_micros
from hermes.domain.errors import Unavailable
from hermes.domain.machine import Machine
from hermes.domain.message import TextPart
from hermes.domain.model import Provider, Reply, Request, Show
from hermes.domain.principal import Principal
from hermes.domain.protocols import Tx
from hermes.domain.records import dataclass
from hermes.domain.session import Session, SessionId
from hermes.domain.tool import Toolset, ToolSpec
from hermes.effects.budget import Limits
from hermes.effects.executor import Executor
from hermes.effects.spill import Spill
from hermes.effects.toolset import combined, equipped, filtered
from hermes.jobs.lane import Lane
from hermes.llm.asking import ask
from hermes.llm.choice import Choice, choose
from hermes.llm.prices import cost
from hermes.store import approval as approvals
from hermes.store import ledger
from hermes.tools import BuiltIn, built_in
from hermes.tools.choosing import SMALL_TOOLS, Choosing, known_names, require_known

_log = logging.getLogger("hermes.app")
_DOLLAR = 1_000_000


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted of an assistant, where it differs from the settings. `toolsets` names tools or toolsets."""

    model: str | None = None
    toolsets: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    platform: str = "cli"
    is_lasting: bool = False
    """Whether the assistant stays open between runs, so that what runs in the background outlives one."""


class Models:
    """The models that were asked for, each opened once; they are closed with `stack`."""

    def __init__(self, app: App, stack: AsyncExitStack) -> None:
        self._app = app
        self._stack = stack
        self._opened: dict[Choice, Provider] = {}

    async def get(self, choice: Choice) -> Provider:
        """Return a model, opened."""
        if choice not in self._opened:
            opening = open_model(choice, self._app.settings, self._app.clock)
            self._opened[choice] = await self._stack.enter_async_context(opening)
        return self._opened[choice]


@dataclass(frozen=True, slots=True)
class Workshop:
    """What all assistants of one process share: models, the machine, and what the tools remember."""

    app: App
    models: "Models"
    machine: "_Latecomer"
    lane: Lane
    sessions: Sessions
    spill: Spill
    tools: BuiltIn

    @property
    def toolsets(self) -> tuple[Toolset, ...]:
        """Every toolset there is, on or off."""
        return (*self.tools.toolsets, recall(self.sessions), *self.app.toolsets)


class Assistant:
    """An assistant that is ready to work. What it is can be changed between two runs."""

    def __init__(self, shop: Workshop, wish: Wish) -> None:
        self._app = shop.app
        self._shop = shop
        self._log = JsonLog(shop.app.settings.home / "sessions")
        self._agent: Agent | None = None
        self.sessions = shop.sessions
        self.notices = shop.tools.notices
        self.wish = wish
        self.model_name = ""
        self.window = 0
        self.specs: tuple[ToolSpec, ...] = ()

    async def change(self, wish: Wish) -> None:
        """Become what is wished for; raises what `choose` and the choice of tools raise, with nothing changed.

        A session goes on in a new context when its model or its tools are others.
        """
        app, shop = self._app, self._shop
        choice = choose(app.settings, wish.model)
        hands = _hands(app, wish, choice, shop.toolsets, shop.spill)
        model = await shop.models.get(choice)

        async def asking(request: Request, show: Show) -> Reply:
            return await ask(model, request, show, clock=app.clock, attempts=app.settings.model.attempts)

        self._agent = Agent(
            Parts(
                store=app.store,
                clock=app.clock,
                lane=shop.lane,
                model=Model(model, asking, cost),
                hands=hands,
                machine=shop.machine.get,
                house=_house(app, choice),
                compaction=_terms(app, choice),
                watches=lambda: (app.bus.show,) if app.bus.is_watched else (),
                hear=shop.tools.notices.drain,
            )
        )
        self.wish = wish
        self.model_name = model.name
        self.window = model.window
        self.specs = hands.specs

    async def use_model(self, name: str) -> None:
        """Ask another model from the next run on."""
        await self.change(replace(self.wish, model=name))

    async def use_tools(self, *, on: Sequence[str] = (), off: Sequence[str] = ()) -> None:
        """Switch tools or toolsets, by name, from the next run on. Raises NotFound for what there is not."""
        require_known((*on, *off), known_names(combined(self._shop.toolsets)))
        wanted = self.wish.toolsets
        if on and wanted is not None:
            wanted = tuple(dict.fromkeys((*wanted, *on)))
        without = tuple(name for name in dict.fromkeys((*self.wish.without, *off)) if name not in on)
        await self.change(replace(self.wish, toolsets=wanted, without=without))

    @property
    def settings(self) -> Settings:
        """The settings it was opened with."""
        return self._app.settings

    @property
    def clock(self) -> Clock:
        """What tells it the time."""
        return self._app.clock

    @property
    def known(self) -> tuple[ToolSpec, ...]:
        """Every tool there is, on or off."""
        return tuple(tool.spec for group in self._shop.toolsets for tool in group.tools())

    @property
    def _ready(self) -> Agent:
        if self._agent is None:
            raise Unavailable("the assistant has no model yet; `change` gives it one")
        return self._agent

    async def machine(self) -> Machine:
        """Return where its commands run, opened when it was not."""
        return await self._shop.machine.get()

    async def stop(self, session: SessionId) -> int:
        """End the background processes of a session; return how many there were."""
        return await self._shop.tools.stop(await self.machine(), session)

    async def approvals(self, principal: Principal, *, limit: int = 20) -> list[Approval]:
        """Return what was asked, the latest first."""
        return await self._app.store.read(lambda tx: approvals.find(tx, principal, limit=limit))

    def turn(self, principal: Principal, session: Session, workspace: Path) -> Turn:
        """Return a turn as the settings have it, to be filled in."""
        settings = self._app.settings
        budget = settings.budget
        limits = Limits(
            steps=settings.agent.max_turns,
            tokens=budget.run_tokens,
            cost=None if budget.run_cost is None else int(budget.run_cost * _DOLLAR),
            seconds=None if budget.run_time is None else budget.run_time.total_seconds(),
        )
        return Turn(
            principal=principal,
            session=session,
            parts=(),
            workspace=workspace,
            mode=settings.terminal.mode,
            limits=limits,
        )

    def now(self) -> datetime:
        """What time it is here."""
        return self._app.clock.now()

    async def run_held(self, turn: Turn) -> tuple[Ended, Callable[[Tx], bool]]:
        """Take a turn in a lane that the caller holds, who stores the returned work with the end of its job."""
        return await self._ready.run_held(replace(turn, limits=await self._within(turn)))

    async def answer(self, turn: Turn, deferred: str, text: str) -> Ended:
        """Bring the answer of a tool that said it would come later, as a new message and in a run of its own."""
        said = TextPart(f"[the answer to deferred {deferred!r}]\n{text}")
        return await self.run(replace(turn, parts=(said,)))

    async def run(self, turn: Turn) -> Ended:
        """Take a turn within what the session and the day may still cost."""
        ended = await self._ready.run(replace(turn, limits=await self._within(turn)))
        if self._app.settings.agent.json_logs:
            await self._note(ended)
        return ended

    async def compact(self, turn: Turn) -> Ended:
        """Make what the model is sent of a session shorter."""
        return await self._ready.compact(replace(turn, limits=await self._within(turn)))

    async def _within(self, turn: Turn) -> Limits:
        """Lower the limit of a run's cost to what is left."""
        budget, limits = self._app.settings.budget, turn.limits
        left = [] if limits.cost is None else [limits.cost]
        if budget.session_cost is not None:
            used = await self.sessions.usage(turn.principal, turn.session.id)
            left.append(max(int(budget.session_cost * _DOLLAR) - used.cost, 0))
        if budget.day_cost is not None:
            since = to_micros(self._app.clock.now() - timedelta(days=1))
            spent = await self._app.store.read(lambda tx: ledger.since(tx, turn.principal, since))
            left.append(max(int(budget.day_cost * _DOLLAR) - spent.cost, 0))
        return replace(limits, cost=min(left)) if left else limits

    async def _note(self, ended: Ended) -> None:
        try:
            await anyio.to_thread.run_sync(self._log.add, ended.session, ended.messages)
        except OSError as error:
            # Derived, and not worth an answer: the database has it all.
            _log.warning("a session's log could not be written", extra={"fields": {"error": str(error)}})


@asynccontextmanager
async def open_assistant(app: App, wish: Wish | None = None) -> AsyncIterator[Assistant]:
    """Open a model and a machine, and put the assistant together."""
    wish = wish or Wish()
    # What is wrong with the settings is said before anything is opened.
    choose(app.settings, wish.model)
    async with AsyncExitStack() as models, _Latecomer(app) as machine:
        lane = Lane.of_this_process(app.store, app.settings.jobs.lease)
        spill = Spill(app.settings.home, app.clock)
        sessions = Sessions(app.store, app.clock, lane)
        tools = built_in(spill, is_lasting=wish.is_lasting)
        assistant = Assistant(Workshop(app, Models(app, models), machine, lane, sessions, spill, tools), wish)
        await assistant.change(wish)
        yield assistant


class _Latecomer:
    """The machine, opened by a task of its own when somebody needs it: most questions need none.

    Entered and left in one task. What goes wrong in the block passes through as it is.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._group = anyio.create_task_group()
        self._lock = anyio.Lock()
        self._machine: Machine | None = None
        self._closing = anyio.Event()

    async def get(self) -> Machine:
        """Return the machine, opened."""
        async with self._lock:
            if self._machine is None:
                await self._group.start(self._keep)
            if self._machine is None:
                raise Unavailable("the machine could not be opened; try again")
            return self._machine

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._closing.set()
        if isinstance(error, anyio.get_cancelled_exc_class()):
            return await self._group.__aexit__(kind, error, trace)
        # An error of the block is not the group's: it would come out wrapped in one of its own.
        await self._group.__aexit__(None, None, None)
        return False

    async def _keep(self, *, task_status: TaskStatus[None]) -> None:
        from hermes.machines.local import open_local

        async with open_local(self._app.settings, self._app.clock) as machine:
            self._machine = machine
            task_status.started()
            await self._closing.wait()


def _hands(app: App, wish: Wish, choice: Choice, toolsets: tuple[Toolset, ...], spill: Spill) -> Executor:
    """Give the tools that are wanted and can be had, behind the one choke point."""
    settings, every = app.settings, combined(toolsets)
    if wish.toolsets is not None:
        require_known(wish.toolsets, known_names(every))
    chosen = Choosing(
        settings.tools.enabled if wish.toolsets is None else wish.toolsets,
        (*settings.tools.disabled, *wish.without),
        wish.platform,
    )
    given = equipped(chosen.of(every), process_environment())
    if choice.vendor.is_small and wish.toolsets is None:
        given = filtered(given, lambda spec: spec.name in SMALL_TOOLS)
    return Executor(given, surroundings_of(app, spill))


def _terms(app: App, choice: Choice) -> Terms:
    given = app.settings.compression
    # A small model writes no summaries; what is too long for it is left out where its prompt is written.
    return Terms(
        given.enabled and not choice.vendor.is_small,
        given.threshold,
        given.target_ratio,
        given.protect_first_n,
        given.protect_last_n,
    )


def _house(app: App, choice: Choice) -> House:
    given = app.settings.user
    user = {"name": given.name, "time zone": app.settings.time.zone, "about": given.about}
    known = {name: value for name, value in user.items() if value and (name != "time zone" or given.name)}
    return House(
        app.settings.home, app.clock, known, app.settings.agent.context_files, is_compact=choice.vendor.is_small
    )
