"""One person's place in a session: which one, how the next turn is taken, what runs now and what waits.

Invariant: at most one run at a time; what waits is bounded, and nothing of it is lost but by `clear`.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Protocol

from hermes.agent.session import Sessions
from hermes.agent.steering import Steering
from hermes.agent.telling import Watch
from hermes.agent.turn import Ended, Turn
from hermes.config.settings import Settings
from hermes.domain.approval import Approval, Approver
from hermes.domain.clock import Clock
from hermes.domain.errors import LimitReached
from hermes.domain.machine import Machine, Mode
from hermes.domain.message import Message, MessageId, Part, TextPart
from hermes.domain.principal import Principal
from hermes.domain.records import dataclass
from hermes.domain.session import Session, SessionId
from hermes.domain.tool import Ask, ToolSpec
from hermes.effects.budget import Limits

MOST_WAITING = 100


class Assistant(Protocol):
    """The assistant that the person talks to; it outlives sessions. Every method raises HermesError."""

    @property
    def sessions(self) -> Sessions:
        """All sessions of the installation."""
        ...

    @property
    def settings(self) -> Settings:
        """The settings it was opened with."""
        ...

    @property
    def clock(self) -> Clock:
        """What tells it the time."""
        ...

    @property
    def model_name(self) -> str:
        """Vendor and model."""
        ...

    @property
    def window(self) -> int:
        """How many tokens the model reads."""
        ...

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The tools it has."""
        ...

    @property
    def known(self) -> Sequence[ToolSpec]:
        """Every tool there is, on or off."""
        ...

    async def use_model(self, name: str) -> None:
        """Ask another model from the next run on."""
        ...

    async def use_tools(self, *, on: Sequence[str] = (), off: Sequence[str] = ()) -> None:
        """Switch tools or toolsets from the next run on."""
        ...

    def turn(self, principal: Principal, session: Session, workspace: Path) -> Turn:
        """Return a turn as the settings have it."""
        ...

    async def run(self, turn: Turn) -> Ended:
        """Take a turn."""
        ...

    async def compact(self, turn: Turn) -> Ended:
        """Make what the model is sent of a session shorter."""
        ...

    async def machine(self) -> Machine:
        """Return where commands run."""
        ...

    async def stop(self, session: SessionId) -> int:
        """End the background processes of a session."""
        ...

    async def approvals(self, principal: Principal, *, limit: int = 20) -> list[Approval]:
        """Return what was asked, the latest first."""
        ...


@dataclass(slots=True, kw_only=True)
class Seat:
    """See the module. Used on one event loop."""

    assistant: Assistant
    principal: Principal
    workspace: Path
    session: Session
    mode: Mode
    limits: Limits
    is_new: bool = True
    effort: str = ""
    personality: str = ""
    manner: str = ""
    """The words of the personality."""
    approver: Approver | None = None
    ask: Ask | None = None
    watches: tuple[Watch, ...] = ()
    platform: str = "cli"
    waiting: deque[tuple[Part, ...]] = field(default_factory=deque)
    steering: Steering | None = None
    """The wheel of the run that goes on now."""
    tokens: int = 0
    """How long the conversation was at the last call of the model."""
    spent: int = 0
    """What this sitting has cost, in millionths of a dollar."""

    @property
    def is_working(self) -> bool:
        """Whether a run goes on."""
        return self.steering is not None

    def begin_session(self, title: str | None = None) -> None:
        """Sit down at a new session."""
        sessions = self.assistant.sessions
        made = sessions.make(self.principal, source=self.platform, workspace=self.workspace, title=title)
        self.enter(made, is_new=True)

    def enter(self, session: Session, *, is_new: bool = False) -> None:
        """Sit down at a session, and work where it is, if that is there."""
        self.session, self.is_new, self.tokens = session, is_new, 0
        if session.workspace and Path(session.workspace).is_dir():
            self.workspace = Path(session.workspace)

    def wait(self, parts: tuple[Part, ...], *, is_next: bool = False) -> None:
        """Let words wait for the run to end. Raises LimitReached when too many wait."""
        if len(self.waiting) >= MOST_WAITING:
            raise LimitReached(f"{MOST_WAITING} messages wait already; let them be answered first, or /stop")
        if is_next:
            self.waiting.appendleft(parts)
        else:
            self.waiting.append(parts)

    def interrupt(self) -> bool:
        """Stop what goes on; say whether there was anything."""
        if self.steering is None:
            return False
        self.steering.interrupt()
        return True

    async def take(self, parts: tuple[Part, ...]) -> Ended:
        """Take a turn. Words that were said into it and not read by the model wait for the next one."""
        self.steering = Steering()
        try:
            ended = await self.assistant.run(self._turn(parts, self.steering))
        finally:
            left, self.steering = self.steering.take(), None
            self.waiting.extendleft((TextPart(text),) for text in reversed(left))
        self.session, self.is_new = ended.session, False
        self.spent += ended.cost or 0
        return ended

    async def compact(self) -> Ended:
        """Make what the model is sent shorter."""
        self.steering = Steering()
        try:
            return await self.assistant.compact(self._turn((), self.steering))
        finally:
            self.steering = None

    def _turn(self, parts: tuple[Part, ...], steering: Steering) -> Turn:
        turn = self.assistant.turn(self.principal, self.session, self.workspace)
        return replace(
            turn,
            parts=parts,
            is_new=self.is_new,
            mode=self.mode,
            limits=self.limits,
            approver=self.approver,
            ask=self.ask or turn.ask,
            platform=self.platform,
            extra={"reasoning_effort": self.effort} if self.effort else {},
            more=self.manner,
            ephemeral=() if self.is_new or not self.manner else (self._reminder(),),
            watches=self.watches,
            steering=steering,
        )

    def _reminder(self) -> Message:
        """What a context that was opened before is told of the personality; it is stored nowhere."""
        text = f"[From here on speak as this says, until told otherwise.]\n{self.manner}"
        return Message(MessageId(""), "user", (TextPart(text),), self.assistant.clock.now())
