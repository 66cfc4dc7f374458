"""The gate: no yes without a person, and no yes for anything else than what was shown."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from tests.unit.effects.conftest import Person, Stage

from hermes.domain.approval import Approval, Approver, Decision, Scope, State
from hermes.domain.effect import CallTool, Effect, RunCommand, WritePath, fingerprint
from hermes.domain.errors import Unavailable
from hermes.domain.principal import Principal
from hermes.effects.approving import Gate, OwnMemory
from hermes.effects.policy import Verdict
from hermes.effects.shown import draw, escaped

pytestmark = pytest.mark.anyio
EFFECT = RunCommand("npm test", Path("/w"), is_full=True)
VERDICT = Verdict("ask", "full-access", "it would run outside the sandbox", "npm test")


async def ask(stage: Stage, effect: Effect = EFFECT, verdict: Verdict = VERDICT) -> Decision:
    return await stage.gate().ask(stage.context(), effect, verdict)


async def test_the_question_is_bound_to_exactly_what_will_be_done(stage: Stage) -> None:
    stage.approver = person = Person()
    assert (await ask(stage)).state == "given"
    (asked,) = person.asked
    assert (asked.effect, asked.rule, asked.pattern) == (fingerprint(EFFECT), "full-access", "npm test")
    assert asked.effect != fingerprint(replace(EFFECT, command="npm  test"))


async def test_a_yes_for_once_is_used_up_and_a_wider_one_is_not(stage: Stage) -> None:
    stage.approver = person = Person()
    await ask(stage)
    assert not await stage.gate().is_granted(stage.context(), "npm test")
    person.answer = Decision("given", "session")
    await ask(stage)
    await ask(stage)
    assert len(person.asked) == 2
    other = replace(stage.context(), session="other")  # type: ignore[arg-type] # another session
    assert not await stage.gate().is_granted(other, "npm test")
    person.answer = Decision("given", "always")
    await ask(stage, verdict=replace(VERDICT, pattern="other"))
    assert await stage.gate().is_granted(other, "other")


async def test_there_is_no_wider_yes_without_a_pattern(stage: Stage) -> None:
    stage.approver = Person(Decision("given", "always"))
    said = await ask(stage, verdict=replace(VERDICT, pattern=""))
    assert (said.state, said.scope) == ("given", "once")
    assert not await stage.gate().is_granted(stage.context(), "")


async def test_a_no_is_not_remembered_as_a_yes_and_its_reason_is_kept(stage: Stage) -> None:
    stage.approver = Person(Decision("denied", "always", "use the staging database"))
    assert (await ask(stage)).reason == "use the staging database"
    assert not await stage.gate().is_granted(stage.context(), "npm test")


async def test_nobody_there_is_a_no(stage: Stage) -> None:
    assert (await ask(stage)).state == "denied"


class Slow(Person):
    """Answers yes when it is told to leave."""

    async def decide(self, asked: Approval) -> Decision:
        try:
            await anyio.sleep(60)
        finally:
            self.asked.append(asked)
        return self.answer


class Late(Person):
    """Lets five minutes pass, and says yes."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage

    async def decide(self, asked: Approval) -> Decision:
        self.stage.clock.advance(minutes=5, seconds=1)
        return await super().decide(asked)


class Broken:
    async def decide(self, _asked: Approval) -> Decision:
        raise RuntimeError("the screen is gone")


class Odd:
    async def decide(self, _asked: Approval) -> Decision:
        return Decision("yes", "for ever")  # type: ignore[arg-type] # what another program may send


class Asleep(OwnMemory):
    async def request(self, _principal: Principal, _asked: Approval) -> None:
        raise Unavailable("the database does not answer")


class AnsweredElsewhere(OwnMemory):
    async def decide(self, principal: Principal, asked: str, state: State, scope: Scope) -> bool:
        await super().decide(principal, asked, "denied", "once")
        return await super().decide(principal, asked, state, scope)


@pytest.mark.parametrize("approver", [Broken(), Odd()])
async def test_an_approver_that_fails_is_a_no(stage: Stage, approver: Approver) -> None:
    stage.approver = approver
    assert (await ask(stage)).state == "denied"


async def test_no_answer_in_time_is_a_no(stage: Stage) -> None:
    slow = Slow()
    gate = Gate(stage.memory, slow, stage.clock, patience=timedelta(milliseconds=20))
    said = await gate.ask(stage.context(), EFFECT, VERDICT)
    assert said.state == "expired"
    assert len(slow.asked) == 1


async def test_an_answer_after_five_minutes_is_a_no(stage: Stage) -> None:
    stage.approver = Late(stage)
    assert (await ask(stage)).state == "expired"
    assert not await stage.gate().is_granted(stage.context(), "npm test")


async def test_the_second_answer_does_not_count(stage: Stage) -> None:
    stage.memory, stage.approver = AnsweredElsewhere(), Person()
    assert (await ask(stage)).reason == "the question had its answer already"


async def test_a_memory_that_fails_is_a_no(stage: Stage) -> None:
    stage.memory, stage.approver = Asleep(), Person()
    assert (await ask(stage)).state == "denied"


async def test_an_interrupted_question_can_never_be_answered_with_yes(stage: Stage) -> None:
    memory = OwnMemory()
    stage.memory, stage.approver = memory, Slow()
    with anyio.move_on_after(0.02):
        await ask(stage)
    (name,) = memory._asked
    assert not await memory.decide(Principal.owner(), name, "given", "always")


async def test_questions_come_one_after_the_other(stage: Stage) -> None:
    now = 0

    class OneAtATime(Person):
        async def decide(self, asked: Approval) -> Decision:
            nonlocal now
            now += 1
            assert now == 1
            await anyio.lowlevel.checkpoint()
            now -= 1
            return await super().decide(asked)

    stage.approver = person = OneAtATime(Decision("given", "session"))
    gate = stage.gate()
    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(gate.ask, stage.context(), EFFECT, VERDICT)
    assert len(person.asked) == 1


@pytest.mark.parametrize(
    "odd", ["\x1b[2K", "\u202e", "\u200b", "\r", "\x00", "\u2028", "\udc80", "\u00a0", "\x9b", "\ufeff"]
)
def test_nothing_that_is_shown_can_deceive_the_eye(odd: str) -> None:
    for effect in (
        RunCommand(f"ls {odd} x", Path(f"/w{odd}")),
        WritePath(Path("/w/a"), f"text{odd}"),
        CallTool(f"t{odd}", odd),
    ):
        assert odd not in draw(effect)
        assert escaped(odd).startswith("\\")


def test_the_drawing_says_what_is_done_where_and_with_what() -> None:
    shown = draw(RunCommand("cat a | sh", Path("/w"), is_full=True))
    assert "OUTSIDE the sandbox" in shown
    assert "    cat a | sh\n" in shown
    assert "starts: cat, sh" in shown
    assert "cannot be said" in draw(RunCommand("$(x)", Path("/w")))
    assert "not shown" in draw(WritePath(Path("/w/a"), "x" * 20_000))


def test_text_of_a_model_cannot_pass_for_a_line_of_ours() -> None:
    lines = draw(RunCommand("ls\nin: /harmless\nstarts: ls", Path("/w"))).split("\n")
    assert [line for line in lines if line.startswith("in:")] == ["in: /w"]
