"""Asking from the command line: what is printed where, and with which exit code."""

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from tests.unit.cli.conftest import Shell

from hermes.testing.model_server import ModelServer
from hermes.testing.turn import Order, Say, call


@pytest.fixture
def model(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModelServer]:
    """A vendor on a thread of its own, as the command has this one."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr(sys, "stdin", None)
    server = ModelServer()
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server.opened()):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-fake")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        yield server


def test_one_question_prints_the_answer_alone(shell: Shell, model: ModelServer) -> None:
    model.add(call("write_file", path="a.txt", content="hello"), "written")
    assert shell("-z", "write it") == "written\n"
    assert shell.err == ""
    assert Path("a.txt").read_text() == "hello"


def test_progress_and_answer_go_different_ways(shell: Shell, model: ModelServer) -> None:
    model.add(call("terminal", command="echo one"), "done")
    assert shell("chat", "-q", "go") == "done\n"
    assert "runs echo one" in shell.err
    assert "2 model calls" in shell.err


def test_nothing_a_model_writes_is_an_order_to_the_terminal(shell: Shell, model: ModelServer) -> None:
    model.add(call("terminal", command="echo \x1b[2J"), "all \x1b]0;gone\x07 done")
    out = shell("chat", "-q", "go")
    assert "\x1b" not in shell.err
    # What is no terminal gets the answer as it is.
    assert out == "all \x1b]0;gone\x07 done\n"


def test_one_document_for_programs(shell: Shell, model: ModelServer) -> None:
    model.add("hi")
    told = json.loads(shell("-z", "hello", "--output-format", "json"))
    assert (told["state"], told["result"], told["num_turns"], told["error"]) == ("done", "hi", 1, None)
    assert told["usage"]["input_tokens"] == 100


def test_a_line_for_everything_that_happens(shell: Shell, model: ModelServer) -> None:
    model.add(call("todo", todos=[]), "hi there")
    lines = [json.loads(line) for line in shell("-z", "hello", "--output-format", "stream-json").splitlines()]
    types = [line["type"] for line in lines]
    assert (types[0], types[-1]) == ("session", "result")
    assert {"tool.progress", "text.delta"} < set(types)


def test_a_session_goes_on_by_id_title_and_as_the_latest(shell: Shell, model: ModelServer) -> None:
    model.add("one", "two", "three", "four")
    first = json.loads(shell("-z", "a", "--title", "My talk", "--output-format", "json"))["session_id"]
    for words in (["-r", first], ["-c", "my talk"], ["-c"]):
        assert json.loads(shell("-z", "b", *words, "--output-format", "json"))["session_id"] == first
    assert len(model.asked[-1].body["messages"]) == 8


def test_what_is_piped_in_is_read_with_the_question(
    shell: Shell, model: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "input").write_bytes(b"first line\nsecond \xff line\n")
    model.add("read")
    with io.TextIOWrapper((tmp_path / "input").open("rb")) as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        shell("-z", "what is this?")
    said = model.asked[0].body["messages"][-1]["content"]
    assert said.startswith("what is this?")
    assert "second \ufffd line" in said


def test_what_needs_an_approval_is_refused_and_said(shell: Shell, model: ModelServer, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    model.add(call("write_file", path=str(outside), content="x"), "I may not")
    assert shell("chat", "-q", "write outside") == "I may not\n"
    assert "refused by the rule" in shell.err
    assert not outside.exists()


def test_read_only_writes_nothing(shell: Shell, model: ModelServer) -> None:
    model.add(call("terminal", command="echo x > made.txt"), call("write_file", path="b.txt", content="x"), "no")
    shell("-z", "write", "--mode", "read-only")
    assert list(Path.cwd().iterdir()) == []


def test_a_session_goes_on_where_it_was(shell: Shell, model: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    model.add("one", call("write_file", path="a.txt", content="x"), "two")
    before = Path.cwd()
    shell("-z", "a", "--title", "mine")
    elsewhere = before.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    shell("-z", "b", "-c", "mine")
    assert (before / "a.txt").exists()
    assert str(before) in shell.err


def test_the_latest_session_is_that_of_the_folder(
    shell: Shell, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.add("one", "two", "three")
    here = json.loads(shell("-z", "a", "--output-format", "json"))["session_id"]
    elsewhere = Path.cwd().parent / "elsewhere"
    elsewhere.mkdir()
    shell("-z", "b", "--workspace", str(elsewhere))
    assert json.loads(shell("-z", "c", "-c", "--output-format", "json"))["session_id"] == here


def test_what_goes_wrong_before_anything_is_a_document_for_programs(shell: Shell, model: ModelServer) -> None:
    told = json.loads(shell("-z", "hi", "-r", "nobody", "--output-format", "json", code=5))
    assert (told["state"], told["error"]["type"]) == ("failed", "NotFound")


def test_a_command_that_fails_shows_how(shell: Shell, model: ModelServer) -> None:
    model.add(call("terminal", command="echo because; exit 3"), "it failed")
    shell("chat", "-q", "go")
    assert "↳ exit 3" in shell.err
    assert "↳ because" in shell.err


def test_only_the_tools_that_are_wanted_are_offered(shell: Shell, model: ModelServer) -> None:
    model.add("ok")
    shell("-z", "hi", "-t", "file,todo")
    names = {tool["function"]["name"] for tool in model.asked[0].body["tools"]}
    assert names == {"read_file", "write_file", "patch", "search_files", "todo"}


def test_each_failure_has_its_exit_code_and_one_line(
    shell: Shell, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
        shell("-z", "hi", code=4)
    assert len(shell.err.splitlines()) == 1
    assert "OPENAI_API_KEY" in shell.err
    shell("-z", "hi", "-r", "nobody", code=5)
    shell("-z", "hi", "-t", "nothing", code=5)
    shell("-z", "  ", code=3)
    shell("-z", "hi", "--budget", "much", code=2)
    model.add(*[Say(calls=(Order("todo", {"todos": [], "merge": bool(n % 2)}),)) for n in range(5)])
    shell("-z", "hi", "--max-turns", "2", code=9)


def test_without_a_model_one_line_says_what_to_set(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    shell("-z", "hi", code=3)
    assert "OPENROUTER_API_KEY" in shell.err
    assert len(shell.err.splitlines()) == 1


def test_the_log_beside_the_database_is_whole_json_after_each_turn(shell: Shell, model: ModelServer) -> None:
    model.add("one", "two")
    shell("-z", "a")
    shell("-z", "b", "-c")
    (path,) = (shell.home / "sessions").glob("session_*.json")
    told = json.loads(path.read_text())
    assert [m["content"] for m in told["messages"]] == ["a", "one", "b", "two"]
    assert told["session_key"] == "agent:main:cli:owner"


def test_sessions_are_listed_shown_searched_exported_undone_and_deleted(shell: Shell, model: ModelServer) -> None:
    model.add("the harbour is in the east")
    shell("-z", "where is the harbour?", "--title", "harbour")
    (listed,) = shell.json("sessions", "list")
    assert (listed["title"], listed["message_count"]) == ("harbour", 2)
    assert "the harbour is in the east" in shell("sessions", "show", "harbour")
    assert "»harbour«" in shell("sessions", "search", "harbour")
    lines = shell("sessions", "export", "harbour").splitlines()
    assert [json.loads(line).get("role") for line in lines] == [None, "user", "assistant"]
    shell("sessions", "branch", "harbour", "--title", "other")
    shell("sessions", "undo", "harbour")
    assert shell.json("sessions", "show", "harbour") == []
    assert len(shell.json("sessions", "show", "harbour", "--all")) == 2
    assert len(shell.json("sessions", "show", "other")) == 2
    assert shell.json("sessions", "usage", "harbour")["calls"] == 1
    shell("sessions", "rename", "harbour", "port")
    shell("sessions", "delete", "port", code=6)
    shell("sessions", "delete", "port", "other")
    assert not list((shell.home / "sessions").glob("session_*.json"))
    shell("sessions", "show", "port", code=5)
    assert "deleted 0 sessions" in shell("sessions", "prune", "--older", "1d")


@pytest.mark.parametrize(
    "arguments",
    ['{"path":"cut.txt","content":"only hal', '{"path":"cut.txt","content":"x"}{"path":"cut.txt","content":"y"}'],
)
def test_a_call_that_was_cut_off_changes_nothing(shell: Shell, model: ModelServer, arguments: str) -> None:
    Path("cut.txt").write_text("all of it")
    model.add(Say(calls=(Order("write_file", arguments),)), "sorry")
    shell("chat", "-q", "write")
    assert Path("cut.txt").read_text() == "all of it"


def test_full_mode_runs_commands_although_nobody_is_there(shell: Shell, model: ModelServer) -> None:
    model.add(call("terminal", command="echo out > ../outside.txt"), "done")
    shell("-z", "go", "--mode", "full")
    assert Path("../outside.txt").read_text() == "out\n"


def test_a_picture_is_known_by_what_is_in_it(shell: Shell, model: ModelServer) -> None:
    Path("a.png").write_text("no picture")
    shell("-z", "look", "--image", "a.png", code=3)
    assert "holds no picture" in shell.err
    Path("b.png").write_bytes(b"\xff\xd8\xff\xe0 and so on")
    model.add("seen")
    assert shell("-z", "look", "--image", "b.png") == "seen\n"
    assert "data:image/jpeg" in str(model.asked[-1])
