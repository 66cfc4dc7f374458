"""The assistant: takes a turn in a session, from the words of the user to the answer, and survives its own death.

Invariants: one run at a time in a session, across processes; what was said is stored before anything is done about it;
a run ends exactly once, and what it leaves can always be gone on with.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio

from hermes.agent.beginning import Beginning, Parts
from hermes.agent.loop import Answer, drive
from hermes.agent.record import Ending
from hermes.agent.turn import Ended, Turn
from hermes.agent.work import Work, unnamed
from hermes.domain.errors import HermesError, LeaseLost, Unavailable
from hermes.domain.message import Message, MessageId, TextPart
from hermes.domain.model import Cut
from hermes.domain.protocols import Tx

_log = logging.getLogger("hermes.agent")


class Agent:
    """One model with one set of tools. Serves many sessions at once, each of them one run at a time."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._beginning = Beginning(parts)

    async def run(self, turn: Turn) -> Ended:
        """Take a turn. Raises Conflict when the session is busy, and what else stands in the way of beginning; what
        goes wrong later ends the run, and is told in `Ended.error`.
        """
        work = await self._beginning.begin(turn, is_held=False)
        return await self._end(turn, work, *await self._finish(turn, work, is_held=False))

    async def compact(self, turn: Turn) -> Ended:
        """Make what the model is sent of a session shorter, because a person wants it. A run of its own, in which
        nothing is said; `Ended.ending.reason` says what it brought. Raises as `run` does.
        """
        work = await self._beginning.begin(replace(turn, parts=(), is_new=False), is_held=False, is_quiet=True)
        return await self._end(turn, work, *await self._finish(turn, work, is_held=False, act=_compact))

    async def run_held(self, turn: Turn) -> tuple[Ended, Callable[[Tx], bool]]:
        """Take a turn in a lane that the caller holds; the caller stores the returned work with the end of its job."""
        work = await self._beginning.begin(turn, is_held=True)
        return await self._finish(turn, work, is_held=True)

    async def _end(self, turn: Turn, work: Work, ended: Ended, last: Callable[[Tx], bool]) -> Ended:
        """Store the end of a run that holds its own lane, and keep its conversation at hand."""
        try:
            await work.record.end(last, ended.ending)
        except LeaseLost:
            raise
        except HermesError as error:
            return _unstored(ended, error)
        if ended.error is None:
            self._beginning.keep(turn, work.talk)
        return ended

    async def _finish(
        self, turn: Turn, work: Work, *, is_held: bool, act: Callable[[Work], Awaitable[Answer]] = drive
    ) -> tuple[Ended, Callable[[Tx], bool]]:
        """Drive the run to its end, whatever that is, and say what is to be stored with it."""
        error = None
        try:
            answer = await _drive(turn, work, act, is_held=is_held)
        except LeaseLost:
            raise
        except HermesError as failed:
            error = failed
            answer = Answer(Ending("failed", str(failed), work.steps))
        except anyio.get_cancelled_exc_class():
            ended, last = _ended(turn, work, Answer(Ending("cancelled", "stopped", work.steps)), None)
            if not is_held:
                await _end_stopped(work, ended, last)
            raise
        except Exception as failed:  # noqa: BLE001 - the boundary of a run: it is logged, told and ended
            # A fault of ours must not leave the session without an end.
            _log.exception("a run failed by a fault of Hermes")
            fault = HermesError(f"the run failed by a fault of Hermes: {type(failed).__name__}: {failed}; see the log")
            return _ended(turn, work, Answer(Ending("failed", str(fault), work.steps)), fault)
        return _ended(turn, work, answer, error)


async def _compact(work: Work) -> Answer:
    before = work.talk.tokens
    await work.record.flush(work.talk)
    shorter = await work.compactor.compact(work.talk, why="asked", is_asked=True)
    if shorter is work.talk:
        return Answer(Ending("done", f"about {before:,} tokens are as short as they can be made"))
    work.talk = shorter
    return Answer(Ending("done", f"about {before:,} tokens became {shorter.tokens:,}"))


async def _drive(turn: Turn, work: Work, act: Callable[[Work], Awaitable[Answer]], *, is_held: bool) -> Answer:
    """Do the work of the run while the lane is kept, until it ends or is interrupted."""
    answer = Answer(Ending("cancelled", "interrupted by the user"))
    try:
        async with anyio.create_task_group() as group:
            if not is_held:
                group.start_soon(work.record.keep_lane)
            group.start_soon(work.record.write_behind, lambda: work.talk)
            with turn.steering.holding(anyio.CancelScope()):
                answer = await act(work)
            group.cancel_scope.cancel()
    except BaseExceptionGroup as failed:
        raise _first(failed) from failed
    return replace(answer, ending=replace(answer.ending, steps=work.steps))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Of what went wrong side by side, return what matters: that the run is not ours any more, else the first."""
    lost = group.subgroup(LeaseLost)
    found: BaseException = lost if lost is not None else group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


async def _end_stopped(work: Work, ended: Ended, last: Callable[[Tx], bool]) -> None:
    """End a run that is being stopped. What fails here must not stand in for the stop."""
    try:
        await work.record.end(last, ended.ending)
    except HermesError:
        _log.warning("the end of a run that was stopped could not be stored", exc_info=True)


def _unstored(ended: Ended, error: HermesError) -> Ended:
    """Hand over an answer that is stored nowhere, and say so."""
    said = Unavailable(f"the end of this run could not be stored ({error}); keep its answer yourself, then ask again")
    return replace(ended, ending=replace(ended.ending, state="failed", reason=str(said)), error=ended.error or said)


def _ended(turn: Turn, work: Work, answer: Answer, error: HermesError | None) -> tuple[Ended, Callable[[Tx], bool]]:
    """Put together what is stored with the end, and what the caller is told."""
    for said, form in _last_messages(work, answer, error):
        encoded = form if form is not None else work.model.provider.encode(said)
        work.record.hold(work.talk, said, encoded, answer.entry)
    if answer.reply is not None:
        work.talk.count(answer.reply.usage)
    last = work.record.ending(work.talk, answer.ending)
    ended = Ended(
        session=turn.session,
        run=work.record.run.id,
        ending=answer.ending,
        text=next((m.text for m in reversed(work.record.said) if m.role == "assistant" and m.text), ""),
        usage=work.usage,
        cost=work.cost,
        messages=tuple(work.record.said),
        error=error,
        notices=work.notices_of_house,
    )
    return ended, last


def _last_messages(work: Work, answer: Answer, error: HermesError | None) -> list[tuple[Message, bytes | None]]:
    """Return the answer; or what the calls that were cut off get for a result, and the part of an answer there was."""
    if answer.reply is not None:
        return [(unnamed(answer.reply.message), answer.reply.encoded)]
    now = work.clock.now()
    rest: list[tuple[Message, bytes | None]] = [
        (Message(MessageId(""), "tool", (one.result,), now, one.status), None) for one in work.unsettled(is_crash=False)
    ]
    partial = "".join(work.teller.partial)
    if isinstance(error, Cut) and error.partial is not None:
        partial = error.partial.text or partial
    if partial.strip() and not rest and work.is_answering:
        rest.append((Message(MessageId(""), "assistant", (TextPart(partial),), now, "interrupted"), None))
    return rest
