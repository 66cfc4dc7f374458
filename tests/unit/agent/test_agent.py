"""A turn of an assistant: what is stored, what the model is sent, and how it ends."""

import anyio
import pytest
from tests.unit.agent.conftest import OWNER, Desk

from hermes.agent.steering import Steering
from hermes.domain.errors import Conflict, Denied, LimitReached, Unavailable
from hermes.domain.message import Message, MessageId
from hermes.domain.model import Delta, Request
from hermes.effects.budget import Limits
from hermes.store import event as events
from hermes.store import run as runs
from hermes.store import session as sessions

pytestmark = pytest.mark.anyio


async def test_words_are_answered_and_both_are_stored(desk: Desk) -> None:
    ended = await desk.say("hello", "hi there")
    assert (ended.text, ended.ending.state, ended.ending.steps) == ("hi there", "done", 1)
    assert await desk.story() == ["user: hello", "assistant: hi there"]


async def test_tools_are_run_and_their_results_go_back(desk: Desk) -> None:
    ended = await desk.say("go", [("look", {"what": "a"}), ("do", {"what": "b"})], "done so")
    assert desk.done == ["look a", "do b"]
    assert await desk.story() == ["user: go", "assistant:", "tool: saw a", "tool: did b", "assistant: done so"]
    assert ended.ending.steps == 2
    assert b"saw a" in desk.script.sent[1]


async def test_a_run_tells_of_its_beginning_and_its_end_once(desk: Desk) -> None:
    ended = await desk.say("hello", "hi")
    told = await desk.world.store.read(lambda tx: events.after(tx, OWNER, 0, limit=100))
    ours = [(e.type, e.data.get("state")) for e in told if e.subject == ended.run and e.type.startswith("run.")]
    assert ours == [("run.started", None), ("run.ended", "done")]
    (run,) = await desk.world.store.read(lambda tx: runs.of_session(tx, OWNER, desk.session.id))
    assert (run.state, run.steps) == ("done", 1)


async def test_a_session_goes_on_in_another_process_with_the_same_bytes(desk: Desk) -> None:
    await desk.say("one", [("look", {"what": "a"})], "first")
    desk.agent = desk.make()
    await desk.say("two", "second")
    assert desk.script.sent[2].startswith(desk.script.sent[1])
    assert await desk.story() == [
        "user: one",
        "assistant:",
        "tool: saw a",
        "assistant: first",
        "user: two",
        "assistant: second",
    ]


async def test_what_is_ephemeral_is_read_and_stored_nowhere(desk: Desk) -> None:
    aside = desk.turn("aside").parts
    await desk.say("hello", "hi", ephemeral=(Message(MessageId("x"), "user", aside, desk.world.clock.now()),))
    await desk.say("again", "hi")
    assert b"aside" in desk.script.sent[0]
    assert b"aside" not in desk.script.sent[1]
    assert all("aside" not in line for line in await desk.story())


async def test_one_run_at_a_time_works_in_a_session(desk: Desk) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(desk.say, "go", [("wait", {"name": "a"})], "done")
        await desk.reached.wait()
        with pytest.raises(Conflict, match="busy"):
            await desk.agent.run(desk.turn("me too"))
        desk.gates["a"].set()
    assert await desk.story() == ["user: go", "assistant:", "tool: waited a", "assistant: done"]


async def test_an_interrupted_run_says_what_was_done_and_what_may_have_been(desk: Desk) -> None:
    steering = Steering()
    async with anyio.create_task_group() as group:
        orders = [("do", {"what": "x"}), ("wait", {"name": "a"}), ("do", {"what": "y"})]

        async def stop() -> None:
            await desk.reached.wait()
            steering.interrupt()

        group.start_soon(stop)
        ended = await desk.say("go", orders, steering=steering)
    assert (ended.ending.state, desk.done) == ("cancelled", ["do x", "wait a"])
    path = await desk.path()
    assert [(m.status, r.text.partition(":")[0]) for m in path for r in m.results] == [
        ("complete", "did x"),
        ("uncertain", "interrupted"),
        ("complete", "interrupted"),
    ]
    assert (await desk.say("go on", "yes")).text == "yes"


async def test_an_answer_that_was_cut_short_is_kept_as_far_as_it_came(desk: Desk) -> None:
    steering = Steering()

    async def slow(_: Request) -> str:
        desk.script.show(Delta("text", "Once upon"))
        steering.interrupt()
        await anyio.sleep_forever()
        return ""

    ended = await desk.say("tell", slow, steering=steering)
    assert (ended.ending.state, ended.text) == ("cancelled", "Once upon")
    assert [(m.role, m.text, m.status) for m in await desk.path()][-1] == ("assistant", "Once upon", "interrupted")
    assert (await desk.say("again", "told")).text == "told"


