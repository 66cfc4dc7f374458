"""What code says in the place of a small model."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from hermes.domain.clock import SystemClock
from hermes.domain.errors import Unsupported
from hermes.domain.message import CallId, CallPart, ImagePart, Message, MessageId, Part, ResultPart, Role, TextPart
from hermes.domain.model import Reply, Request
from hermes.domain.tool import ToolSpec
from hermes.llm.local.manners import Mannered
from hermes.llm.local.provider import Local, Terms
from hermes.testing.small_engine import ScriptedEngine
from hermes.testing.turn import call

pytestmark = pytest.mark.anyio

AT = datetime(2027, 1, 4, tzinfo=UTC)
SHELL = ToolSpec("terminal", "Run.", {"properties": {"command": {}}}, access="write", toolset="terminal")


def said(role: Role, *parts: Part) -> Message:
    return Message(MessageId("m"), role, parts, AT)


def user(text: str) -> Message:
    return said("user", TextPart(text))


def tried(command: str, result: str, *, is_error: bool = False) -> tuple[Message, Message]:
    one = CallPart(CallId("c"), "terminal", f'{{"command": "{command}"}}')
    return said("assistant", one), said("tool", ResultPart(one.id, "terminal", result, is_error=is_error))


class Table:
    def __init__(self, engine: ScriptedEngine, provider: Mannered) -> None:
        self.engine = engine
        self.provider = provider

    async def ask(self, *messages: Message) -> Reply:
        prefix = self.provider.prefix("You help.", [SHELL])
        return await self.provider.call(
            Request(prefix, [self.provider.encode(one) for one in messages]), lambda _delta: None
        )


@pytest.fixture
async def table() -> AsyncIterator[Table]:
    engine, clock = ScriptedEngine(), SystemClock()
    with engine.linked() as link:
        yield Table(engine, Mannered(Local(Terms("local/fake", 4096), lambda: link, clock), clock))


@pytest.mark.parametrize("text", ["Hello!", "hi there", "Who are you?", "What can you do, please?", "Thanks."])
async def test_small_talk_wakes_no_model(table: Table, text: str) -> None:
    reply = await table.ask(user(text))
    assert reply.message.text
    assert "Qwen" not in reply.message.text
    assert "OpenAI " not in reply.message.text
    assert table.engine.asked == []


@pytest.mark.parametrize("text", ["Hello world in Python", "who are you in this git log?", "help me list files"])
async def test_a_question_that_begins_like_small_talk_is_a_question(table: Table, text: str) -> None:
    table.engine.add("words")
    assert (await table.ask(user(text))).message.text == "words"


async def test_what_a_tool_gave_is_shown_as_it_is(table: Table) -> None:
    reply = await table.ask(user("list"), *tried("ls", '{"output":"a.txt\\n```\\n","exit_code":0}'))
    assert reply.message.text == "````\na.txt\n```\n````"
    assert table.engine.asked == []


async def test_numbers_of_lines_are_left_out_and_silence_is_said(table: Table) -> None:
    reply = await table.ask(user("read"), *tried("x", '{"content":"1|port = 1\\n2|x","total_lines":2}'))
    assert reply.message.text == "```\nport = 1\nx\n```"
    reply = await table.ask(user("make"), *tried("touch a", '{"output":"","exit_code":0}'))
    assert "printed nothing" in reply.message.text


async def test_after_a_failure_the_model_may_try_something_else(table: Table) -> None:
    table.engine.add(call("terminal", command="ls /"))
    reply = await table.ask(user("list"), *tried("lss", '{"output":"not found","exit_code":127}'))
    assert [one.arguments for one in reply.message.calls] == ['{"command": "ls /"}']


async def test_the_same_try_is_not_made_again(table: Table) -> None:
    table.engine.add(call("terminal", command="lss"))
    reply = await table.ask(user("list"), *tried("lss", '{"output":"not found","exit_code":127}'))
    assert reply.message.calls == ()
    assert "not found" in reply.message.text


async def test_after_three_failures_it_gives_up_and_says_so(table: Table) -> None:
    failures = [one for number in range(3) for one in tried(f"try{number}", "denied", is_error=True)]
    reply = await table.ask(user("list"), *failures)
    assert "did not work" in reply.message.text
    assert "denied" in reply.message.text


async def test_pictures_are_refused(table: Table) -> None:
    with pytest.raises(Unsupported, match="sees no pictures"):
        await table.ask(said("user", TextPart("what is it?"), ImagePart("image/png", data="aGk=")))
