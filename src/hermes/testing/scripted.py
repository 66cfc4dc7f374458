"""A Provider that plays from a script: no network, no chance, every request kept to be looked at."""

import json
from collections.abc import Iterable, Sequence

import anyio

from hermes.domain.clock import Clock
from hermes.domain.message import CallId, CallPart, Message, MessageId, Part, ReasoningPart, TextPart
from hermes.domain.model import Cut, Delta, Reply, Request, Show
from hermes.domain.tool import ToolSpec
from hermes.testing.turn import Fail, Say, Turn


class ScriptedProvider:
    """Answers each call with the next turn. A call beyond the last is a mistake of the test, and says so."""

    def __init__(
        self, clock: Clock, turns: Iterable[Turn], *, name: str = "scripted/model", window: int = 100_000
    ) -> None:
        self._clock = clock
        self._turns = list(turns)
        self._name = name
        self._window = window
        self.requests: list[Request] = []

    @property
    def name(self) -> str:
        """Vendor and model."""
        return self._name

    @property
    def wire(self) -> str:
        """The name of the wire format."""
        return "scripted"

    @property
    def window(self) -> int:
        """How many tokens the model can read."""
        return self._window

    @property
    def left(self) -> int:
        """How many turns were not played."""
        return len(self._turns)

    def add(self, *turns: Turn) -> None:
        """Put more turns at the end."""
        self._turns += turns

    def prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        """Encode system prompt and tools."""
        described = [{"name": tool.name, "parameters": tool.parameters} for tool in tools]
        return json.dumps({"system": system, "tools": described}).encode()

    def encode(self, message: Message) -> bytes:
        """Encode one message so that a test can read it."""
        fields: dict[str, object] = {"role": message.role, "text": message.text}
        if message.calls:
            fields["calls"] = [[call.id, call.name, call.arguments] for call in message.calls]
        if message.results:
            fields["results"] = [[part.call, part.text, part.is_error] for part in message.results]
        return json.dumps(fields).encode()

    async def call(self, request: Request, show: Show) -> Reply:
        """Play the next turn."""
        self.requests.append(request)
        if not self._turns:
            raise AssertionError(
                f"the model was called {len(self.requests)} times, more often than its script has turns"
            )
        turn = self._turns.pop(0)
        await anyio.lowlevel.checkpoint()
        match turn:
            case str():
                return await self._say(Say(turn), show)
            case Say():
                return await self._say(turn, show)
            case Fail():
                raise self._failed(turn, show)

    def _failed(self, turn: Fail, show: Show) -> Exception:
        if not turn.after:
            return turn.error
        show(Delta("text", turn.after))
        partial = Message(
            MessageId(self._clock.new_id()),
            "assistant",
            (TextPart(turn.after),),
            self._clock.now(),
            status="interrupted",
        )
        return Cut(str(turn.error), partial=partial)

    async def _say(self, turn: Say, show: Show) -> Reply:
        for piece in turn.pieces(turn.reasoning):
            show(Delta("reasoning", piece))
        for piece in turn.pieces(turn.text):
            if turn.pause:
                await anyio.sleep(turn.pause)
            show(Delta("text", piece))
        parts: list[Part] = []
        if turn.reasoning:
            parts.append(ReasoningPart(turn.reasoning))
        if turn.text:
            parts.append(TextPart(turn.text))
        for order in turn.calls:
            show(Delta("call", order.name))
            arguments = order.arguments if isinstance(order.arguments, str) else json.dumps(order.arguments)
            call_id = order.id or f"call_{self._clock.new_id()}"
            parts.append(CallPart(CallId(call_id), order.name, arguments))
        message = Message(MessageId(self._clock.new_id()), "assistant", tuple(parts), self._clock.now())
        return Reply(message, self.encode(message), turn.ends, turn.usage, "scripted")
