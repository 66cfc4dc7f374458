"""`hermes model`: what is asked, what there is, whether it answers."""

import threading
from collections.abc import Iterator

import anyio
import pytest
from tests.unit.cli.conftest import Shell

from hermes.config.variables import process_environment
from hermes.testing.bad_status import STATUS
from hermes.testing.bad_transport import page
from hermes.testing.model_server import ModelServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A server on a loop of its own: a command runs one itself."""
    for name in process_environment():
        if name.endswith(("_API_KEY", "_BASE_URL")):
            monkeypatch.delenv(name)
    model, ready, done = ModelServer(), threading.Event(), threading.Event()

    async def serve() -> None:
        async with model.opened():
            ready.set()
            await anyio.to_thread.run_sync(done.wait)

    thread = threading.Thread(target=anyio.run, args=(serve,))
    thread.start()
    assert ready.wait(10)
    yield model
    done.set()
    thread.join()


@pytest.fixture
def here(shell: Shell, server: ModelServer) -> Shell:
    """A home whose model is at the server."""
    shell("config", "set", "model.base_url", f"{server.url}/v1")
    shell("config", "set", "model.api_key", "sk-fake")
    shell("model", "set", "fake-model")
    return shell


def test_a_model_that_answers_is_timed(here: Shell, server: ModelServer) -> None:
    server.add("ready", "ready")
    facts = here.json("model", "test")
    assert (facts["model"], facts["says"], facts["tokens"]) == ("custom/fake-model", "ready", 110)
    assert 0 <= facts["first token"] <= facts["all of it"]
    assert "says         ready" in here("model", "test")
    assert server.asked[-1].headers["authorization"] == "Bearer sk-fake"


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("401", 4, "model.api_key"),
        ("404, model", 5, "hermes model list"),
        ("529", 7, "overloaded"),
        ("402", 9, "credit"),
    ],
)
def test_what_is_wrong_is_one_line_and_an_exit_code(
    here: Shell, server: ModelServer, name: str, code: int, words: str
) -> None:
    server.behaviours.append(STATUS[name][0])
    here("model", "test", code=code)
    assert words in here.err
    assert len(here.err.splitlines()) == 1


def test_a_web_page_names_the_address(here: Shell, server: ModelServer) -> None:
    server.behaviours.append(page(200))
    here("model", "test", code=3)
    assert f"{server.url}/v1/chat/completions" in here.err


def test_a_server_is_asked_for_its_models(here: Shell) -> None:
    assert here.lines("model", "list", "custom") == ["custom/fake-model  -       -       -"]
    (row,) = here.json("model", "list", "custom")
    assert row == {"name": "custom/fake-model", "window": None, "input": None, "output": None}


def test_the_providers_are_shown_with_what_each_wants(here: Shell) -> None:
    states = {row["name"]: (row["state"], row["model"]) for row in here.json("model", "list")}
    assert states["custom"] == ("used", "fake-model")
    assert states["anthropic"][0] == "needs a key"
    assert states["ollama"][0] == "local"
    assert "sk-fake" not in here("model", "list") + here("config", "show")


def test_a_model_that_cannot_be_asked_is_not_set(here: Shell) -> None:
    assert "custom/anthropic/claude-sonnet-5-5 is used" in here("model", "set", "anthropic/claude-sonnet-5-5")
    assert here.json("model", "list")[-2]["model"] == "anthropic/claude-sonnet-5-5"
    here("config", "unset", "model.base_url")
    here("model", "set", "deepseek/x", code=3)
    assert "DEEPSEEK_API_KEY" in here.err
    here("model", "list", "nobody", code=5)
