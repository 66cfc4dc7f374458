"""The embedded model behind its pipes: what is shown, what stops it, what happens when its process dies."""

import os
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from hermes.config import load
from hermes.config.variables import process_environment
from hermes.domain.clock import SystemClock
from hermes.domain.errors import LimitReached, Misconfigured, NotFound, Unavailable, Unsupported
from hermes.domain.message import Message, MessageId, TextPart
from hermes.domain.model import Delta, Request
from hermes.domain.tool import ToolSpec
from hermes.llm.catalogue.weights import QWEN, weights
from hermes.llm.choice import choose
from hermes.llm.local.frames import Frames, Ready, framed, news
from hermes.llm.local.link import Link, start
from hermes.llm.local.opening import memory_available, open_local_model, require_memory
from hermes.llm.local.provider import Local, Terms, Times
from hermes.testing.small_engine import ScriptedEngine
from hermes.testing.turn import Order, Say

pytestmark = pytest.mark.anyio

SHELL = ToolSpec("terminal", "Run.", {"properties": {"command": {}}}, access="write", toolset="terminal")
ENDLESS = Say("".join(f"{number} " for number in range(100_000)), piece=2, pause=0.001)
CHILD = """
import os, sys, time
from hermes.llm.local.serving import serve, Refused
from hermes.llm.local.frames import Failed
from hermes.testing.small_engine import ScriptedEngine
from hermes.testing.turn import Say
kind = sys.argv[1]
def load():
    if kind == "broken":
        raise Refused(Failed(0, "load", "no such file"))
    if kind == "stuck":
        time.sleep(600)
    return ScriptedEngine(["one", "two", "three"])
if kind == "silent":
    sys.stdin.read()
serve(load, 0, 1, lambda: os._exit(0))
"""


def child(kind: str) -> Link:
    return start([sys.executable, "-c", CHILD, kind], process_environment())


def request(provider: Local, text: str, *, tools: tuple[ToolSpec, ...] = (SHELL,)) -> Request:
    asked = Message(MessageId("m"), "user", (TextPart(text),), datetime(2027, 1, 4, tzinfo=UTC))
    return Request(provider.prefix("You help.", tools), [provider.encode(asked)])


@pytest.fixture
async def engine() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
async def provider(engine: ScriptedEngine) -> AsyncIterator[Local]:
    with engine.linked() as link:
        yield Local(Terms("local/fake", 4096), lambda: link, SystemClock())


async def test_each_step_is_held_to_the_tools_or_words(engine: ScriptedEngine, provider: Local) -> None:
    engine.add("yes", "plain words")
    await provider.call(request(provider, "go"), lambda _: None)
    assert b'"const":"terminal"' in engine.asked[0].schema
    reply = await provider.call(request(provider, "go", tools=()), lambda _: None)
    assert engine.asked[1].schema == b""
    assert reply.message.text == "plain words"


async def test_the_prefix_is_sent_apart_and_stays_the_same(engine: ScriptedEngine, provider: Local) -> None:
    engine.add("a", "b")
    for text in ("one", "two"):
        await provider.call(request(provider, text), lambda _: None)
    first, second = engine.asked
    assert first.prefix == second.prefix
    assert first.prefix.endswith("<|im_end|>\n")
    assert "one" in first.rest


async def test_loading_is_said_before_the_answer(engine: ScriptedEngine, provider: Local) -> None:
    engine.add("yes")
    shown: list[Delta] = []
    await provider.call(request(provider, "go"), shown.append)
    assert shown[0] == Delta("note", "loading the local model fake")
    assert [delta.kind for delta in shown[1:]] == ["text"]


async def test_an_answer_that_goes_in_circles_is_stopped(engine: ScriptedEngine, provider: Local) -> None:
    engine.add(Say("Projects/" * 100_000), "next")
    reply = await provider.call(request(provider, "go"), lambda _: None)
    assert reply.finish == "length"
    assert len(reply.message.text) < 10_000
    assert (await provider.call(request(provider, "go"), lambda _: None)).message.text == "next"


async def test_a_call_that_was_cut_is_no_call_to_be_done(engine: ScriptedEngine, provider: Local) -> None:
    engine.add(Say(calls=(Order("terminal", {"command": "echo " + "again " * 5000}),)))
    reply = await provider.call(request(provider, "go"), lambda _: None)
    assert reply.finish == "tool_calls"
    assert "again again" not in "".join(call.arguments for call in reply.message.calls if call.arguments.endswith("}"))


async def test_who_stops_waiting_stops_the_model(engine: ScriptedEngine, provider: Local) -> None:
    engine.add(ENDLESS, "next")
    with anyio.move_on_after(0.05) as scope:
        await provider.call(request(provider, "go"), lambda _: None)
    assert scope.cancelled_caught
    with anyio.fail_after(30):
        assert (await provider.call(request(provider, "go"), lambda _: None)).message.text == "next"


