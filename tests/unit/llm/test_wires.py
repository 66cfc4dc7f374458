"""What goes over each wire, and what is read off it, beyond what every Provider promises."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hermes.config import load
from hermes.domain.clock import SystemClock
from hermes.domain.errors import LimitReached, Misconfigured
from hermes.domain.message import CallId, CallPart, ImagePart, Message, ResultPart
from hermes.domain.model import Delta, Provider, Reply, Request, Usage
from hermes.llm.choice import choose
from hermes.llm.opening import open_provider
from hermes.llm.prices import cost
from hermes.llm.tokens import Estimator, estimate
from hermes.llm.wire.answer import LONGEST, Answer
from hermes.testing.bad_streams import CHAT as CHAT_STREAMS
from hermes.testing.bad_streams import of
from hermes.testing.contracts.provider import HELLO, READ, SHELL, said
from hermes.testing.model_server import ModelServer
from hermes.testing.model_wires import SIGNATURE, ChatScribe
from hermes.testing.turn import Order, Say, Turn

pytestmark = pytest.mark.anyio
CHAT = ChatScribe("m", 1)
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@dataclass
class Line:
    """A model at a vendor of some name, and what it was sent."""

    provider: Provider
    server: ModelServer
    shown: list[Delta]

    async def ask(self, turn: Turn, *messages: Message, **more: Any) -> Reply:  # noqa: ANN401 - fields of a request
        self.server.add(turn)
        prefix = self.provider.prefix("You help.", [READ, SHELL])
        request = Request(prefix, [self.provider.encode(one) for one in messages or (HELLO,)], **more)
        return await self.provider.call(request, self.shown.append)

    @property
    def sent(self) -> dict[str, Any]:
        return self.server.asked[-1].body


Open = Callable[..., AbstractAsyncContextManager[Line]]


@pytest.fixture
def line(tmp_path: Path) -> Open:
    @asynccontextmanager
    async def opened(vendor: str, model: str = "m", **more: str) -> AsyncIterator[Line]:
        async with ModelServer().opened() as server:
            own = {"provider": vendor, "base_url": server.url, "default": model, "api_key": "sk-fake", **more}
            settings = load(home=tmp_path, environ={}, flags={f"model.{key}": value for key, value in own.items()})
            async with open_provider(choose(settings), settings, SystemClock()) as provider:
                yield Line(provider, server, [])

    return opened


async def test_the_cache_is_asked_for_in_the_prefix_and_never_in_a_message(line: Open) -> None:
    async with line("anthropic", "claude-sonnet-5-5") as one:
        await one.ask("Hi.")
        assert one.sent["cache_control"] == {"type": "ephemeral"}
        assert one.sent["system"][0]["cache_control"] == {"type": "ephemeral"}
        assert "cache_control" not in json.dumps(one.sent["messages"])
    async with line("custom-anthropic") as one:
        await one.ask("Hi.")
        assert "cache_control" not in one.sent
    async with line("openrouter", "anthropic/claude-sonnet-5.5") as one:
        await one.ask("Hi.")
        assert one.sent["cache_control"] == {"type": "ephemeral"}
    async with line("openrouter", "qwen/qwen3") as one:
        await one.ask("Hi.")
        assert "cache_control" not in one.sent


async def test_a_later_request_begins_with_the_bytes_of_the_one_before(line: Open) -> None:
    for vendor in ("custom", "anthropic", "openrouter", "deepseek"):
        async with line(vendor) as one:
            first = await one.ask(Say("I look.", reasoning="Hm.", calls=(Order("shell", {}),)))
            before = one.server.asked[-1].raw.rpartition(b"]")[0]
            result = said("tool", *(ResultPart(c.id, c.name, "ok") for c in first.message.calls))
            await one.ask("Done.", HELLO, first.message, result)
            assert one.server.asked[-1].raw.startswith(before + b",")


@pytest.mark.parametrize(
    ("vendor", "model", "extra", "fields"),
    [
        ("custom", "m", {"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
        ("openrouter", "m", {"reasoning_effort": "high"}, {"reasoning": {"effort": "high"}}),
        ("openrouter", "m", {"reasoning_effort": "none"}, {"reasoning": {"enabled": False}}),
        ("ollama", "m", {"reasoning_effort": "high"}, {"max_tokens": 20_000}),
        ("anthropic", "claude-opus-5-5", {"reasoning_effort": "high"}, {"output_config": {"effort": "high"}}),
        ("anthropic", "claude-opus-5-5", {"reasoning_effort": "none"}, {"thinking": {"type": "disabled"}}),
        (
            "anthropic",
            "claude-sonnet-4-5-20250929",
            {"reasoning_effort": "medium"},
            {"thinking": {"type": "enabled", "budget_tokens": 8192}, "max_tokens": 20_000},
        ),
        ("custom", "m", {"top_p": 0.5, "max_tokens": 20_000}, {"top_p": 0.5}),
    ],
)
async def test_fields_of_a_request_are_written_as_each_vendor_has_them(
    line: Open, vendor: str, model: str, extra: dict[str, Any], fields: dict[str, Any]
) -> None:
    async with line(vendor, model) as one:
        limit = {} if "max_tokens" in extra else {"max_tokens": 20_000}
        await one.ask("Hi.", extra=extra, **limit)
        assert {name: one.sent.get(name) for name in fields} == fields


async def test_a_request_is_asked_as_the_settings_say_where_it_says_nothing(line: Open) -> None:
    async with line("custom", max_tokens="50", temperature="0.5", reasoning_effort="low") as one:
        await one.ask("Hi.")
        assert (one.sent["max_tokens"], one.sent["temperature"], one.sent["reasoning_effort"]) == (50, 0.5, "low")
        await one.ask("Hi.", max_tokens=9, temperature=0.0, extra={"reasoning_effort": "high"})
        assert (one.sent["max_tokens"], one.sent["temperature"], one.sent["reasoning_effort"]) == (9, 0.0, "high")
    async with line("custom") as one:
        await one.ask("Hi.")
        assert not {"max_tokens", "temperature", "reasoning_effort"} & one.sent.keys()


async def test_fields_that_hermes_sets_cannot_be_given(line: Open) -> None:
    for vendor in ("custom", "anthropic"):
        async with line(vendor) as one:
            with pytest.raises(Misconfigured, match="stream"):
                await one.ask("Hi.", extra={"stream": False})


async def test_an_answer_is_held_to_a_schema_as_each_vendor_can(line: Open) -> None:
    async with line("custom") as one:
        await one.ask('{"a": "b"}', schema=SCHEMA)
        assert one.sent["response_format"]["json_schema"] == {"name": "answer", "schema": SCHEMA, "strict": True}
        await one.ask('{"a": "b"}', schema=SCHEMA | {"required": []})
        assert one.sent["response_format"]["json_schema"]["strict"] is False
    async with line("anthropic") as one:
        await one.ask('{"a": "b"}', schema=SCHEMA)
        assert one.sent["output_config"]["format"] == {"type": "json_schema", "schema": SCHEMA}
    async with line("deepseek") as one:
        await one.ask('{"a": "b"}', schema=SCHEMA)
        assert one.sent["response_format"] == {"type": "json_object"}
        assert '"required":["a"]' in one.sent["messages"][-1]["content"]


async def test_ephemeral_messages_are_sent_last_and_kept_nowhere(line: Open) -> None:
    async with line("custom") as one:
        extra = one.provider.encode(said("user", "(psst)"))
        await one.ask("Hi.", ephemeral=[extra])
        assert [m["content"] for m in one.sent["messages"]] == ["You help.", "Hello", "(psst)"]


async def test_pictures_are_written_as_each_wire_has_them(line: Open) -> None:
    picture, there = ImagePart("image/png", data="aGk="), ImagePart("image/png", url="https://e.example/a.png")
    message = said("user", "Look:", picture, there)
    async with line("custom") as one:
        await one.ask("Hi.", message)
        parts = one.sent["messages"][1]["content"]
        assert [p["image_url"]["url"] for p in parts[1:]] == ["data:image/png;base64,aGk=", "https://e.example/a.png"]
        calls = said("assistant", *(CallPart(CallId(name), "shell", "{}") for name in "ab"))
        shown = said("tool", ResultPart(CallId("a"), "shell", "see", images=(picture,)))
        await one.ask("Hi.", HELLO, calls, shown, said("tool", ResultPart(CallId("b"), "shell", "done")))
        assert [m["role"] for m in one.sent["messages"]] == ["system", "user", "assistant", "tool", "tool", "user"]
        assert one.sent["messages"][-1]["content"][1]["image_url"]["url"] == "data:image/png;base64,aGk="
    async with line("anthropic") as one:
        await one.ask("Hi.", message)
        assert one.sent["messages"][0]["content"][1]["source"] == {
            "type": "base64",
            "media_type": "image/png",
            "data": "aGk=",
        }
        result = ResultPart(CallId("a"), "shell", "see", images=(picture,))
        await one.ask("Hi.", HELLO, said("assistant", CallPart(CallId("a"), "shell", "{}")), said("tool", result))
        assert [b["type"] for b in one.sent["messages"][2]["content"][0]["content"]] == ["text", "image"]


async def test_signed_thinking_goes_back_at_its_place_and_unsigned_never(line: Open) -> None:
    async with line("anthropic") as one:
        reply = await one.ask(Say("I look.", reasoning="Hm.", calls=(Order("shell", {}),)))
        sent = json.loads(reply.encoded)["content"]
        assert [b["type"] for b in sent] == ["thinking", "text", "tool_use"]
        assert sent[0] == {"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE}
        bare = replace(reply.message, opaque={})
        assert "thinking" not in one.provider.encode(bare).decode()


async def test_thoughts_go_back_only_to_who_wants_them(line: Open) -> None:
    turn = Say("Yes.", reasoning="Hm.", calls=(Order("shell", {}),))
    async with line("deepseek") as one:
        assert json.loads((await one.ask(turn)).encoded)["reasoning_content"] == "Hm."
    async with line("custom") as one:
        assert "Hm." not in (await one.ask(turn)).encoded.decode()


async def test_details_of_reasoning_are_joined_and_go_back_to_openrouter(line: Open) -> None:
    pieces = [
        {"type": "reasoning.text", "text": "Let me ", "index": 0, "format": "x"},
        {"type": "reasoning.text", "text": "see.", "index": 0, "signature": "sig"},
        {"type": "reasoning.encrypted", "data": "abc", "index": 1},
    ]
    events = [CHAT.chunk({"reasoning": p.get("text"), "reasoning_details": [p]}) for p in pieces]
    async with line("openrouter") as one:
        one.server.behaviours.append(
            of(lambda: [*events, CHAT.chunk({"content": "Hi."}, finish="stop"), b"data: [DONE]\n\n"])
        )
        reply = await one.ask("unused")
        assert reply.message.reasoning == "Let me see."
        kept = json.loads(reply.message.opaque["chat"])["reasoning_details"]
        assert [p.get("text", p.get("data")) for p in kept] == ["Let me see.", "abc"]
        assert kept[0]["signature"] == "sig"


async def test_a_local_model_s_tags_become_thoughts_and_calls(line: Open) -> None:
    text = '<think>I need to look.</think>\n<tool_call>\n{"name": "shell", "arguments": {"cmd": "ls"}}\n</tool_call>'
    async with line("custom") as one:
        reply = await one.ask(Say(text, piece=3))
        assert (reply.message.reasoning, reply.message.text, reply.finish) == ("I need to look.", "", "tool_calls")
        assert [(c.name, json.loads(c.arguments)) for c in reply.message.calls] == [("shell", {"cmd": "ls"})]
        assert "".join(d.text for d in one.shown if d.kind == "text").strip() == ""
        assert [d.text for d in one.shown if d.kind == "call"] == ["shell"]
        one.shown.clear()
        quoted = await one.ask(Say("As I said: " + text, calls=(Order("read_file", {}),)))
        assert [c.name for c in quoted.message.calls] == ["read_file"]
        assert "".join(d.text for d in one.shown if d.kind == "text") == quoted.message.text
        held = await one.ask(Say('{"name": "shell", "arguments": {}}'), schema={"type": "object"})
        assert held.message.calls == ()
    async with line("openai", "gpt-5") as one:
        assert (await one.ask(Say(text))).message.calls == ()


async def test_names_of_tools_are_known_from_a_prefix_that_was_stored(line: Open) -> None:
    async with line("custom") as one:
        stored = bytes(bytearray(one.provider.prefix("", [SHELL])))
        one.server.add(Say('<tool_call>{"name": "SHELL", "arguments": {}}</tool_call>'))
        reply = await one.provider.call(Request(stored, [one.provider.encode(HELLO)]), one.shown.append)
        assert [c.name for c in reply.message.calls] == ["shell"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("the same index for all", ["{}", "{}"]),
        ("interleaved indices", ['{"cmd": "b"}', '{"cmd": "a"}']),
        ("no indices", ['{"cmd": "ls"}']),
        ("arguments as an object", ['{"cmd": "ls"}']),
        ("arguments broken", ['{"cmd": "ls"}']),
        ("arguments null", ["{}"]),
        ("duplicate tool ids", ["{}", "{}"]),
        ("name in capitals with a prefix", ["{}"]),
    ],
)
async def test_odd_calls_are_read_as_they_were_meant(line: Open, name: str, arguments: list[str]) -> None:
    async with line("custom") as one:
        one.server.behaviours.append(CHAT_STREAMS[name][0])
        reply = await one.ask("unused")
        assert [(c.name, c.arguments) for c in reply.message.calls] == [("shell", given) for given in arguments]


def test_an_answer_has_a_bound_of_its_own() -> None:
    answer = Answer(lambda _: None, frozenset(), reads_tags=False)
    answer.say("x" * LONGEST)
    with pytest.raises(LimitReached, match="longer than"):
        answer.say("x")


async def test_a_refusal_is_said_and_named(line: Open) -> None:
    async with line("custom") as one:
        events = [CHAT.chunk({"refusal": "I will not."}), CHAT.chunk({}, finish="stop"), b"data: [DONE]\n\n"]
        one.server.behaviours.append(of(lambda: events))
        reply = await one.ask("unused")
        assert (reply.message.text, reply.finish) == ("I will not.", "refusal")
    async with line("anthropic") as one:
        assert (await one.ask(Say("No.", finish="refusal"))).finish == "refusal"


async def test_arguments_cut_at_the_limit_are_not_completed(line: Open) -> None:
    half = '{"cmd": "rm -rf ./build'
    for vendor in ("custom", "anthropic"):
        async with line(vendor) as one:
            reply = await one.ask(Say(calls=(Order("shell", half),), finish="length"))
            assert (reply.finish, reply.message.calls[0].arguments) == ("length", half)
            result = said("tool", ResultPart(reply.message.calls[0].id, "shell", "no"))
            assert (await one.ask("Again.", HELLO, reply.message, result)).message.text == "Again."


async def test_what_the_vendor_counted_is_kept_apart(line: Open) -> None:
    usage = Usage(input=1000, output=50, cache_read=800, cache_write=100)
    async with line("anthropic") as one:
        assert (await one.ask(Say("Hi.", usage=usage))).usage == usage
    async with line("custom") as one:
        seen = (await one.ask(Say("Hi.", usage=replace(usage, cache_write=0, reasoning=20)))).usage
        assert seen == replace(usage, cache_write=0, reasoning=20)


def test_a_call_costs_what_the_table_says_and_unknown_is_not_free() -> None:
    usage = Usage(input=1_000_000, output=100_000, cache_read=500_000, cache_write=100_000)
    assert cost("anthropic/claude-sonnet-5-5", usage) == 400_000 * 2 + 100_000 * 10 + 50_000 + 250_000
    assert cost("ollama/qwen3:8b", usage) == 0
    assert cost("custom/mine", usage) is None
    long, short = Usage(input=300_000), Usage(input=50_000)
    assert (cost("anthropic/claude-haiku-5-5", long) or 0) > 6 * (cost("anthropic/claude-haiku-5-5", short) or 0)


def test_an_estimate_learns_from_what_was_counted() -> None:
    learner, data = Estimator(), b"x" * 10_000
    for _ in range(20):
        learner.learn(len(data), Usage(input=5_000))
    assert abs(learner.estimate(data) - 5_000) < 250
    assert learner.error < 0.05
    assert estimate(b"") == 0
    assert estimate(b"a") == 1
    learner.learn(100_000, Usage(input=0))
    assert abs(learner.estimate(data) - 5_000) < 250
