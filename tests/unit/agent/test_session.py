"""What people do with sessions: go on, go back, branch, name, forget, search."""

from datetime import timedelta

import anyio
import pytest
from tests.unit.agent.conftest import OWNER, Desk

from hermes.agent.steering import Steering
from hermes.domain.errors import Conflict, Misconfigured, NotFound
from hermes.domain.message import TextPart
from hermes.domain.model import Delta, Request
from hermes.domain.principal import Principal, Tenant
from hermes.domain.session import Session

pytestmark = pytest.mark.anyio


async def test_a_step_back_takes_a_turn_out_of_sight_and_deletes_nothing(desk: Desk) -> None:
    await desk.say("one", "first")
    await desk.say("two", [("look", {"what": "a"})], "second")
    undone = await desk.sessions.undo(OWNER, desk.session.id)
    assert (undone.parts, undone.count) == ((TextPart("two"),), 4)
    assert await desk.story() == ["user: one", "assistant: first"]
    assert len(await desk.sessions.said(OWNER, desk.session.id)) == 6
    await desk.say("three", "third")
    assert b"two" not in desk.script.sent[-1]
    assert desk.script.sent[-1].startswith(desk.script.sent[0])


async def test_no_further_back_than_there_are_turns(desk: Desk) -> None:
    await desk.say("one", "first")
    with pytest.raises(Misconfigured, match="1 turns to go back"):
        await desk.sessions.undo(OWNER, desk.session.id, 2)
    await desk.sessions.undo(OWNER, desk.session.id)
    assert await desk.story() == []
    assert (await desk.say("anew", "yes")).text == "yes"


async def test_branches_go_their_own_ways(desk: Desk) -> None:
    await desk.say("one", "first")
    trunk = desk.session
    branch = await desk.sessions.branch(OWNER, trunk.id, title="another way")
    desk.session = branch
    await desk.say("two", "on the branch")
    desk.session = trunk
    await desk.say("two", "on the trunk")
    assert (await desk.story())[-1] == "assistant: on the trunk"
    desk.session = branch
    assert await desk.story() == ["user: one", "assistant: first", "user: two", "assistant: on the branch"]
    assert desk.script.sent[1].startswith(desk.script.sent[0])
    assert branch.parent == trunk.id


async def test_sessions_are_found_by_id_title_and_beginnings(desk: Desk) -> None:
    await desk.say("one", "first")
    await desk.sessions.rename(OWNER, desk.session.id, "My  project")
    for word in (desk.session.id, "My project", "my pro", desk.session.id[:12]):
        assert (await desk.sessions.find(OWNER, word)).id == desk.session.id
    assert (await desk.sessions.latest(OWNER)).id == desk.session.id
    with pytest.raises(NotFound, match="sessions list"):
        await desk.sessions.find(OWNER, "nothing")
    with pytest.raises(NotFound):
        await desk.sessions.find(Principal.owner(Tenant("else")), desk.session.id)


async def test_a_word_that_may_be_several_sessions_is_refused(desk: Desk) -> None:
    await desk.say("one", "first")
    first = desk.session
    desk.world.clock.advance(1)
    desk.session, desk.is_new = desk.sessions.make(OWNER, source="test", workspace=desk.workspace), True
    await desk.say("two", "second")
    with pytest.raises(Conflict, match="say more"):
        await desk.sessions.find(OWNER, first.id[:8])


async def test_what_is_forgotten_is_gone_and_the_ledger_stays(desk: Desk) -> None:
    await desk.say("one", "first")
    before = await desk.sessions.usage(OWNER, desk.session.id)
    assert await desk.sessions.delete(OWNER, desk.session.id) == 2
    assert await desk.sessions.said(OWNER, desk.session.id) == []
    assert await desk.sessions.usage(OWNER, desk.session.id) == before
    with pytest.raises(NotFound):
        await desk.sessions.delete(OWNER, desk.session.id)


async def test_only_quiet_sessions_are_pruned(desk: Desk) -> None:
    await desk.say("one", "first")
    old = desk.session
    desk.world.clock.advance(hours=3)
    desk.session, desk.is_new = desk.sessions.make(OWNER, source="test", workspace=desk.workspace), True
    await desk.say("two", "second")
    assert await desk.sessions.prune(OWNER, timedelta(hours=2)) == [old.id]
    left: list[Session] = await desk.sessions.recent(OWNER)
    assert [one.id for one in left] == [desk.session.id]
    assert old.id != desk.session.id


async def test_what_was_said_is_found_again_with_its_place(desk: Desk) -> None:
    await desk.say("where is the harbour of Kiel?", "The harbour lies in the east.")
    (hit, *_) = await desk.sessions.search(OWNER, '"harbour of"')
    assert (hit.session, "»harbour of«" in hit.snippet) == (desk.session.id, True)
    assert await desk.sessions.search(OWNER, "lighthouse") == []
    assert len(await desk.sessions.search(OWNER, "harb*")) == 2


async def test_every_call_is_in_the_ledger(desk: Desk) -> None:
    await desk.say("one", [("look", {"what": "a"})], "first")
    total = await desk.sessions.usage(OWNER, desk.session.id)
    assert total.calls == 2
    assert total.cost == total.usage.input > 0


async def test_what_others_go_on_from_is_not_forgotten_under_them(desk: Desk) -> None:
    await desk.say("one", "first")
    branch = await desk.sessions.branch(OWNER, desk.session.id)
    with pytest.raises(Conflict, match=branch.id):
        await desk.sessions.delete(OWNER, desk.session.id)
    whole, gone = await desk.sessions.whole(OWNER, branch.id)
    assert ([m.text for m in whole], gone) == (["one", "first"], set())
    await desk.sessions.rename(OWNER, branch.id, "kept")
    assert await desk.sessions.prune(OWNER, timedelta(0)) == []


async def test_what_was_gone_back_from_is_named(desk: Desk) -> None:
    await desk.say("one", "first")
    await desk.say("two", "second")
    await desk.sessions.undo(OWNER, desk.session.id)
    whole, gone = await desk.sessions.whole(OWNER, desk.session.id)
    assert [m.text for m in whole if m.id in gone] == ["two", "second"]


async def test_a_session_that_moves_has_a_prefix_that_says_so(desk: Desk) -> None:
    await desk.say("one", "first")
    elsewhere = desk.workspace.parent / "elsewhere"
    elsewhere.mkdir()
    moved = await desk.sessions.find(OWNER, desk.session.id)
    await desk.say("two", "second", session=moved, workspace=elsewhere)
    assert str(elsewhere).encode() in desk.script.sent[-1]
    assert (await desk.sessions.find(OWNER, desk.session.id)).workspace == str(elsewhere)


async def test_where_nothing_is_left_to_do_nothing_is_asked(desk: Desk) -> None:
    await desk.say("one", "first")
    with pytest.raises(Misconfigured, match="say something"):
        await desk.say("")


async def test_an_answer_that_broke_off_is_not_free(desk: Desk) -> None:
    steering = Steering()

    async def slow(_: Request) -> str:
        desk.script.show(Delta("text", "Once upon a time"))
        steering.interrupt()
        await anyio.sleep_forever()
        return ""

    ended = await desk.say("tell", slow, steering=steering)
    assert ended.usage.output > 0
    total = await desk.sessions.usage(OWNER, desk.session.id)
    assert total.calls == 1
    assert total.usage.input > 0
