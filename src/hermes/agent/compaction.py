"""When a conversation grows too long for its model: a new context that begins with less, and points to all of it.

Invariant: what was said stays stored as it was said; when no summary can be had, nothing is dropped as long as it fits.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from hermes.agent.conversation import Conversation
from hermes.agent.cutting import Cut, cut, original, with_pointers
from hermes.agent.model import Model
from hermes.agent.record import Record
from hermes.agent.summary import MARK, Written, digest, written
from hermes.agent.telling import Teller
from hermes.domain.clock import Clock
from hermes.domain.errors import HermesError, LeaseLost
from hermes.domain.message import Message, MessageId, TextPart
from hermes.domain.records import dataclass
from hermes.domain.session import Context

_log = logging.getLogger("hermes.agent")
_ENOUGH = 0.6
"""When pointers alone bring a conversation below this share of what is aimed at, nothing needs a summary."""
_RECALL = (
    "Earlier messages were left out here. Nothing of them is lost: `recall` finds any of them by its words or its id."
)


@dataclass(frozen=True, slots=True)
class Terms:
    """When to compact, and how much stays. `threshold` and `tail` are shares of the window and of the threshold."""

    is_on: bool = True
    threshold: float = 0.5
    tail: float = 0.2
    first: int = 3
    last: int = 20


@dataclass(slots=True)
class Compactor:
    """Compacts the conversation of one run. After a try that failed or did not help it waits until more was said."""

    model: Model
    clock: Clock
    record: Record
    teller: Teller
    terms: Terms
    prefix: Callable[[], Awaitable[bytes]]
    """Makes what a new context begins with."""
    _not_before: int = 0

    def is_due(self, talk: Conversation) -> bool:
        """Whether the next request would be too long for comfort."""
        return self.terms.is_on and talk.tokens > self._threshold and talk.tokens >= self._not_before

    @property
    def _threshold(self) -> int:
        return int(self.model.provider.window * self.terms.threshold)

    async def compact(
        self, talk: Conversation, *, why: str = "compaction", is_needed: bool = False, is_asked: bool = False
    ) -> Conversation:
        """Open a shorter context and return it; the same one when it could not be made shorter. `is_needed`: the model
        refuses the long one, so an extract will do where no summary can be had. `is_asked`: a person wants it shorter,
        however short it is.
        """
        before = talk.tokens
        self.teller.note("compacting", f"the conversation has about {before:,} tokens; making it shorter")
        # A model that refuses what should fit has a smaller window than it is thought to have.
        plan = self._plan(talk, min(self._threshold, before // 2) if is_needed or is_asked else self._threshold)
        if plan is None:
            self._not_before = int(before * 1.2)
            return talk
        kept, summary = plan
        if summary is not None:
            text = await self._summary(summary, is_needed=is_needed)
            if text is None:
                self._not_before = int(before * 1.1)
                return talk
            kept = self._joined(summary, text)
        shorter = await self._open(talk, kept, why)
        if shorter.tokens > before * 0.9:
            self._not_before = int(shorter.tokens * 1.2)
        self.teller.note("compacted", f"about {before:,} tokens became {shorter.tokens:,}")
        return shorter

    def _plan(self, talk: Conversation, goal: int) -> tuple[Sequence[Message], Cut | None] | None:
        """Say what is kept as it is and what is summarised; None when there is nothing that could go."""
        rate = talk.size / max(talk.tokens, 1)
        sizes = [len(one) for one in talk.encoded]
        tail = int(goal * self.terms.tail * rate)
        pointed = with_pointers(talk.messages, sizes, keep=tail)
        saved = sum(
            sizes[n] - len(self.model.provider.encode(one))
            for n, one in enumerate(pointed)
            if one is not talk.messages[n]
        )
        if (talk.size - saved) / rate < goal * _ENOUGH:
            return pointed, None
        plan = cut(talk.messages, sizes, first=self.terms.first, last=self.terms.last, tail_size=tail)
        if not plan.middle:
            return None
        return (), replace(plan, tail=with_pointers(plan.tail, sizes[len(sizes) - len(plan.tail) :], keep=tail))

    async def _summary(self, plan: Cut, *, is_needed: bool) -> str | None:
        earlier = next((m.text for m in plan.middle if m.text.startswith(MARK)), "")
        middle = [message for message in plan.middle if not message.text.startswith(MARK)]
        try:
            made = await written(self.model, self.clock, middle, earlier, window=self.model.provider.window)
        except LeaseLost:
            raise
        except HermesError as error:
            _log.warning("no summary could be written", extra={"fields": {"error": str(error)}})
            if not is_needed:
                self.teller.note("not compacted", f"no summary could be written ({error}); nothing was left out")
                return None
            return digest(middle, earlier, type(error).__name__)
        await self._note(made)
        return made.text or digest(middle, earlier, "the model wrote nothing")

    async def _note(self, made: Written) -> None:
        for reply in made.replies:
            await self.record.note(self.model.entry(self.record.run, self.clock.new_id(), reply.usage, "compaction"))

    def _joined(self, plan: Cut, summary: str) -> list[Message]:
        said = summary.removeprefix(MARK).strip()
        asked = plan.request.text if plan.request is not None else ""
        last = f"\n\nWhat the user asked for last, word for word:\n{asked}" if asked else ""
        now = self.clock.now()
        middle = Message(MessageId(self.clock.new_id()), "user", (TextPart(f"{MARK}\n{said}\n\n{_RECALL}{last}"),), now)
        return [*plan.head, middle, *plan.tail]

    async def _open(self, talk: Conversation, kept: Sequence[Message], why: str) -> Conversation:
        number = talk.context.number + 1
        copies: list[Message] = []
        for message in kept:
            parent = copies[-1].id if copies else None
            copies.append(replace(message, id=MessageId(f"{original(message)}~{number}"), parent=parent))
        originals = [MessageId(original(message)) for message in kept]
        context = replace(
            talk.context, number=number, prefix=await self.prefix(), head=None, why=why, created_at=self.clock.now()
        )
        await self.record.reset(context, copies, originals)
        return Conversation.load(_headed(context, copies), copies, self.model.provider)


def _headed(context: Context, copies: Sequence[Message]) -> Context:
    return replace(context, head=copies[-1].id if copies else None)
