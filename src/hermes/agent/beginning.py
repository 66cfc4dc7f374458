"""How a run begins: the session's lane is taken, what a crash has left is settled, and the user's words are stored.

Invariant: usually one transaction. Only when somebody else was in the session since, or a crash has left calls without
a result, it takes more; the words of the user come after what was left.
"""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio

from hermes.agent.compaction import Compactor, Terms
from hermes.agent.conversation import Conversation
from hermes.agent.house import House, fingerprint
from hermes.agent.model import Model
from hermes.agent.record import Ending, Opened, Opening, Record, open_run
from hermes.agent.telling import Teller, Watches
from hermes.agent.turn import Turn
from hermes.agent.work import Hear, Work
from hermes.domain.clock import Clock
from hermes.domain.errors import HermesError, Misconfigured, NotFound
from hermes.domain.job import Job, JobId
from hermes.domain.machine import Machine
from hermes.domain.message import CallId, Message, MessageId
from hermes.domain.protocols import Store
from hermes.domain.records import dataclass
from hermes.domain.session import Context, Run, RunId
from hermes.domain.tool import ToolContext
from hermes.effects.budget import Budget
from hermes.effects.executor import Executor
from hermes.effects.loopstop import LoopStop
from hermes.jobs.lane import Lane
from hermes.store import message as messages
from hermes.store import session as sessions

_log = logging.getLogger("hermes.agent")
JOB = "agent.turn"
_KEPT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Parts:
    """What an assistant is made of."""

    store: Store
    clock: Clock
    lane: Lane
    model: Model
    hands: Executor
    machine: Callable[[], Awaitable[Machine]]
    """Opens the machine when it is first needed, and returns it."""
    house: House
    compaction: Terms
    watches: Watches = tuple
    """Says who looks at all runs now."""
    hear: Hear | None = None


def lane_of(turn: Turn) -> str:
    """Return the lane of a session: whatever works in it waits there."""
    return f"session:{turn.session.id}"


