"""A run on disk: begun, each step appended, ended once.

Invariants: what the model orders is stored before it is done, and what came of it before the model is asked again; a
run whose session another Hermes has taken over stores nothing more.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import anyio

from hermes.agent.conversation import Conversation
from hermes.agent.telling import stream_of
from hermes.domain.clock import Clock, from_micros
from hermes.domain.errors import LeaseLost, Unavailable
from hermes.domain.event import Event, EventId
from hermes.domain.job import Job
from hermes.domain.ledger import Entry
from hermes.domain.message import Message, MessageId
from hermes.domain.principal import Principal
from hermes.domain.protocols import Store, Tx
from hermes.domain.records import dataclass
from hermes.domain.session import Context, Run, RunState, Session
from hermes.jobs.lane import Lane
from hermes.store import event as events
from hermes.store import ledger
from hermes.store import message as messages
from hermes.store import run as runs
from hermes.store import session as sessions

_Batch: TypeAlias = Sequence[tuple[Message, Entry | None]]
_MOMENT = 0.02
"""Seconds that what was only read may wait for company on its way to the disk."""
_LAST_WORDS = 10.0
"""Seconds for writing down how a run ended."""
CRASHED = "its process ended before the run did"
_TAKEN = "the run {!r} has ended: another Hermes has its session now"
_SYSTEM = Principal.system("keep the record of a run")


@dataclass(frozen=True, slots=True)
class Opening:
    """What is stored when a run begins. `seen` is the context that its maker has seen, with its head."""

    run: Run
    job: Job | None
    session: Session | None = None
    context: Context | None = None
    seen: Context | None = None
    history: tuple[Message, ...] = ()
    message: Message | None = None
    workspace: str | None = None
    """Where the session works from now on, when that is elsewhere."""


@dataclass(frozen=True, slots=True)
class Opened:
    """How a run began. `is_whole` says that context and message were stored: nobody had changed what was seen."""

    held: Job | None
    left: tuple[Run, ...]
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended; `reason` is one line for a person."""

    state: RunState
    reason: str | None = None
    steps: int = 0


def open_run(tx: Tx, opening: Opening, lane: Lane | None) -> Opened:
    """Take the lane, end what a crash has left, and store that the run has begun: all of it, or none."""
    run = opening.run
    if opening.session is not None:
        sessions.create(tx, run.principal, opening.session)
    held = lane.enter(tx, opening.job) if lane is not None and opening.job is not None else None
    left = tuple(one for one in runs.unfinished(tx, run.principal, run.session) if one.id != run.id)
    for one in left:
        runs.end(tx, run.principal, one.id, "failed", CRASHED, steps=one.steps)
        _publish(tx, one, "run.ended", Ending("failed", CRASHED))
    runs.start(tx, run.principal, run)
    _publish(tx, run, "run.started")
    present = sessions.context(tx, run.principal, run.session)
    if _names(present) != _names(opening.seen):
        # The same opening once more, after an answer that was lost, finds its own context and message.
        is_ours = opening.message is not None and present is not None and present.head == opening.message.id
        return Opened(held, left, is_whole=is_ours)
    if opening.workspace is not None:
        sessions.move(tx, run.principal, run.session, opening.workspace)
    if opening.context is not None:
        sessions.open_context(tx, run.principal, opening.context)
    current = opening.context or present
    if opening.message is not None and current is not None:
        said = [*opening.history, opening.message]
        messages.append(tx, run.principal, run.session, current.number, said, run=run.id)
    return Opened(held, left, is_whole=opening.message is not None)


def _names(context: Context | None) -> tuple[int, MessageId | None] | None:
    return None if context is None else (context.number, context.head)


def _publish(tx: Tx, run: Run, type_: str, ending: Ending | None = None) -> None:
    told = {} if ending is None else {"state": ending.state, "reason": ending.reason, "steps": ending.steps}
    event = Event(
        id=EventId(f"{run.id}.{type_.partition('.')[2]}"),
        stream=stream_of(run.session),
        type=type_,
        source="agent",
        tenant=run.principal.tenant,
        at=from_micros(tx.now()),
        data=told,
        subject=run.id,
    )
    events.append(tx, _SYSTEM, event)


