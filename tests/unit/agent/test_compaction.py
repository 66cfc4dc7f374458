"""A conversation that grows too long: what stays, what is summarised, and what can always be had again."""

import pytest
from tests.unit.agent.conftest import OWNER, Desk, MakeDesk

from hermes.agent.compaction import Terms
from hermes.agent.recall import recall as remembering
from hermes.agent.summary import MARK
from hermes.domain.errors import Unavailable
from hermes.domain.model import ContextOverflow
from hermes.store import session as sessions

pytestmark = pytest.mark.anyio
LONG = "lorem ipsum " * 400


async def filled(desk: Desk, turns: int) -> None:
    for number in range(turns):
        await desk.say(f"question {number}", f"answer {number} {LONG}")


async def test_a_long_conversation_is_summarised_and_its_ends_stay(make_desk: MakeDesk) -> None:
    async with make_desk(compaction=Terms(threshold=0.2, first=2, last=4)) as desk:
        desk.script.window = 40_000
        await filled(desk, 7)
        await desk.say("the last question", "## Goal\nto be summarised", "the last answer")
        story = await desk.story()
        assert story[0] == "user: question 0"
        assert any(MARK in line and "to be summarised" in line for line in story)
        assert story[-2:] == ["user: the last question", "assistant: the last answer"]
        assert not any("question 2" in line for line in story)
        whole = await desk.sessions.said(OWNER, desk.session.id)
        assert [m.text for m in whole if m.role == "user"] == [
            *(f"question {n}" for n in range(7)),
            "the last question",
        ]


async def test_when_no_summary_can_be_had_nothing_is_left_out(make_desk: MakeDesk) -> None:
    async with make_desk(compaction=Terms(threshold=0.2, first=2, last=4)) as desk:
        desk.script.window = 40_000
        await filled(desk, 7)
        ended = await desk.say("go", Unavailable("down"), "the answer")
        assert ended.text == "the answer"
        assert len([line for line in await desk.story() if line.startswith("user: question")]) == 7
        assert any("nothing was left out" in str(e.data.get("text")) for e in desk.events)


async def test_a_model_that_refuses_the_length_gets_less_even_without_a_summary(make_desk: MakeDesk) -> None:
    async with make_desk(compaction=Terms(threshold=0.9, first=2, last=4, tail=0.05)) as desk:
        desk.script.window = 40_000
        await filled(desk, 7)
        ended = await desk.say("go", ContextOverflow("too long"), Unavailable("down"), "the answer")
        assert ended.text == "the answer"
        assert any("No summary could be written" in line for line in await desk.story())


async def test_long_old_results_become_pointers_first(make_desk: MakeDesk) -> None:
    async with make_desk(compaction=Terms(threshold=0.3)) as desk:
        desk.script.window = 20_000
        for number in range(9):
            await desk.say(f"q{number}", [("look", {"what": str(number), "size": 4000})], f"a{number}")
        pointed = [r.text for m in await desk.path() for r in m.results if "recall(id=" in r.text]
        assert pointed
        name = pointed[0].partition('recall(id="')[2].partition('"')[0]
        whole = await desk.sessions.said(OWNER, desk.session.id)
        assert any(m.id == name and len(m.results[0].text) > 3000 for m in whole)
        assert not any(MARK in line for line in await desk.story())


async def test_each_context_knows_why_it_was_opened(make_desk: MakeDesk) -> None:
    async with make_desk(compaction=Terms(threshold=0.2, first=2, last=4)) as desk:
        desk.script.window = 40_000
        await filled(desk, 7)
        await desk.say("more", "a summary", "answer")
        found = await desk.world.store.read(lambda tx: sessions.contexts(tx, OWNER, desk.session.id))
        assert [one.why for one in found] == ["new", "compaction"]
        desk.agent = desk.make()
        await desk.say("and after a restart", "yes")
        assert desk.script.sent[-1].startswith(desk.script.sent[-2])


async def test_what_the_user_asked_last_stays_word_for_word(make_desk: MakeDesk) -> None:
    async with make_desk(compaction=Terms(threshold=0.2, first=1, last=2)) as desk:
        desk.script.window = 30_000
        await desk.say("first", "ok")
        looks = [[("do", {"what": f"{n} {LONG}"})] for n in range(9)]
        says = [*looks[:6], "a summary that forgets", *looks[6:], "done"]
        await desk.say("count the exact words: αβγ 12345", *says)
        story = "\n".join(await desk.story())
        assert "count the exact words: αβγ 12345" in story


async def test_facts_of_a_long_talk_can_be_had_after_three_compactions(make_desk: MakeDesk) -> None:
    """Twenty facts in four hundred messages; the model that summarises forgets them all."""
    async with make_desk(compaction=Terms(threshold=0.2, first=1, last=4)) as desk:
        desk.script.window = 60_000
        facts = {f"cellar{n}": f"code K-{n * 7919 % 10_000:04d}" for n in range(20)}
        said = iter(facts.items())
        for number in range(200):
            text = f"chat {number}: {LONG[:1200]}"
            if number % 10 == 5:
                place, code = next(said)
                text += f" The {place} has the {code}."
            await desk.say(text, *["well"] * 3)
        await desk.say("my very last question: Ω?", *["answer"] * 3)
        found = await desk.world.store.read(lambda tx: sessions.contexts(tx, OWNER, desk.session.id))
        assert [one.why for one in found].count("compaction") >= 3
        whole = await desk.sessions.said(OWNER, desk.session.id)
        assert len(whole) >= 400
        story = "\n".join(await desk.story())
        assert "my very last question: Ω?" in story
        recall = next(one for one in remembering(desk.sessions).tools() if one.spec.name == "recall")
        context = await desk.context()
        got = 0
        for place, code in facts.items():
            answer = await recall.call(recall.plan({"query": place}, context), context)
            got += code in answer.text  # type: ignore[union-attr] # a result
        print(f"{len(found) - 1} compactions, {len(whole)} messages, {got} of 20 facts")
        assert got >= 18


async def test_a_person_can_have_it_shorter_before_it_is_long(make_desk: MakeDesk) -> None:
    async with make_desk(compaction=Terms(first=2, last=4)) as desk:
        await filled(desk, 7)
        desk.script.says.append("## Goal\nto be summarised")
        ended = await desk.agent.compact(desk.turn(""))
        assert ended.error is None
        assert "became" in (ended.ending.reason or "")
        await desk.say("and now?", "well")
        story = await desk.story()
        assert any(MARK in line and "to be summarised" in line for line in story)
        assert not any("question 3" in line for line in story)
        assert story[-2:] == ["user: and now?", "assistant: well"]


async def test_what_is_short_already_stays_as_it_is(desk: Desk) -> None:
    await desk.say("hello", "hi")
    ended = await desk.agent.compact(desk.turn(""))
    assert "as short as" in (ended.ending.reason or "")
    assert await desk.story() == ["user: hello", "assistant: hi"]
    assert len(desk.script.sent) == 1