async def test_a_word_said_into_a_run_is_read_before_the_next_step(desk: Desk) -> None:
    steering = Steering()
    steering.steer("rather b")
    await desk.say("do a", [("do", {"what": "b"})], "done b", steering=steering)
    assert (await desk.story())[:2] == ["user: do a", "user: rather b"]


async def test_a_word_that_comes_with_the_answer_is_read_too(desk: Desk) -> None:
    steering = Steering()

    async def late(_: Request) -> str:
        steering.steer("one more")
        return "first"

    ended = await desk.say("go", late, "second", steering=steering)
    assert ended.text == "second"
    assert await desk.story() == ["user: go", "assistant: first", "user: one more", "assistant: second"]


async def test_an_error_of_the_model_ends_the_run_and_the_session_goes_on(desk: Desk) -> None:
    ended = await desk.say("hello", Denied("the key is refused"))
    assert isinstance(ended.error, Denied)
    assert (ended.ending.state, ended.ending.reason) == ("failed", "the key is refused")
    assert (await desk.say("again", "hi")).text == "hi"
    assert await desk.story() == ["user: hello", "user: again", "assistant: hi"]


async def test_an_empty_answer_is_asked_for_once_more_and_then_said(desk: Desk) -> None:
    assert (await desk.say("hello", "", "hi")).text == "hi"
    ended = await desk.say("hello", "", "")
    assert isinstance(ended.error, Unavailable)
    assert (await desk.sessions.usage(OWNER, desk.session.id)).calls == 4


async def test_what_was_said_with_an_order_is_not_said_twice_when_the_run_ends_after_it(desk: Desk) -> None:
    async def with_words(_: Request) -> list[tuple[str, object]]:
        desk.script.show(Delta("text", "Let me do that"))
        return [("do", {"what": "a"})]

    ended = await desk.say("go", with_words, limits=Limits(steps=1))
    assert isinstance(ended.error, LimitReached)
    assert [m.role for m in await desk.path()] == ["user", "assistant", "tool"]


async def test_a_run_that_uses_up_its_steps_ends_and_says_so(desk: Desk) -> None:
    orders = [[("do", {"what": str(n)})] for n in range(9)]
    ended = await desk.say("go", *orders, limits=Limits(steps=3))
    assert isinstance(ended.error, LimitReached)
    assert desk.done == ["do 0", "do 1", "do 2"]
    assert (await desk.path())[-1].role == "tool"


async def test_a_run_that_goes_in_circles_is_told_and_then_stopped(desk: Desk) -> None:
    ended = await desk.say("go", *([[("look", {"what": "same"})]] * 9))
    assert isinstance(ended.error, LimitReached)
    assert "circles" in str(ended.error)
    assert len(desk.done) == 5
    results = [part.text for message in await desk.path() for part in message.results]
    assert ["[notice] 'look' was called 3 times" in text for text in results] == [False, False, True, False, False]


async def test_what_happens_is_told_as_it_happens(desk: Desk) -> None:
    await desk.say("go", [("look", {"what": "a"})], "all well")
    told = [(e.type, e.data.get("state") or e.data.get("text")) for e in desk.events]
    assert told == [
        ("usage.progress", None),
        ("run.progress", "tool"),
        ("tool.progress", "began"),
        ("tool.progress", "ended"),
        ("text.delta", "all"),
        ("text.delta", "well"),
        ("usage.progress", None),
    ]
    used = [e.data for e in desk.events if e.type == "usage.progress"]
    assert used[0]["tokens"] < used[1]["tokens"]
    assert {one["window"] for one in used} == {desk.script.window}
    assert all(event.stream == f"session:{desk.session.id}" for event in desk.events)


async def test_another_model_or_other_tools_open_a_new_context(desk: Desk) -> None:
    await desk.say("one", "first")
    desk.script.model = "other"
    desk.agent = desk.make()
    await desk.say("two", "second")
    assert b"one" in desk.script.sent[1]
    assert not desk.script.sent[1].startswith(desk.script.sent[0])
    found = await desk.world.store.read(lambda tx: sessions.contexts(tx, OWNER, desk.session.id))
    assert [(one.number, one.why) for one in found] == [(1, "new"), (2, "model")]
