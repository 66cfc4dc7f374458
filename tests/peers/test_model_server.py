"""The official clients take our model server for the real thing."""

import base64
from collections.abc import AsyncIterator

import pytest

from hermes.domain.errors import LimitReached, Unavailable
from hermes.domain.model import ContextOverflow, Usage
from hermes.testing.model_server import ModelServer
from hermes.testing.turn import Fail, Order, Say

anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
pytestmark = pytest.mark.anyio

USAGE = Usage(input=120, output=34, cache_read=100, reasoning=5)
FULL = Say(
    "Grüße 🙂", reasoning="Hm.", calls=(Order("shell", {"cmd": "ls"}), Order("shell", {"cmd": "é"})), usage=USAGE
)
TOOL = {"name": "shell", "description": "Run.", "parameters": {"type": "object", "properties": {}}}
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    async with ModelServer().opened() as server:
        yield server


@pytest.fixture
async def chat(server: ModelServer) -> AsyncIterator[object]:
    async with openai.AsyncOpenAI(api_key="sk-fake", base_url=f"{server.url}/v1", max_retries=0) as client:
        yield client


@pytest.fixture
async def messages(server: ModelServer) -> AsyncIterator[object]:
    async with anthropic.AsyncAnthropic(api_key="sk-fake", base_url=server.url, max_retries=0) as client:
        yield client


async def test_openai_reads_a_stream_with_calls_and_usage(server: ModelServer, chat: "openai.AsyncOpenAI") -> None:
    server.add(FULL)
    async with chat.chat.completions.stream(
        model="fake-model",
        messages=HELLO,
        tools=[{"type": "function", "function": TOOL}],
        stream_options={"include_usage": True},
    ) as stream:
        async for _ in stream:
            continue
        final = await stream.get_final_completion()
    message = final.choices[0].message
    assert message.content == "Grüße 🙂"
    assert [(c.function.name, c.function.arguments) for c in message.tool_calls] == [
        ("shell", '{"cmd": "ls"}'),
        ("shell", '{"cmd": "\\u00e9"}'),
    ]
    assert (final.usage.prompt_tokens, final.usage.prompt_tokens_details.cached_tokens) == (120, 100)
    assert final.choices[0].finish_reason == "tool_calls"


async def test_openai_reads_a_whole_answer_and_the_list_of_models(
    server: ModelServer, chat: "openai.AsyncOpenAI"
) -> None:
    server.add(FULL)
    final = await chat.chat.completions.create(model="fake-model", messages=HELLO)
    assert final.choices[0].message.content == "Grüße 🙂"
    assert [model.id async for model in chat.models.list()] == ["fake-model"]


async def test_openai_sorts_our_errors_as_those_of_its_vendor(server: ModelServer, chat: "openai.AsyncOpenAI") -> None:
    server.add(Fail(ContextOverflow("")), Fail(LimitReached("")), Fail(Unavailable("busy")))
    with pytest.raises(openai.BadRequestError) as caught:
        await chat.chat.completions.create(model="m", messages=HELLO)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(openai.APIStatusError):
        await chat.chat.completions.create(model="m", messages=HELLO)
    with pytest.raises(openai.InternalServerError):
        await chat.chat.completions.create(model="m", messages=HELLO)
    with pytest.raises(openai.AuthenticationError):
        await chat.with_options(api_key="sk-wrong").chat.completions.create(model="m", messages=HELLO)


async def test_openai_notices_a_stream_that_breaks_off(server: ModelServer, chat: "openai.AsyncOpenAI") -> None:
    server.add(Fail(Unavailable("gone"), after="Once upon a time"))
    stream = await chat.chat.completions.create(model="m", messages=HELLO, stream=True)

    async def read() -> None:
        async for _ in stream:
            continue

    with pytest.raises(Exception, match=r"(?i)peer|closed|incomplete|connection"):
        await read()


async def test_anthropic_reads_a_stream_with_thinking_calls_and_usage(
    server: ModelServer, messages: "anthropic.AsyncAnthropic"
) -> None:
    server.add(FULL)
    async with messages.messages.stream(model="fake-model", max_tokens=100, messages=HELLO) as stream:
        final = await stream.get_final_message()
    thinking, text, first, second = final.content
    assert (thinking.type, thinking.thinking, text.text) == ("thinking", "Hm.", "Grüße 🙂")
    assert base64.b64decode(thinking.signature)
    assert (first.input, second.input) == ({"cmd": "ls"}, {"cmd": "é"})
    assert (final.stop_reason, final.usage.input_tokens, final.usage.cache_read_input_tokens) == ("tool_use", 20, 100)
    assert final.usage.output_tokens == 34


async def test_anthropic_reads_a_whole_answer(server: ModelServer, messages: "anthropic.AsyncAnthropic") -> None:
    server.add(FULL)
    final = await messages.messages.create(model="fake-model", max_tokens=100, messages=HELLO)
    assert [block.type for block in final.content] == ["thinking", "text", "tool_use", "tool_use"]


async def test_anthropic_sorts_our_errors_as_those_of_its_vendor(
    server: ModelServer, messages: "anthropic.AsyncAnthropic"
) -> None:
    server.add(Fail(ContextOverflow("")), Fail(Unavailable("busy")))
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        await messages.messages.create(model="m", max_tokens=1, messages=HELLO)
    with pytest.raises(anthropic.APIStatusError) as caught:
        await messages.messages.create(model="m", max_tokens=1, messages=HELLO)
    assert caught.value.status_code == 529
    with pytest.raises(anthropic.AuthenticationError):
        await messages.with_options(api_key="sk-wrong").messages.create(model="m", max_tokens=1, messages=HELLO)


async def test_a_request_that_a_strict_vendor_refuses_is_refused(
    chat: "openai.AsyncOpenAI", messages: "anthropic.AsyncAnthropic"
) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    lonely = [*HELLO, {"role": "assistant", "content": None, "tool_calls": [call]}, HELLO[0]]
    with pytest.raises(openai.BadRequestError, match="must be followed by tool messages"):
        await chat.chat.completions.create(model="m", messages=lonely)
    use = {"type": "tool_use", "id": "a", "name": "shell", "input": {}}
    asking = [HELLO[0], {"role": "assistant", "content": [use]}, HELLO[0]]
    with pytest.raises(anthropic.BadRequestError, match="were answered by"):
        await messages.messages.create(model="m", max_tokens=1, messages=asking)