class Beginning:
    """Begins the runs of one assistant. Those conversations that were just used are kept encoded, up to a bound."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tools = fingerprint(parts.hands.specs)
        self._kept: OrderedDict[tuple[str, str], Conversation] = OrderedDict()

    async def begin(self, turn: Turn, *, is_held: bool, is_quiet: bool = False) -> Work:
        """Begin a run; `is_held` says that the caller has the lane, `is_quiet` that nothing is asked. Raises Conflict
        when the session is busy.
        """
        parts = self._parts
        name = turn.run or RunId(parts.clock.new_id())
        run = Run(name, turn.session.id, turn.principal, "running", parts.clock.now())
        seen = None if turn.is_new else await self._stored(turn)
        context, notices = await self._context(turn, seen)
        talk = await self._load(turn, seen, context)
        history = _placed(turn.history, parts.clock) if turn.is_new else ()
        opening = Opening(
            run,
            None if is_held else Job(JobId(run.id), JOB, turn.principal, lane=lane_of(turn)),
            session=turn.session if turn.is_new else None,
            context=context if context is not seen else None,
            seen=seen,
            workspace=_moved(turn),
            history=history,
            message=None if talk.unanswered else _opening(turn, run, talk, history),
        )
        lane = None if is_held else parts.lane
        if not is_quiet:
            _require_something(turn, talk)
        with anyio.CancelScope(shield=True):
            # What has begun on disk must be in hand here: nobody else would end it.
            opened = await parts.store.write(lambda tx: open_run(tx, opening, lane))
        work = self._work(turn, Record(parts.store, parts.clock, run, opened.held, parts.lane), talk)
        work.notices_of_house = notices
        if opened.is_whole and opening.message is not None:
            for message in history:
                talk.add(message, parts.model.provider.encode(message))
            work.record.take_in(talk, opening.message, parts.model.provider.encode(opening.message))
            return work
        try:
            await self._catch_up(turn, work, opened)
        except BaseException as error:
            if not is_held:
                await _give_up(work, error)
            raise
        return work

    def keep(self, turn: Turn, talk: Conversation) -> None:
        """Keep a conversation at hand for the next run of its session; the longest unused go when it is too much."""
        self._kept[_key(turn)] = talk
        self._kept.move_to_end(_key(turn))
        while len(self._kept) > 1 and sum(one.size for one in self._kept.values()) > _KEPT_BYTES:
            self._kept.popitem(last=False)

    async def _stored(self, turn: Turn) -> Context | None:
        return await self._parts.store.read(lambda tx: sessions.context(tx, turn.principal, turn.session.id))

    async def _context(self, turn: Turn, seen: Context | None) -> tuple[Context, tuple[str, ...]]:
        """Return the context to go on with: the stored one, or the next when model, tools or workspace are others."""
        provider = self._parts.model.provider
        why = self._why_new(turn, seen)
        if seen is not None and why is None:
            return seen, ()
        prefix, notices = await self._prefix(turn)
        number = 1 if seen is None else seen.number + 1
        head = None if seen is None else seen.head
        now = self._parts.clock.now()
        return Context(
            turn.session.id, number, provider.wire, provider.name, self._tools, prefix, head, why or "new", now
        ), notices

    def _why_new(self, turn: Turn, seen: Context | None) -> str | None:
        provider = self._parts.model.provider
        if seen is None:
            return "new"
        if (seen.wire, seen.model) != (provider.wire, provider.name):
            return "model"
        if seen.tools != self._tools:
            return "tools"
        return "workspace" if _moved(turn) is not None else None

    async def _prefix(self, turn: Turn) -> tuple[bytes, tuple[str, ...]]:
        hands = self._parts.hands
        return await self._parts.house.prefix(
            self._parts.model.provider,
            hands.specs,
            turn.workspace,
            mode=turn.mode,
            platform_name=turn.platform,
            instructions=hands.instructions,
            more=turn.more,
        )

    async def _load(self, turn: Turn, seen: Context | None, context: Context) -> Conversation:
        kept = self._kept.pop(_key(turn), None)
        if kept is not None and seen is not None and (kept.context.number, kept.head) == (context.number, seen.head):
            return kept
        head = None if seen is None else seen.head
        said = await self._parts.store.read(lambda tx: messages.path(tx, turn.principal, head))
        return Conversation.load(context, said, self._parts.model.provider)

    async def _catch_up(self, turn: Turn, work: Work, opened: Opened) -> None:
        """With the lane in hand: read what there is now, settle what was left, then store the words of the user."""
        seen = await self._stored(turn)
        if seen is None and not turn.is_new:
            raise NotFound(f"there is no session {turn.session.id!r}; `hermes sessions list` shows those there are")
        context, work.notices_of_house = await self._context(turn, seen)
        work.talk = await self._load(turn, seen, context)
        if context is not seen:
            await work.record.reset(context, (), (), workspace=_moved(turn))
        await work.recover(opened.left)
        message = _opening(turn, work.record.run, work.talk, ())
        if message is not None:
            await work.record.append(work.talk, message, self._parts.model.provider.encode(message))

    def _work(self, turn: Turn, record: Record, talk: Conversation) -> Work:
        parts = self._parts
        teller = Teller(record.run, parts.clock, lambda: (*parts.watches(), *turn.watches))

        async def place() -> ToolContext:
            return ToolContext(
                principal=turn.principal,
                session=turn.session.id,
                run=record.run.id,
                call=CallId(""),
                clock=parts.clock,
                machine=await parts.machine(),
                workspace=turn.workspace,
                progress=lambda text: teller.note("tool", text),
                ask=turn.ask,
                mode=turn.mode,
                approver=turn.approver,
            )

        async def prefix() -> bytes:
            return (await self._prefix(turn))[0]

        return Work(
            record=record,
            model=parts.model,
            hands=parts.hands,
            place=place,
            clock=parts.clock,
            budget=Budget(turn.limits, parts.clock),
            watch=LoopStop(),
            steering=turn.steering,
            teller=teller,
            compactor=Compactor(parts.model, parts.clock, record, teller, parts.compaction, prefix),
            talk=talk,
            hear=parts.hear,
            ephemeral=turn.ephemeral,
            extra=turn.extra,
            max_tokens=turn.max_tokens,
        )


def _moved(turn: Turn) -> str | None:
    """Return where the session works from now on, when that is not where it did."""
    before, now = turn.session.workspace, str(turn.workspace)
    return now if not turn.is_new and before and before != now else None


async def _give_up(work: Work, error: BaseException) -> None:
    """End a run that could not begin, and leave its lane. What was left in the session stays for the next run."""
    ending = Ending("failed", str(error)) if isinstance(error, Exception) else Ending("cancelled", "stopped")
    try:
        await work.record.end(work.record.ending(work.talk, ending), ending)
    except HermesError:
        # What stood in the way of beginning is what the caller must know; the lease ends by itself.
        _log.warning("the end of a run that did not begin could not be stored", exc_info=True)


def _key(turn: Turn) -> tuple[str, str]:
    return turn.principal.tenant, turn.session.id


def _require_something(turn: Turn, talk: Conversation) -> None:
    last = talk.messages[-1] if talk.messages else None
    if not turn.parts and not talk.unanswered and (last is None or (last.role == "assistant" and not last.calls)):
        raise Misconfigured("there is nothing to go on with: the last answer is there; say something")


def _placed(history: tuple[Message, ...], clock: Clock) -> tuple[Message, ...]:
    """Name messages that were said elsewhere, and put them in a row."""
    placed: list[Message] = []
    for message in history:
        parent = placed[-1].id if placed else None
        placed.append(replace(message, id=MessageId(clock.new_id()), parent=parent))
    return tuple(placed)


def _opening(turn: Turn, run: Run, talk: Conversation, history: tuple[Message, ...]) -> Message | None:
    """Return the words of the user, under the name of the run, unless they are stored already."""
    opening = MessageId(run.id)
    if not turn.parts or any(message.id == opening for message in talk.messages):
        return None
    parent = history[-1].id if history else talk.head
    return Message(opening, "user", turn.parts, run.started_at, parent=parent)
