"""One run under way: everything the loop works with, and the steps it is made of.

Invariant: what may change something is stored before it begins, and what came of it before the model is asked again;
what only reads follows a moment later. Each call gets exactly one result, whatever happens meanwhile.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from hermes.agent.compaction import Compactor
from hermes.agent.conversation import Conversation
from hermes.agent.model import Model
from hermes.agent.record import Record
from hermes.agent.steering import Steering
from hermes.agent.telling import Teller
from hermes.domain.clock import Clock
from hermes.domain.errors import LimitReached
from hermes.domain.event import JSON
from hermes.domain.ledger import Entry
from hermes.domain.message import CallId, CallPart, Message, MessageId, ResultPart, Status, TextPart
from hermes.domain.model import ContextOverflow, Reply, Request, Usage
from hermes.domain.records import dataclass
from hermes.domain.session import Run, SessionId
from hermes.domain.tool import ToolContext
from hermes.effects.budget import Budget, Reserved
from hermes.effects.executor import Executor, Performed
from hermes.effects.loopstop import LoopStop

_SHOWN = 200
_LONGEST_TOLD = 60_000
_CHARACTERS_A_TOKEN = 4
UNCERTAIN = (
    "uncertain: Hermes ended while this ran, so it may or may not have taken effect. Look before you do it again."
)
INTERRUPTED = "interrupted: the user stopped this; it may have been done in part. Look before you do it again."
NEVER_BEGUN = "not done: Hermes ended before this had begun."
NOT_BEGUN = "interrupted: the user stopped before this had begun; it was not done."
"""What a call without a result gets when nobody can say what came of it."""

_TRY_ELSE = (
    "Try something else; to wait for something, wait longer in one call. If it goes on like that, the run is stopped."
)

Hear: TypeAlias = Callable[[SessionId], Awaitable[Sequence[str]]]


@dataclass(slots=True)
class Work:
    """One run in hand. Used by one task."""

    record: Record
    model: Model
    hands: Executor
    place: Callable[[], Awaitable[ToolContext]]
    """Opens what the tools need, when the first one is called, and says where they act."""
    clock: Clock
    budget: Budget
    watch: LoopStop
    steering: Steering
    teller: Teller
    compactor: Compactor
    talk: Conversation
    hear: Hear | None = None
    """Gives what the outside has to say to the session since the last time: a background process that has ended."""
    ephemeral: tuple[Message, ...] = ()
    extra: Mapping[str, JSON] = field(default_factory=dict)
    max_tokens: int | None = None
    steps: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: int = 0
    deferred: list[str] = field(default_factory=list)
    here: ToolContext | None = None
    ordered: dict[CallId, CallPart] = field(default_factory=dict)
    began: dict[CallId, float] = field(default_factory=dict)
    notices_of_house: tuple[str, ...] = ()
    is_answering: bool = False
    """Whether an answer has begun to arrive and is not whole."""
    circling: str | None = None
    """Why the run is to be stopped."""

    async def ask(self) -> tuple[Reply, Entry]:
        """Ask the model once; make room first when the conversation is too long, also when only the model knows so."""
        if self.compactor.is_due(self.talk):
            await self.record.flush(self.talk)
            self.talk = await self.compactor.compact(self.talk)
        try:
            return await self._ask()
        except ContextOverflow:
            await self.record.flush(self.talk)
            shorter = await self.compactor.compact(self.talk, is_needed=True)
            if shorter is self.talk:
                raise
            self.talk = shorter
            return await self._ask()

    async def _ask(self) -> tuple[Reply, Entry]:
        reserved = self.budget.reserve(tokens=self.talk.tokens)
        self.teller.begin_answer()
        self.is_answering = True
        provider = self.model.provider
        request = Request(
            self.talk.context.prefix,
            self.talk.encoded,
            ephemeral=[provider.encode(message) for message in self.ephemeral],
            max_tokens=self.max_tokens,
            extra=self.extra,
        )
        try:
            reply = await self.model.ask(request, self.teller.show)
        except BaseException:
            self._owe(reserved)
            raise
        self.is_answering = False
        entry = self.model.entry(self.record.run, self.record.new_id(), reply.usage)
        self._spend(entry)
        self.budget.settle(reserved, reply.usage.input + reply.usage.output, entry.cost or 0)
        self.teller.used(reply.usage.input + reply.usage.output, provider.window, entry.cost)
        return reply, entry

    def _owe(self, reserved: Reserved) -> None:
        """An answer that broke off was paid for as well: what it has used is estimated, never taken for free."""
        said = sum(map(len, self.teller.partial))
        if not said:
            self.budget.settle(reserved)
            return
        used = Usage(input=self.talk.tokens, output=said // _CHARACTERS_A_TOKEN + 1)
        entry = self.model.entry(self.record.run, self.record.new_id(), used, "cut off")
        self.record.owe(entry)
        self._spend(entry)
        self.budget.settle(reserved, used.input + used.output, entry.cost or 0)

    def _spend(self, entry: Entry) -> None:
        self.steps += 1
        self.usage += entry.usage
        self.cost += entry.cost or 0

    async def keep(self, reply: Reply, entry: Entry) -> None:
        """Take down what the model has said; it is on disk before anything it orders is done, save what only reads."""
        said = unnamed(reply.message)
        calls = said.calls
        if calls and all(self.hands.access(call.name) == "read" for call in calls):
            self.record.hold(self.talk, said, reply.encoded, entry)
        else:
            await self.record.append(self.talk, said, reply.encoded, entry)
        self.talk.count(reply.usage)

    async def say(self, *texts: str) -> None:
        """Add words of the user, or words about the outside, to the conversation."""
        for text in texts:
            said = Message(MessageId(""), "user", (TextPart(text),), self.clock.now())
            await self.record.append(self.talk, said, self.model.provider.encode(said))

    async def listen(self) -> None:
        """Read what the user has said meanwhile, and what the outside has to say."""
        heard = await self.hear(self.record.run.session) if self.hear is not None else ()
        await self.say(*self.steering.take(), *(f"[notice] {text}" for text in heard))

    async def recover(self, left: Sequence[Run]) -> None:
        """Give the calls that a crash has left their results: what only reads is done again, the rest is uncertain."""
        if not self.talk.unanswered:
            return
        self.teller.note(
            "recovering", f"the last run of this session was cut off ({len(left)} left); going on from there"
        )
        reads = [call for call in self.talk.unanswered if self.hands.access(call.name) == "read"]
        await self.perform(reads)
        ordered = {call.id: call for call in self.talk.unanswered}
        for performed in self.unsettled(is_crash=True):
            call = ordered[performed.result.call]
            if performed.status == "uncertain":
                what = f"{call.name} {call.arguments[:_SHOWN]}"
                self.teller.note("uncertain", f"nobody knows whether this was done: {what}")
            await self.settle(performed)

    async def perform(self, calls: Sequence[CallPart]) -> None:
        """Do what the model has ordered; each result is stored as soon as it is there."""
        if self.here is None:
            self.here = replace(await self.place(), begin=self._begin)
        self.ordered = {call.id: call for call in calls}
        await self.hands.perform(calls, self.here, self._note)

    def _begin(self, call: CallId) -> None:
        self.began[call] = time.monotonic()
        self.teller.tool("began", self.ordered[call])

    async def _note(self, call: CallPart, performed: Performed) -> None:
        performed = self._watched(call, performed)
        await self.settle(performed)
        now = time.monotonic()
        seconds, is_error = now - self.began.get(call.id, now), performed.result.is_error
        self.teller.tool("ended", call, seconds=seconds, is_error=is_error, text=performed.result.text[:_LONGEST_TOLD])

    async def settle(self, performed: Performed) -> None:
        """Take down the result of one call. What a write has brought is on disk before anything else is done."""
        result = Message(MessageId(""), "tool", (performed.result,), self.clock.now(), performed.status)
        encoded = self.model.provider.encode(result)
        only_reads = bool(self.ordered) and all(self.hands.access(c.name) == "read" for c in self.ordered.values())
        if only_reads and performed.deferred is None:
            self.record.hold(self.talk, result, encoded)
        else:
            await self.record.append(self.talk, result, encoded)
        if performed.deferred is not None:
            self.deferred.append(performed.deferred)

    def stop_if_circling(self) -> None:
        """Raise LimitReached when the run does the same again and again, and was told so."""
        if self.circling is not None:
            raise LimitReached(f"stopped, as it went round in circles: {self.circling}; say how to go on")

    def _watched(self, call: CallPart, performed: Performed) -> Performed:
        """Look whether the run goes round in circles; the first time the model reads so in the result."""
        circle = self.watch.note(call, performed.result)
        if circle is None:
            return performed
        if circle.is_over:
            self.circling = circle.why
            return performed
        told = f"{performed.result.text}\n\n[notice] {circle.why}. {_TRY_ELSE}"
        return replace(performed, result=replace(performed.result, text=told))

    def unsettled(self, *, is_crash: bool) -> list[Performed]:
        """Return what is said for the calls that have no result and will get none.

        Calls are done in order, and a write begins when all before it have their results on disk: after a crash only
        the first that has none can have begun.
        """
        settled: list[Performed] = []
        for call in self.talk.unanswered:
            is_done_perhaps = not settled if is_crash else call.id in self.began
            is_write = self.hands.access(call.name) != "read"
            if is_crash:
                text = UNCERTAIN if is_done_perhaps else NEVER_BEGUN
            else:
                text = INTERRUPTED if is_done_perhaps else NOT_BEGUN
            status: Status = "uncertain" if is_write and is_done_perhaps else "complete"
            settled.append(Performed(ResultPart(call.id, call.name, text, is_error=True), status))
        return settled


def unnamed(message: Message) -> Message:
    """Return a message that will be given its name and time where it is stored."""
    return Message(MessageId(""), message.role, message.parts, message.at, message.status, None, message.opaque)
