"""The real weights in their process, where they are: `TEST_MODELS_HOME` names a home that has them."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes.agent.prompt import COMPACT
from hermes.config import load
from hermes.config.variables import home_of, process_environment
from hermes.domain.clock import SystemClock
from hermes.domain.message import Message, MessageId, TextPart
from hermes.domain.model import ContextOverflow, Reply, Request
from hermes.domain.tool import ToolSpec
from hermes.llm.catalogue.weights import QWEN
from hermes.llm.choice import choose
from hermes.llm.local.opening import open_local_model
from hermes.llm.local.provider import Local

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(600)]

_TEXT = {"type": "string"}
TERMINAL = ToolSpec(
    "terminal",
    "Run a shell command in the workspace.",
    {"properties": {"command": _TEXT}, "required": ["command"]},
    access="write",
    toolset="terminal",
)
READ = ToolSpec(
    "read_file",
    "Read a text file.",
    {"properties": {"path": _TEXT}, "required": ["path"]},
    access="read",
    toolset="file",
)


def weights_home() -> Path:
    environ = process_environment()
    home = Path(environ["TEST_MODELS_HOME"]) if "TEST_MODELS_HOME" in environ else home_of(None, environ)
    if not QWEN.is_there(home):
        pytest.skip("the weights are not here: `hermes model pull` brings them")
    return home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    there = QWEN.path(tmp_path)
    there.parent.mkdir()
    there.symlink_to(QWEN.path(weights_home()))
    return tmp_path


@pytest.fixture
async def model(home: Path) -> AsyncIterator[Local]:
    settings = load(home=home, environ={})
    async with open_local_model(choose(settings), settings, SystemClock(), process_environment()) as model:
        yield model


async def ask(model: Local, text: str) -> Reply:
    asked = Message(MessageId("m"), "user", (TextPart(text),), datetime(2027, 1, 4, tzinfo=UTC))
    request = Request(model.prefix(COMPACT, [READ, TERMINAL]), [model.encode(asked)])
    return await model.call(request, lambda _: None)


async def test_it_chooses_tools_and_words_and_reads_what_stays_the_same_once(model: Local, home: Path) -> None:
    first = await ask(model, "List the files here")
    assert [call.name for call in first.message.calls] == ["terminal"]
    assert "ls" in first.message.calls[0].arguments
    assert 100 < first.usage.input <= 450
    assert first.usage.cache_read == 0
    (state,) = (home / "models" / "state").iterdir()
    assert state.suffix == ".state"
    second = await ask(model, "What does notes.txt say?")
    assert [(call.name, call.arguments) for call in second.message.calls] == [("read_file", '{"path": "notes.txt"}')]
    assert second.usage.cache_read > 100
    third = await ask(model, "What is the capital of France?")
    assert "Paris" in third.message.text


async def test_a_new_process_goes_on_with_what_an_earlier_one_has_read(model: Local, home: Path) -> None:
    await ask(model, "List the files here")
    model.close()
    reply = await ask(model, "List the files here")
    assert reply.usage.cache_read > 100
    model.close()
    (state,) = (home / "models" / "state").iterdir()
    state.write_bytes(b"damaged" * 1000)
    begun = time.monotonic()
    reply = await ask(model, "List the files here")
    assert reply.message.calls, f"after {time.monotonic() - begun:.1f} s"
    assert reply.usage.cache_read == 0


async def test_what_it_cannot_read_is_said_in_words(model: Local) -> None:
    """Letters without a meaning take more tokens than they are thought to."""
    noise = "".join(chr(33 + number * number * 7 % 90) for number in range(9000))
    with pytest.raises(ContextOverflow, match="tokens") as caught:
        await ask(model, noise)
    assert "{" not in str(caught.value)