async def test_a_process_that_died_is_started_again_by_the_next_question() -> None:
    links: list[Link] = []

    def opened() -> Link:
        links.append(child("good"))
        return links[-1]

    provider = Local(Terms("local/fake", 4096), opened, SystemClock())
    try:
        assert (await provider.call(request(provider, "go"), lambda _: None)).message.text == "one"
        os.kill(links[0].pid, 9)
        with pytest.raises(Unavailable, match=r"ended by itself|gone"):
            await provider.call(request(provider, "go"), lambda _: None)
        assert (await provider.call(request(provider, "go"), lambda _: None)).message.text == "one"
        assert len(links) == 2
    finally:
        provider.close()


@pytest.mark.parametrize(
    ("kind", "error", "words"), [("broken", Misconfigured, "no such file"), ("silent", Unavailable, "said nothing")]
)
async def test_a_model_that_does_not_load_is_one_clear_error(kind: str, error: type[Exception], words: str) -> None:
    times = Times(load=30 if kind == "broken" else 1)
    provider = Local(Terms("local/fake", 4096, times=times), lambda: child(kind), SystemClock())
    with pytest.raises(error, match=words):
        await provider.call(request(provider, "go"), lambda _: None)
    provider.close()


@pytest.mark.parametrize("kind", ["good", "stuck"])
async def test_nothing_is_left_when_the_model_is_closed_or_its_owner_dies(kind: str) -> None:
    link = child(kind)
    assert alive(link.pid)
    link.close()
    assert not alive(link.pid)
    code = f"""
import os, sys
from hermes.llm.local.link import start
link = start([sys.executable, "-c", {CHILD!r}, {kind!r}], dict(os.environ))
print(link.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = await anyio.run_process([sys.executable, "-c", code], check=False)
    give_up_at = time.monotonic() + 30
    while alive(int(done.stdout)) and time.monotonic() < give_up_at:  # noqa: ASYNC110 - it is nobody's child here
        await anyio.sleep(0.02)
    assert not alive(int(done.stdout))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_frames_come_whole_however_they_are_cut() -> None:
    data, frames, found = framed(Ready()) * 3, Frames(), []
    for at in range(0, len(data), 5):
        found += [news(body) for body in frames.feed(data[at : at + 5])]
    assert found == [Ready()] * 3
    with pytest.raises(Unavailable, match="frame of"):
        list(Frames().feed(b"\xff" * 8))
    with pytest.raises(Unavailable, match="nobody understands"):
        news(b"\x01")


class TestChoosing:
    """When the embedded model is asked."""

    def put(self, home: Path) -> None:
        path = QWEN.path(home)
        path.parent.mkdir()
        with path.open("wb") as file:
            file.truncate(QWEN.size)

    def test_it_is_chosen_when_nothing_else_is_configured_and_it_is_there(self, tmp_path: Path) -> None:
        with pytest.raises(Misconfigured, match="hermes model pull"):
            choose(load(home=tmp_path, environ={}))
        self.put(tmp_path)
        choice = choose(load(home=tmp_path, environ={}))
        assert (choice.name, choice.vendor.is_small, choice.window) == ("local/qwen2.5-coder-1.5b", True, 4096)
        assert choose(load(home=tmp_path, environ={"OPENAI_API_KEY": "sk-x"})).vendor.name == "openai"

    def test_half_a_file_is_not_there(self, tmp_path: Path) -> None:
        self.put(tmp_path)
        os.truncate(QWEN.path(tmp_path), 1000)
        with pytest.raises(Misconfigured, match="no model is configured"):
            choose(load(home=tmp_path, environ={}))

    async def test_what_is_missing_is_said_before_anything_starts(self, tmp_path: Path) -> None:
        settings = load(home=tmp_path, environ={})
        choice = choose(settings, "local/qwen2.5-coder-1.5b")
        with pytest.raises(Misconfigured, match="hermes model pull"):
            async with open_local_model(choice, settings, SystemClock(), {}):
                raise AssertionError("nothing was missing")
        with pytest.raises(NotFound, match="known: qwen"):
            weights("local/gpt-9")


def test_a_machine_without_the_memory_is_told_how_much_is_needed(tmp_path: Path) -> None:
    free = memory_available()
    assert free is None or free > 0
    assert memory_available(tmp_path / "nothing") is None
    if free is not None:
        with pytest.raises(Unsupported, match="MiB of memory"):
            require_memory(replace(QWEN, size=1 << 60), 4096)


async def test_one_question_too_long_is_refused_with_what_to_do(provider: Local) -> None:
    with pytest.raises(LimitReached, match="connect a provider"):
        await provider.call(request(provider, "word " * 5000), lambda _: None)
