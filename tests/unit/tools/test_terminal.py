"""The tools `terminal` and `process`, on this machine."""

import json
from datetime import timedelta

import anyio
import pytest
from tests.unit.tools.conftest import Hand, Person

from hermes.domain.approval import Decision
from hermes.domain.session import SessionId

pytestmark = pytest.mark.anyio


async def until_ended(hand: Hand, process: object) -> None:
    await hand.machine.wait(str(process), timedelta(seconds=20))


async def until_printed(hand: Hand, process: object, text: str) -> None:
    with anyio.fail_after(20):
        while text not in str((await hand("process", action="poll", session_id=process))["output"]):  # noqa: ASYNC110 - the machine has no bell
            await anyio.sleep(0.01)


async def test_both_outputs_come_with_the_exit_code(hand: Hand) -> None:
    done = await hand("terminal", command="echo one; echo two >&2; exit 3")
    assert done == {"output": "one\ntwo\n", "exit_code": 3}


async def test_directory_and_exported_variables_stay_and_a_workdir_counts(hand: Hand) -> None:
    await hand("terminal", command="mkdir -p a/b; cd a; export COLOUR=red")
    assert (await hand("terminal", command="pwd; echo $COLOUR"))["output"] == f"{hand.workspace}/a\nred\n"
    assert (await hand("terminal", command="pwd", workdir="a/b"))["output"] == f"{hand.workspace}/a/b\n"
    assert (await hand("terminal", command="pwd"))["output"] == f"{hand.workspace}/a/b\n"


async def test_colours_and_redrawn_lines_are_taken_out(hand: Hand) -> None:
    done = await hand("terminal", command=r"printf '\033[31mred\033[0m\n10%%\r50%%\r100%%\nend'")
    assert done["output"] == "red\n100%\nend"


async def test_a_command_that_takes_too_long_is_ended_and_says_what_to_do(hand: Hand) -> None:
    done = await hand("terminal", command="echo begun; sleep 60", timeout=1)
    assert str(done["output"]).startswith("begun\n")
    assert "background" in str(done["error"])


async def test_much_output_shows_both_ends_and_all_of_it_can_be_read(hand: Hand) -> None:
    done = await hand("terminal", command="seq 200000")
    output = str(done["output"])
    assert output.startswith("1\n2\n")
    assert output.endswith("199999\n200000\n")
    assert len(output) < 50_000
    path = output.partition("read_file ")[2].split()[0]
    assert (await hand("read_file", path=path, offset=100_000, limit=1))["content"] == "100000|100000"
    assert "refused" in str((await hand("write_file", path=path, content="x"))["error"])


async def test_many_short_lines_are_cut_and_kept_too(hand: Hand) -> None:
    done = await hand("terminal", command="yes a | head -n 5000")
    output = str(done["output"])
    assert output.count("\n") < 2_000
    path = output.partition("read_file ")[2].split()[0]
    assert (await hand("read_file", path=path, offset=4_000, limit=1))["total_lines"] == 5_000


@pytest.mark.parametrize("wrong", ["", "   ", "a\0b"])
async def test_what_is_no_command_is_told_of(hand: Hand, wrong: str) -> None:
    assert "no command" in str((await hand("terminal", command=wrong))["error"])


async def test_a_background_process_is_listed_read_written_to_and_ended(hand: Hand) -> None:
    started = await hand("terminal", command="echo ready; read line; echo got $line; read more", background=True)
    name = started["session_id"]
    assert [one["session_id"] for one in (await hand("process", action="list"))["processes"]] == [name]  # type: ignore[attr-defined]
    await hand("process", action="submit", session_id=name, data="hello")
    await until_printed(hand, name, "got hello")
    page = await hand("process", action="log", session_id=name, offset=6, limit=3)
    assert (page["output"], page["next_offset"]) == ("got", 9)
    done = await hand("process", action="kill", session_id=name)
    assert done["status"] == "exited"


async def test_waiting_ends_with_the_process_or_with_the_time(hand: Hand) -> None:
    slow = (await hand("terminal", command="sleep 61.5", background=True))["session_id"]
    quick = (await hand("terminal", command="echo done; exit 4", background=True))["session_id"]
    assert (await hand("process", action="wait", session_id=slow, timeout=1))["status"] == "running"
    done = await hand("process", action="wait", session_id=quick)
    assert (done["exit_code"], done["output"]) == (4, "done\n")


