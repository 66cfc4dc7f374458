"""What each command does, on a real assistant."""

import contextlib
from pathlib import Path

import pytest
from tests.unit.commands.conftest import Desk

from hermes.agent.steering import Steering
from hermes.commands import CATALOGUE
from hermes.domain.errors import Conflict, HermesError, Misconfigured, NotFound, Unsupported
from hermes.domain.message import TextPart
from hermes.testing.turn import call

pytestmark = pytest.mark.anyio


async def test_new_resume_and_sessions_go_from_one_session_to_another(desk: Desk) -> None:
    await desk.order("/new the first")
    await desk.talk("hello", "hi")
    first = desk.seat.session.id
    await desk.order("/new")
    assert desk.seat.is_new
    await desk.talk("other", "things")
    listed = await desk.order("/sessions")
    assert listed.splitlines()[0].startswith("1* | other | 2 |")
    assert "2 | the first" in listed
    await desk.order("/resume 2")
    assert (desk.seat.session.id, desk.seat.is_new) == (first, False)
    assert [m.text for m in desk.replayed] == ["hello", "hi"]
    await desk.talk("more", "yes")
    assert [m["content"] for m in desk.model.asked[-1].body["messages"][1:]] == ["hello", "hi", "more"]
    with pytest.raises(NotFound):
        await desk.order("/resume 99")
    with pytest.raises(NotFound):
        await desk.order("/resume nobody")


async def test_undo_and_retry_go_back_and_ask_again(desk: Desk) -> None:
    await desk.talk("one", "first")
    await desk.talk("two", "second")
    assert "before 'two'" in await desk.order("/undo")
    await desk.talk("three", "third")
    await desk.order("/retry")
    assert list(desk.seat.waiting) == [(TextPart("three"),)]
    assert [m.text for m in await desk.assistant.sessions.path(desk.seat.principal, desk.seat.session.id)] == [
        "one",
        "first",
    ]
    with pytest.raises(Misconfigured, match="1 turns to go back"):
        await desk.order("/undo 5")
    with pytest.raises(Misconfigured, match="expected a number"):
        await desk.order("/undo many")


async def test_branch_title_history_and_search(desk: Desk) -> None:
    for line in ("/undo", "/retry", "/branch", "/compress", "/save"):
        with pytest.raises(Misconfigured, match="nothing was said"):
            await desk.order(line)
    await desk.talk("where is the harbour?", "in the east")
    await desk.order("/title ports  and ships")
    assert desk.seat.session.title == "ports and ships"
    before = desk.seat.session.id
    await desk.order("/branch elsewhere")
    assert desk.seat.session.id != before
    await desk.talk("and the light?", "in the west")
    await desk.order("/history")
    assert len(desk.replayed) == 4
    assert before in await desk.order("/search harbour")
    assert "nothing was found" in await desk.order("/search zeppelin")


async def test_rollback_brings_files_back(desk: Desk) -> None:
    file = desk.seat.workspace / "a.txt"
    file.write_text("old")
    assert "no checkpoint" in await desk.order("/rollback")
    desk.model.add(call("write_file", path="a.txt", content="new"))
    await desk.talk("change it", "done")
    assert file.read_text() == "new"
    assert "before the first change" in await desk.order("/rollback")
    assert "changed  a.txt" in await desk.order("/rollback 1 diff")
    assert "1 file brought back" in await desk.order("/rollback 1")
    assert file.read_text() == "old"


async def test_compress_leaves_short_talk_alone_and_says_so(desk: Desk) -> None:
    await desk.talk("one", "first")
    assert "as short as they can be" in await desk.order("/compress")
    assert not desk.seat.is_working


async def test_the_model_and_the_effort_change_for_the_next_turn(desk: Desk) -> None:
    await desk.order("/model openai/other-model")
    await desk.order("/reasoning hi")
    await desk.talk("hello", "hi")
    assert desk.model.asked[-1].body["model"] == "other-model"
    assert desk.model.asked[-1].body["reasoning_effort"] == "high"
    with pytest.raises(HermesError):
        await desk.order("/model custom/x")
    assert desk.assistant.model_name == "openai/other-model"
    with pytest.raises(Misconfigured):
        await desk.order("/reasoning deeply")


async def test_a_personality_is_read_by_the_model_and_stored_nowhere(desk: Desk) -> None:
    folder = desk.assistant.settings.home / "personalities"
    folder.mkdir(parents=True)
    (folder / "pirate.md").write_text("Speak as a pirate.")
    await desk.talk("hello", "hi")
    assert "pirate" in await desk.order("/personality")
    await desk.order("/personality pirate")
    await desk.talk("and now?", "arr")
    assert "Speak as a pirate." in desk.model.asked[-1].body["messages"][-1]["content"]
    stored = await desk.assistant.sessions.path(desk.seat.principal, desk.seat.session.id)
    assert "pirate" not in "".join(m.text for m in stored)
    await desk.order("/new")
    await desk.talk("hello", "arr")
    assert "Speak as a pirate." in desk.model.asked[-1].body["messages"][0]["content"]
    with pytest.raises(NotFound):
        await desk.order("/personality ../../etc/passwd")


async def test_mode_and_budget_hold_for_the_next_turn(desk: Desk) -> None:
    assert "write nothing" in await desk.order("/mode read")
    desk.model.add(call("write_file", path="a.txt", content="x"))
    await desk.talk("write", "I may not")
    assert not (desk.seat.workspace / "a.txt").exists()
    assert "$0.5000, 200,000 tokens" in await desk.order("/budget 0.50,200k")
    assert desk.seat.limits.cost == 500_000
    await desk.order("/budget none")
    assert desk.seat.limits.cost is None
    for line in ("/mode rw", "/budget much"):
        with pytest.raises(Misconfigured):
            await desk.order(line)


