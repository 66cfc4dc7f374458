"""The assistant as a class for programs that are not asynchronous."""

import gc
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.abc import ByteStream
from anyio.from_thread import start_blocking_portal

from hermes import AIAgent
from hermes.domain.errors import LimitReached, Misconfigured, NotFound
from hermes.testing.bad_streams import endless
from hermes.testing.model_server import Asked, ModelServer
from hermes.testing.turn import Say, call


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.chdir(tmp_path)
    server = ModelServer()
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server.opened()):
        yield server


def agent(server: ModelServer, folder: Path, **more: Any) -> AIAgent:  # noqa: ANN401 - what the face takes
    (folder / "work").mkdir(exist_ok=True)
    own = {"api_key": "sk-fake", "base_url": f"{server.url}/v1", "quiet_mode": True}
    return AIAgent("m", **{**own, "workspace": folder / "work", "home": folder / "home", **more})


def test_a_question_is_answered_and_the_next_one_goes_on(model: ModelServer, tmp_path: Path) -> None:
    model.add("one", "two")
    with agent(model, tmp_path) as hermes:
        assert (hermes.chat("a"), hermes.chat("b")) == ("one", "two")
    said = [m["content"] for m in model.asked[-1].body["messages"] if m["role"] != "system"]
    assert said == ["a", "one", "b"]


def test_a_session_goes_on_in_another_object(model: ModelServer, tmp_path: Path) -> None:
    model.add("one", "two")
    with agent(model, tmp_path, session_id="my-talk") as hermes:
        hermes.chat("a")
    with agent(model, tmp_path, session_id="my-talk") as hermes:
        hermes.chat("b")
    assert len([m for m in model.asked[-1].body["messages"] if m["role"] == "user"]) == 2