async def test_a_process_of_another_session_is_none(hand: Hand) -> None:
    name = (await hand("terminal", command="sleep 61.5", background=True))["session_id"]
    hand.session = "other"
    for action in ("poll", "log", "write", "close", "kill", "wait"):
        assert "no background process" in str((await hand("process", action=action, session_id=name))["error"])
    assert "needs the session_id" in str((await hand("process", action="poll"))["error"])


async def test_what_a_background_process_says_reaches_the_next_step(hand: Hand) -> None:
    started = await hand(
        "terminal",
        command="for n in 1 2 3; do echo line $n; done; echo ERROR here; exit 2",
        background=True,
        notify_on_complete=True,
        watch_patterns="ERROR",
    )
    await until_ended(hand, started["session_id"])
    told = await hand.parts.notices.drain(SessionId("s"))
    assert [text.partition(str(started["session_id"]))[2].split(":")[0] for text in told] == [
        " printed",
        " ended with exit code 2 after 0 s",
    ]
    assert "ERROR here" in told[0]
    assert await hand.parts.notices.drain(SessionId("s")) == []


async def test_a_noisy_process_is_watched_no_longer(hand: Hand) -> None:
    started = await hand("terminal", command="yes match | head -n 500", background=True, watch_patterns=["match"])
    await until_ended(hand, started["session_id"])
    told = await hand.parts.notices.drain(SessionId("s"))
    assert len(told) == 9
    assert "no longer watched" in told[-1]


async def test_an_idle_session_is_told_by_whoever_runs_the_notices(hand: Hand) -> None:
    heard: list[tuple[str, list[str]]] = []

    async def deliver(session: SessionId, texts: list[str]) -> None:
        heard.append((session, texts))
        group.cancel_scope.cancel()

    await hand("terminal", command="exit 0", background=True, notify_on_complete=True)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            await hand.parts.notices.run(deliver, every=timedelta(milliseconds=5))
    assert heard[0][0] == "s"


async def test_stopping_a_session_ends_its_processes_and_forgets_its_notices(hand: Hand) -> None:
    await hand("terminal", command="sleep 61.5", background=True, notify_on_complete=True)
    await hand("terminal", command="sleep 61.5", background=True)
    assert await hand.parts.stop(hand.machine, SessionId("s")) == 2
    assert (await hand("process", action="list"))["processes"] == []
    assert await hand.parts.notices.drain(SessionId("s")) == []


async def test_outside_the_sandbox_only_with_a_person_s_yes(hand: Hand) -> None:
    assert "'full-access'" in str((await hand("terminal", command="id -u", full_access=True))["error"])
    person = Person(Decision("denied", reason="not today"))
    hand.approver = person
    assert "not today" in str((await hand("terminal", command="id -u", full_access=True))["error"])
    person.answer = Decision("given")
    assert (await hand("terminal", command="id -u", full_access=True))["exit_code"] == 0
    assert "OUTSIDE the sandbox" in person.asked[-1].shown


async def test_what_nothing_holds_is_not_written_to_without_a_question(hand: Hand) -> None:
    hand.approver = person = Person(Decision("given", "always"))
    name = (await hand("terminal", command="cat", background=True, full_access=True))["session_id"]
    for _ in range(2):
        await hand("process", action="submit", session_id=name, data="hello")
    assert len(person.asked) == 3
    assert "    hello" in person.asked[-1].shown
    assert person.asked[-1].pattern == ""
    person.answer = Decision("denied")
    refused = await hand("process", action="submit", session_id=name, data="rm -rf /")
    assert "'full-access'" in str(refused["error"])
    assert (await hand("process", action="kill", session_id=name))["status"] == "exited"


async def test_whoever_looks_on_sees_what_is_run(hand: Hand) -> None:
    await hand("terminal", command="echo \x1b[2J hidden")
    assert hand.lines == ["$ echo \\x1b[2J hidden"]


async def test_hidden_half_characters_of_an_output_reach_the_model_as_json(hand: Hand) -> None:
    (done,) = await hand.perform(("terminal", {"command": r"printf '\377\xed\xa0\x80ok'"}))
    assert json.loads(done.result.text)["output"].endswith("ok")
    done.result.text.encode()


async def test_what_ends_with_the_run_and_is_reached_from_inside_only_is_said(hand: Hand) -> None:
    said = str((await hand("terminal", command="sleep 5", background=True))["note"])
    assert "it ends when you have given your final answer" in said
    assert ("commands of this session only" in said) == (hand.machine.protection == "sandbox")


async def test_where_sessions_last_nothing_is_said_to_end(hand: Hand) -> None:
    hand.is_lasting = True
    assert "final answer" not in str(await hand("terminal", command="sleep 5", background=True))