async def test_tools_are_switched_for_this_sitting(desk: Desk) -> None:
    assert "todo | todo | on" in await desk.order("/tools")
    await desk.order("/tools disable todo,terminal")
    assert "terminal | 0 of 2 on" in await desk.order("/toolsets")
    await desk.talk("hello", "hi")
    names = {tool["function"]["name"] for tool in desk.model.asked[-1].body["tools"]}
    assert "read_file" in names
    assert names.isdisjoint({"todo", "terminal"})
    await desk.order("/tools enable todo")
    assert "todo" in {one.name for one in desk.assistant.specs}
    with pytest.raises(NotFound):
        await desk.order("/tools enable magic")
    with pytest.raises(Misconfigured):
        await desk.order("/tools enable")


async def test_stop_queue_and_steer_go_to_the_run_that_goes_on(desk: Desk) -> None:
    assert await desk.order("/stop") == "nothing runs"
    desk.seat.steering = Steering()
    await desk.order("/queue later")
    assert "1. later" in await desk.order("/queue")
    await desk.order("/steer now")
    assert desk.seat.steering.take() == ["now"]
    assert "1 waiting message dropped" in await desk.order("/stop")
    assert desk.seat.steering.is_interrupted
    assert not desk.seat.waiting


async def test_words_that_the_model_did_not_read_wait_for_the_next_turn(desk: Desk) -> None:
    """The model has answered before it could look."""
    desk.model.add("one")
    seat = desk.seat
    run = desk.assistant.run

    async def run_and_steer(turn: object) -> object:
        ended = await run(turn)  # type: ignore[arg-type] # a turn
        seat.steering.steer("too late")  # type: ignore[union-attr] # it runs
        return ended

    desk.assistant.run = run_and_steer  # type: ignore[method-assign,assignment] # said in between
    await seat.take((TextPart("hello"),))
    assert list(seat.waiting) == [(TextPart("too late"),)]


async def test_status_usage_and_approvals_say_how_it_is(desk: Desk) -> None:
    assert "waits for you" in await desk.order("/status")
    await desk.talk("hello", "hi")
    said = await desk.order("/usage")
    assert "model calls  1" in said
    assert "tokens in    100" in said
    assert "nothing had to be asked" in await desk.order("/approvals")


async def test_how_it_looks_is_for_terminals(desk: Desk) -> None:
    mirror = desk.look
    assert mirror is not None
    await desk.order("/skin mono")
    await desk.order("/verbose all")
    await desk.order("/verbose")
    await desk.order("/busy q")
    await desk.order("/reasoning show")
    await desk.order("/clear")
    assert (mirror.skin, mirror.detail, mirror.busy) == ("mono", "off", "queue")
    assert mirror.shows_reasoning
    assert mirror.is_empty
    await desk.talk("hello", "hi *there*")
    await desk.order("/copy")
    assert mirror.copied == ["hi *there*"]
    desk.place, desk.look = "chat", None
    with pytest.raises(NotFound):
        await desk.order("/skin mono")
    with pytest.raises(Unsupported):
        await desk.order("/reasoning show")


async def test_save_writes_the_session_once(desk: Desk) -> None:
    await desk.talk("hello", "hi")
    await desk.order("/save talk.md")
    assert "hello" in (desk.seat.workspace / "talk.md").read_text()
    with pytest.raises(Misconfigured, match="exists already"):
        await desk.order("/save talk.md")
    with pytest.raises(Misconfigured, match="cannot be written"):
        await desk.order("/save /nowhere/at/all.md")


async def test_config_explains_and_sets_but_never_a_secret(desk: Desk) -> None:
    assert "How many jobs are done at once" in await desk.order("/config jobs.workers")
    await desk.order("/config jobs.workers 3")
    assert "workers: 3" in (desk.assistant.settings.home / "config.yaml").read_text()
    with pytest.raises(Unsupported):
        await desk.order("/config model.api_key sk-1234567890")
    with pytest.raises(NotFound):
        await desk.order("/config nothing")
    assert "sk-fake" not in await desk.order("/config")


async def test_help_shows_all_or_one(desk: Desk) -> None:
    said = await desk.order("/help")
    for one in CATALOGUE.at("terminal").commands:
        assert f"/{one.name}" in said
    assert "/title [title]" in await desk.order("/help title")
    with pytest.raises(Conflict):
        await desk.order("/help st")
    await desk.order("/quit")
    assert desk.is_closed


async def test_terminal_says_where_commands_run(desk: Desk, tmp_path: Path) -> None:
    assert str(desk.seat.workspace) in await desk.order("/terminal")
    assert "ended 0 background processes" in await desk.order("/terminal stop")


async def test_nonsense_is_refused_in_one_line(desk: Desk) -> None:
    """Whatever follows a command, it is done or refused with a word to the person; nothing else is raised."""
    nonsense = ("", "0", "-1", "99999999999999999999", "\x1b[2J", "a b c", "'", "../..", "\ud800", "x" * 5_000)
    for one in CATALOGUE.commands:
        for rest in nonsense:
            if one.name == "config" and " " in rest:
                continue
            with contextlib.suppress(HermesError):
                await desk.order(f"/{one.name} {rest}")