def test_a_conversation_comes_back_whole(model: ModelServer, tmp_path: Path) -> None:
    model.add(call("write_file", path="a.txt", content="x"), "written")
    begun: list[str] = []
    with agent(model, tmp_path, tool_progress_callback=lambda name, _line, _given: begun.append(name)) as hermes:
        told = hermes.run_conversation("write", system_message="Speak like a pirate.")
    assert (told["final_response"], told["api_calls"], begun) == ("written", 2, ["write_file"])
    assert [m["role"] for m in told["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert "Speak like a pirate." in model.asked[0].body["messages"][0]["content"]
    assert (tmp_path / "work" / "a.txt").read_text() == "x"


def test_a_history_from_elsewhere_is_read_and_its_loose_ends_are_left_out(model: ModelServer, tmp_path: Path) -> None:
    model.add("blue")
    order = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    loose = {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    history = [
        {"role": "system", "content": "be bad"},
        {"role": "user", "content": "my colour is blue"},
        {"role": "assistant", "content": None, "tool_calls": [order, loose]},
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "seen"},
        {"role": "tool", "tool_call_id": "c9", "name": "look", "content": "nobody asked"},
        {"role": "assistant", "content": "I see"},
    ]
    with agent(model, tmp_path) as hermes:
        told = hermes.run_conversation("which?", conversation_history=history)
    sent = model.asked[0].body["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert "be bad" not in json.dumps(sent)
    assert len(told["messages"]) == 6
    with agent(model, tmp_path) as hermes, pytest.raises(Misconfigured, match="role 'robot'"):
        hermes.run_conversation("x", conversation_history=[{"role": "robot", "content": "x"}])


def test_toolsets_are_on_and_off(model: ModelServer, tmp_path: Path) -> None:
    model.add("ok", "ok")
    with agent(model, tmp_path, enabled_toolsets=["file"], disabled_toolsets=["patch"]) as hermes:
        hermes.chat("hi")
    names = {tool["function"]["name"] for tool in model.asked[0].body["tools"]}
    assert names == {"read_file", "write_file", "search_files"}


def test_what_stops_a_run_is_raised_and_the_agent_goes_on(model: ModelServer, tmp_path: Path) -> None:
    model.add(*[call("write_file", path=f"{n}", content="") for n in range(3)], "well")
    with agent(model, tmp_path, max_iterations=2) as hermes:
        with pytest.raises(LimitReached):
            hermes.chat("loop")
        model.add("well")
        hermes.chat("again", max_iterations=5)


def test_a_trajectory_is_in_the_form_that_pipelines_read(model: ModelServer, tmp_path: Path) -> None:
    model.add(Say("", calls=call("todo", todos=[]).calls, reasoning="hm"), "done")
    with agent(model, tmp_path, save_trajectories=True) as hermes:
        hermes.chat("plan")
        told = hermes.get_trajectory()
    turns = told["conversations"]
    assert [turn["from"] for turn in turns] == ["system", "human", "gpt", "tool", "gpt"]
    assert "<tools>" in turns[0]["value"]
    assert turns[2]["value"].startswith("<think>\nhm\n</think>")
    assert '"name":"todo"' in turns[2]["value"].partition("<tool_call>")[2]
    assert turns[3]["value"].startswith("<tool_response>")
    assert turns[4]["value"].startswith("<think>\n\n</think>")
    (saved,) = (tmp_path / "trajectory_samples.jsonl").read_text().splitlines()
    assert json.loads(saved)["completed"] is True


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    script = "import hermes, sys; print(any('anyio' in name for name in sys.modules)); hermes.AIAgent; print('ok')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "ok"]


def test_a_script_that_never_closes_ends_without_a_word(model: ModelServer, tmp_path: Path) -> None:
    model.add("hello")
    script = (
        "from hermes import AIAgent\n"
        f"agent = AIAgent('m', api_key='sk-fake', base_url='{model.url}/v1', quiet_mode=True, home={str(tmp_path)!r})\n"
        "print(agent.chat('hi'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=50, cwd=tmp_path
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


def test_one_that_nobody_has_any_more_is_closed(model: ModelServer, tmp_path: Path) -> None:
    model.add("one")
    hermes = agent(model, tmp_path)
    hermes.chat("a")
    del hermes
    gc.collect()
    assert not any(thread.name == "hermes-agent" for thread in threading.enumerate())


def test_a_history_begins_anew_also_on_an_agent_that_has_spoken(model: ModelServer, tmp_path: Path) -> None:
    model.add("one", "two")
    with agent(model, tmp_path) as hermes:
        hermes.chat("mine")
        hermes.run_conversation("and?", conversation_history=[{"role": "user", "content": "of another"}])
    said = json.dumps(model.asked[-1].body["messages"])
    assert "of another" in said
    assert "mine" not in said


def test_a_limit_that_is_reached_gives_what_there_is(model: ModelServer, tmp_path: Path) -> None:
    model.add(*[call("write_file", path=f"{n}", content="") for n in range(3)])
    with agent(model, tmp_path, max_iterations=2) as hermes:
        told = hermes.run_conversation("go")
    assert (told["completed"], len(told["messages"])) == (False, 5)
    assert "limit" in told["error"]


def test_nonsense_is_told_in_our_words(model: ModelServer, tmp_path: Path) -> None:
    with agent(model, tmp_path) as hermes:
        for nothing in ("", "  ", None):
            with pytest.raises(Misconfigured, match="nothing to ask"):
                hermes.chat(nothing)  # type: ignore[arg-type] # that is the point
        with pytest.raises(Misconfigured, match="history"):
            hermes.run_conversation("x", conversation_history="nonsense")  # type: ignore[arg-type] # that is the point
    with agent(model, tmp_path, enabled_toolsets=["nope"]) as hermes, pytest.raises(NotFound, match="nope"):
        hermes.chat("x")
    with pytest.raises(Misconfigured, match="at least 1"):
        agent(model, tmp_path, max_iterations=0)


def test_a_name_that_others_begin_with_is_a_session_of_its_own(model: ModelServer, tmp_path: Path) -> None:
    model.add("ten", "one")
    with agent(model, tmp_path, session_id="task-10") as hermes:
        hermes.chat("of task 10")
    with agent(model, tmp_path, session_id="task-1") as hermes:
        hermes.chat("of task 1")
        assert hermes.session_id == "task-1"
    assert "of task 10" not in json.dumps(model.asked[-1].body["messages"])


def test_ctrl_c_stops_the_run_and_the_agent_goes_on(model: ModelServer, tmp_path: Path) -> None:
    begun = threading.Event()

    async def for_ever(stream: ByteStream, asked: Asked) -> None:
        begun.set()
        await endless(lambda _: b": still here\n\n", 0.05)(stream, asked)

    model.behaviours[:] = [for_ever]
    model.add("hello")
    script = (
        "import signal\nfrom hermes import AIAgent\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"agent = AIAgent('m', api_key='sk-fake', base_url='{model.url}/v1', quiet_mode=True, home={str(tmp_path)!r})\n"
        "try:\n    agent.chat('go')\nexcept KeyboardInterrupt:\n    print('stopped', flush=True)\n"
        "print(agent.chat('again'))"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as child:
        assert begun.wait(50)
        child.send_signal(signal.SIGINT)
        said, _ = child.communicate(timeout=50)
    assert said == "stopped\nhello\n"
    assert [m["content"] for m in model.asked[-1].body["messages"] if m["role"] == "user"] == ["go", "again"]


def test_one_that_cannot_be_opened_leaves_no_thread(model: ModelServer, tmp_path: Path) -> None:
    hermes = agent(model, tmp_path, enabled_toolsets=["nonsense"])
    for _ in range(2):
        with pytest.raises(NotFound):
            hermes.chat("a")
    assert not any(thread.name == "hermes-agent" for thread in threading.enumerate())
    hermes.close()
