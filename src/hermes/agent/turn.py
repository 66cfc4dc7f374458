"""One turn: what a run is asked to do, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from hermes.agent.record import Ending
from hermes.agent.steering import Steering
from hermes.agent.telling import Watch
from hermes.domain.approval import Approver
from hermes.domain.errors import HermesError
from hermes.domain.event import JSON
from hermes.domain.machine import Mode
from hermes.domain.message import Message, Part
from hermes.domain.model import Usage
from hermes.domain.principal import Principal
from hermes.domain.records import dataclass
from hermes.domain.session import RunId, Session
from hermes.domain.tool import Ask
from hermes.effects.budget import Limits


async def nobody(question: str, choices: Sequence[str] = ()) -> str | None:  # noqa: ARG001 - as `Ask` says
    """Answer for a person who is not there."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What is asked, by whom, where. Without `parts` the run goes on where an earlier one was cut off.

    `approver` and `ask` are the person who is there now; without them what needs a yes is denied. `ephemeral` is read
    by the model and stored nowhere. `run` is the id of a run that may have begun before: a job that is tried again.
    """

    principal: Principal
    session: Session
    parts: tuple[Part, ...]
    workspace: Path
    is_new: bool = False
    run: RunId | None = None
    mode: Mode = "workspace"
    platform: str = "cli"
    limits: Limits = field(default_factory=Limits)
    approver: Approver | None = None
    ask: Ask = nobody
    history: tuple[Message, ...] = ()
    """What a new session begins with, said elsewhere."""
    ephemeral: tuple[Message, ...] = ()
    more: str = ""
    """What is added to the system prompt of a context that is opened."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    max_tokens: int | None = None
    watches: tuple[Watch, ...] = ()
    steering: Steering = field(default_factory=Steering)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a turn went. `text` is the answer, or as much of it as there was; `error` is what stopped it."""

    session: Session
    run: RunId
    ending: Ending
    text: str
    usage: Usage
    cost: int | None
    messages: tuple[Message, ...] = ()
    """What was said in this run, the user's words first."""
    error: HermesError | None = None
    notices: tuple[str, ...] = ()
