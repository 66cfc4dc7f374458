"""The loop: call the model, run the tools, append, repeat; until the model answers and orders nothing.

Invariant: it ends. Every turn of it costs a step of the budget, and what goes in circles is stopped.
"""

from hermes.agent.record import Ending
from hermes.agent.work import Work
from hermes.domain.errors import Unavailable
from hermes.domain.ledger import Entry
from hermes.domain.model import Reply
from hermes.domain.records import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """What the run comes to. `reply` is the last one, which is stored together with the end."""

    ending: Ending
    reply: Reply | None = None
    entry: Entry | None = None


async def drive(work: Work) -> Answer:
    """Work until there is an answer. Raises LimitReached when a budget is used up, and what asking raises."""
    is_empty = False
    while True:
        await work.listen()
        reply, entry = await work.ask()
        calls = reply.message.calls
        if not calls and not reply.message.text.strip():
            await work.record.note(entry)
            if is_empty and not work.steering.is_waiting:
                raise Unavailable(
                    f"the model {work.model.provider.name!r} gave an empty answer twice; ask again, or choose another "
                    "model"
                )
            is_empty = True
            continue
        is_empty = False
        if not calls:
            if not work.steering.is_waiting:
                return _answered(work, reply, entry)
            await work.keep(reply, entry)
            continue
        await work.keep(reply, entry)
        await work.perform(calls)
        if work.deferred:
            said = ", ".join(work.deferred)
            return Answer(Ending("suspended", f"waits for {said}", work.steps))
        work.stop_if_circling()


def _answered(work: Work, reply: Reply, entry: Entry) -> Answer:
    reason = {"length": "the answer was cut at the model's limit", "refusal": "the model refused"}.get(reply.finish)
    return Answer(Ending("done", reason, work.steps), reply, entry)
