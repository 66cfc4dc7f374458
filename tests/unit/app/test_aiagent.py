"""The assistant as a class for programs that are not asynchronous."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from hermes import AIAgent
from hermes.domain.errors import LimitReached, Misconfigured
from hermes.testing.model_server import ModelServer
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
    import subprocess
    import sys

    script = "import hermes, sys; print(any('anyio' in name for name in sys.modules)); hermes.AIAgent; print('ok')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "ok"]
