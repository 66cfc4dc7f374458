"""What happens in a run, as live events for whoever looks now: a screen, a chat, a stream.

Invariant: nothing is made when nobody looks, and nobody who looks can hold up or break the run.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TypeAlias

from hermes.domain.clock import Clock
from hermes.domain.event import Data, Event, EventId, Stream
from hermes.domain.message import CallPart
from hermes.domain.model import Delta
from hermes.domain.principal import Tenant
from hermes.domain.session import Run

Watch: TypeAlias = Callable[[Event], None]
"""Called with each live event as it happens; it returns at once."""

Watches: TypeAlias = Callable[[], tuple[Watch, ...]]
"""Says who looks now."""

_log = logging.getLogger("hermes.agent")


def stream_of(session: str) -> Stream:
    """Return the stream in which all that happens in a session is told."""
    return Stream(f"session:{session}")


class Teller:
    """Tells what happens in one run. Types: `text.delta`, `reasoning.delta`, `call.delta`, `answer.delta` (what was
    shown of this answer is void), `tool.progress`, `run.progress`, `usage.progress` (after each
    call of the model).
    """

    def __init__(self, run: Run, clock: Clock, watches: Watches) -> None:
        self._stream = stream_of(run.session)
        self._run = run.id
        self._tenant: Tenant = run.principal.tenant
        self._clock = clock
        self._who = watches
        self._watches = watches()
        self._count = 0
        self._at: datetime = run.started_at
        self.partial: list[str] = []
        """The text of the answer that is arriving, for when it is cut short."""

    def show(self, delta: Delta) -> None:
        """Tell of a piece of the answer; this is what the model call is given."""
        kind, text = delta
        if kind == "text":
            self.partial.append(text)
        elif kind == "retry":
            self.partial.clear()
        elif kind == "note":
            self.note("model", text)
            return
        if self._watches:
            self._tell("answer.delta" if kind == "retry" else f"{kind}.delta", {"text": text})

    def begin_answer(self) -> None:
        """From here on a new answer arrives."""
        self.partial.clear()
        self._look()

    def tool(self, state: str, call: CallPart, **more: "str | float | bool") -> None:
        """Tell that a tool has begun or ended."""
        if self._look():
            said = {"state": state, "call": call.id, "name": call.name, "arguments": call.arguments}
            self._tell("tool.progress", {**said, **more})

    def used(self, tokens: int, window: int, cost: int | None) -> None:
        """Tell how long the conversation is now, and what the call that has ended has cost."""
        if self._look():
            self._tell("usage.progress", {"tokens": tokens, "window": window, "cost": cost})

    def note(self, state: str, text: str) -> None:
        """Tell a person in a line what the run does now."""
        if self._look():
            self._tell("run.progress", {"state": state, "text": text})

    def _look(self) -> bool:
        """See who looks now; while an answer streams in, nobody is asked."""
        self._watches = self._who()
        self._at = self._clock.now() if self._watches else self._at
        return bool(self._watches)

    def _tell(self, type_: str, data: Data) -> None:
        self._count += 1
        event = Event(
            # Unique as the run is, and much cheaper than a name of its own for each token.
            id=EventId(f"{self._run}.{self._count}"),
            stream=self._stream,
            type=type_,
            source="agent",
            tenant=self._tenant,
            at=self._at,
            data=data,
            subject=self._run,
        )
        for watch in self._watches:
            try:
                watch(event)
            except Exception:  # noqa: BLE001 - a screen is somebody else's
                # A screen that fails must not end the work it shows.
                _log.exception("whoever watched this run failed")