class Record:
    """Writes down one run; raises LeaseLost when the run is not ours any more.

    `append` answers when all that was said so far is on disk. `hold` answers at once, for what may be said again
    without loss: orders that only read, and what was read. It is on disk a moment later, or with what comes next.
    """

    def __init__(self, store: Store, clock: Clock, run: Run, held: Job | None, lane: Lane) -> None:
        self._store = store
        self._clock = clock
        self._held = held
        self._lane = lane
        self._held_back: list[tuple[Message, Entry | None]] = []
        self._owed: list[Entry] = []
        self._storing: anyio.Event | None = None
        self._dirty = anyio.Event()
        self.run = run
        self.said: list[Message] = []
        """What was said in this run."""

    def new_id(self) -> str:
        """Make a name."""
        return self._clock.new_id()

    async def keep_lane(self) -> None:
        """Keep the lane until cancelled. Raises LeaseLost when another Hermes has it."""
        if self._held is not None:
            await self._lane.keep(self._held)

    async def append(self, talk: Conversation, said: Message, encoded: bytes, entry: Entry | None = None) -> None:
        """Add a message to the conversation, and wait until it is on disk with all before it.

        It is given its name, time and place here. What has begun to be stored is not given up when the run is stopped:
        disk and memory would part.
        """
        self._add(talk, said, encoded, entry)
        with anyio.CancelScope(shield=True):
            await self.flush(talk)

    def hold(self, talk: Conversation, said: Message, encoded: bytes, entry: Entry | None = None) -> None:
        """Add a message to the conversation, to be stored in a moment."""
        self._add(talk, said, encoded, entry)
        self._dirty.set()

    async def write_behind(self, talk: Callable[[], Conversation]) -> None:
        """Store what is held a moment after it came, until cancelled. Steps that follow quickly are stored together."""
        while True:
            await self._dirty.wait()
            await anyio.sleep(_MOMENT)
            self._dirty = anyio.Event()
            await self.flush(talk())

    async def flush(self, talk: Conversation) -> None:
        """Wait until all that was said so far is on disk."""
        while self._storing is not None:
            await self._storing.wait()
        batch, self._held_back = self._held_back, []
        if not batch:
            return
        self._storing = anyio.Event()
        try:
            await self._store.write(lambda tx: self._append(tx, talk.context.number, batch))
        except BaseException:
            # Perhaps it is stored all the same: storing it again is nothing.
            self._held_back = batch + self._held_back
            raise
        finally:
            self._storing.set()
            self._storing = None

    def _add(self, talk: Conversation, said: Message, encoded: bytes, entry: Entry | None) -> None:
        message = self.placed(said, talk.head)
        self._held_back.append((message, entry))
        self.take_in(talk, message, encoded)

    def take_in(self, talk: Conversation, message: Message, encoded: bytes) -> None:
        """Make a message part of what is in hand."""
        self.said.append(message)
        talk.add(message, encoded)

    def placed(self, message: Message, parent: MessageId | None) -> Message:
        """Give a message its name and time, unless it has them, and its place after `parent`."""
        name, at = (message.id, message.at) if message.id else (MessageId(self._clock.new_id()), self._clock.now())
        # By hand, since it is made for every message and `replace` costs ten times as much.
        return Message(name, message.role, message.parts, at, message.status, parent, message.opaque)

    def owe(self, entry: Entry) -> None:
        """Write down with what comes next what a call has cost that brought no message."""
        self._owed.append(entry)

    async def note(self, entry: Entry) -> None:
        """Write down what a side call has cost."""
        await self._store.write(lambda tx: ledger.write(tx, self.run.principal, entry))

    async def reset(
        self,
        context: Context,
        copies: Sequence[Message],
        originals: Sequence[MessageId],
        *,
        workspace: str | None = None,
    ) -> None:
        """Open the next context, which begins with copies of messages that were said before."""

        def work(tx: Tx) -> None:
            if not runs.is_running(tx, self.run.principal, self.run.id):
                raise LeaseLost(_TAKEN.format(self.run.id))
            sessions.open_context(tx, self.run.principal, context)
            if workspace is not None:
                sessions.move(tx, self.run.principal, self.run.session, workspace)
            if copies:
                messages.append(
                    tx, self.run.principal, self.run.session, context.number, copies, run=self.run.id, copy_of=originals
                )

        await self._store.write(work)

    def ending(self, talk: Conversation, ending: Ending) -> Callable[[Tx], bool]:
        """Return the work that ends the run with all that is held, for the transaction in which its job ends; its value
        is False when the run had ended.
        """
        batch, self._held_back = self._held_back, []
        owed, self._owed = self._owed, []

        def work(tx: Tx) -> bool:
            if not runs.end(tx, self.run.principal, self.run.id, ending.state, ending.reason, steps=ending.steps):
                return False
            self._store_all(tx, talk.context.number, batch)
            for entry in owed:
                ledger.write(tx, self.run.principal, entry)
            _publish(tx, self.run, "run.ended", ending)
            return True

        return work

    async def end(self, work: Callable[[Tx], bool], ending: Ending) -> None:
        """End the run with `ending`'s work and leave the lane, in one transaction.

        It is not given up when the run is stopped. Raises LeaseLost when somebody else has ended the run, and
        Unavailable when the store does not take it in time.
        """

        def whole(tx: Tx) -> None:
            if not work(tx):
                self._require_own_end(tx, ending)
            elif self._held is not None:
                self._lane.leave(tx, self._held, ending.reason if ending.state == "failed" else None)

        with anyio.CancelScope(shield=True), anyio.move_on_after(_LAST_WORDS):
            await self._store.write(whole)
            return
        raise Unavailable(
            f"the end of the run {self.run.id!r} was not stored within {_LAST_WORDS:g} s; look at the disk"
        )

    def _require_own_end(self, tx: Tx, ending: Ending) -> None:
        """The same end once more, after an answer that was lost, finds itself; any other is somebody else's."""
        stored = runs.get(tx, self.run.principal, self.run.id)
        if stored is None or (stored.state, stored.reason) != (ending.state, ending.reason):
            raise LeaseLost(_TAKEN.format(self.run.id))

    def _append(self, tx: Tx, context: int, batch: "_Batch") -> None:
        if not runs.is_running(tx, self.run.principal, self.run.id):
            raise LeaseLost(_TAKEN.format(self.run.id))
        self._store_all(tx, context, batch)

    def _store_all(self, tx: Tx, context: int, batch: "_Batch") -> None:
        said = [message for message, _ in batch]
        if said:
            messages.append(tx, self.run.principal, self.run.session, context, said, run=self.run.id)
        for _, entry in batch:
            if entry is not None:
                ledger.write(tx, self.run.principal, entry)
