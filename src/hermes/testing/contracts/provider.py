"""What a Provider promises, whoever is behind it."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import anyio

from hermes.domain.errors import LimitReached, Unavailable
from hermes.domain.message import CallId, CallPart, ImagePart, Message, MessageId, Part, ResultPart, Role, TextPart
from hermes.domain.model import ContextOverflow, Cut, Delta, Provider, Reply, Request, Usage
from hermes.domain.tool import ToolSpec
from hermes.testing.contracts.asserting import raises
from hermes.testing.turn import Fail, Order, Say, Turn, call

AT = datetime(2027, 1, 4, 12, 0, tzinfo=UTC)
SHELL = ToolSpec(
    "shell",
    "Run a command.",
    {"type": "object", "properties": {"cmd": {"type": "string"}}},
    access="write",
    toolset="shell",
)
READ = replace(SHELL, name="read_file", description="Read a file.", access="read")


@dataclass(frozen=True, slots=True)
class Stage:
    """A provider, and how to say what its model does next."""

    provider: Provider
    play: Callable[..., None]
    """Takes turns; they are used up in order."""

    def request(self, *messages: Message, tools: Sequence[ToolSpec] = (SHELL, READ)) -> Request:
        """Make a request of messages."""
        return Request(self.provider.prefix("You help.", tools), [self.provider.encode(one) for one in messages])

    async def ask(self, *messages: Message, turn: Turn) -> tuple[Reply, list[Delta]]:
        """Ask with messages, get a turn; return what came and what was shown."""
        self.play(turn)
        shown: list[Delta] = []
        return await self.provider.call(self.request(*messages), shown.append), shown


def said(role: Role, *parts: Part | str) -> Message:
    """Make a message."""
    return Message(MessageId("m"), role, tuple(TextPart(p) if isinstance(p, str) else p for p in parts), AT)


HELLO = said("user", "Hello")


class ProviderContract:
    """Run with a fixture `stage`."""

    async def test_words_arrive_in_pieces_and_as_a_whole(self, stage: Stage) -> None:
        """What was shown, put together, is what the reply says."""
        reply, shown = await stage.ask(HELLO, turn=Say("Grüße, 世界 🙂", piece=3, usage=Usage(input=12, output=7)))
        assert reply.message.text == "Grüße, 世界 🙂" == "".join(d.text for d in shown if d.kind == "text")
        assert len(shown) > 2
        assert (reply.finish, reply.usage, reply.message.role) == ("stop", Usage(input=12, output=7), "assistant")
        assert reply.message.status == "complete"
        assert reply.encoded == stage.provider.encode(reply.message)

    async def test_thoughts_are_kept_apart_from_words(self, stage: Stage) -> None:
        """They are shown as such, and are no part of the text."""
        reply, shown = await stage.ask(HELLO, turn=Say("Yes.", reasoning="Is it so? It is."))
        assert (reply.message.text, reply.message.reasoning) == ("Yes.", "Is it so? It is.")
        assert "".join(d.text for d in shown if d.kind == "reasoning") == "Is it so? It is."

    async def test_calls_side_by_side_keep_order_names_arguments_and_ids_of_their_own(self, stage: Stage) -> None:
        """Each call's name is shown as soon as it is known."""
        orders = (Order("shell", {"cmd": "ls -la"}), Order("read_file", {"cmd": "ä"}), Order("shell", {}))
        reply, shown = await stage.ask(HELLO, turn=Say("Look:", calls=orders))
        calls = reply.message.calls
        assert [c.name for c in calls] == ["shell", "read_file", "shell"]
        assert [c.name for c in calls] == [d.text for d in shown if d.kind == "call"]
        assert [json.loads(c.arguments) for c in calls] == [{"cmd": "ls -la"}, {"cmd": "ä"}, {}]
        assert len({c.id for c in calls}) == 3
        assert reply.finish == "tool_calls"

    async def test_results_may_come_as_one_message_each(self, stage: Stage) -> None:
        """As they are stored when they are there."""
        reply, _ = await stage.ask(HELLO, turn=Say(calls=(Order("shell", {}), Order("shell", {"cmd": "x"}))))
        results = [said("tool", ResultPart(c.id, c.name, f"done {c.id}")) for c in reply.message.calls]
        again, _ = await stage.ask(HELLO, reply.message, *results, turn="Both are done.")
        assert again.message.text == "Both are done."

    async def test_a_conversation_can_be_taken_up_again_with_thoughts_and_calls_in_it(self, stage: Stage) -> None:
        """What goes back to the vendor after a restart is what it had said."""
        history = [HELLO]
        for number in range(3):
            reply, _ = await stage.ask(
                *history, turn=Say("I look.", reasoning="Hm.", calls=(Order("shell", {"n": number}),))
            )
            results = (ResultPart(c.id, c.name, "nothing", is_error=bool(number)) for c in reply.message.calls)
            history += [reply.message, said("tool", *results)]
        reply, _ = await stage.ask(*history, said("user", "And now?"), turn="Done.")
        assert reply.message.text == "Done."

    async def test_a_call_without_its_result_does_not_spoil_the_request(self, stage: Stage) -> None:
        """A crash may leave one; the next question still gets an answer."""
        reply, _ = await stage.ask(HELLO, turn=Say(calls=(Order("shell", {}), Order("read_file", {}))))
        first = reply.message.calls[0]
        for left in ([], [said("tool", ResultPart(first.id, first.name, "ok"))]):
            again, _ = await stage.ask(HELLO, reply.message, *left, said("user", "Go on."), turn="Going on.")
            assert again.message.text == "Going on."

    async def test_an_interrupted_answer_does_not_spoil_the_request(self, stage: Stage) -> None:
        """Whatever had come of it."""
        for parts in (("I was about ",), (), (" ",)):
            broken = replace(said("assistant", *parts), status="interrupted")
            reply, _ = await stage.ask(HELLO, broken, said("user", "Go on."), turn="Going on.")
            assert reply.message.text == "Going on."

    async def test_pictures_and_odd_texts_can_be_sent(self, stage: Stage) -> None:
        """Also halves of characters, which no JSON can hold, and nothing at all."""
        picture = ImagePart("image/png", data="aGk=")
        there = ImagePart("image/png", url="https://example.com/a.png")
        odd = said("user", "half \ud83d of one, \0 and \x1b[31m")
        reply, _ = await stage.ask(said("user", "What is it?", picture, there), odd, turn="A cat.")
        assert reply.message.text == "A cat."

    async def test_a_result_may_show_pictures_beside_the_results_of_other_calls(self, stage: Stage) -> None:
        """Whatever the wire has to do for it."""
        reply, _ = await stage.ask(
            HELLO, turn=Say(calls=(Order("shell", {}), Order("read_file", {}), Order("shell", {})))
        )
        picture = ImagePart("image/png", data="aGk=")
        results = [
            said("tool", ResultPart(c.id, c.name, "see", images=(picture,) * (number < 2)))
            for number, c in enumerate(reply.message.calls)
        ]
        history = [HELLO, reply.message, *results]
        for _ in range(2):
            again, _shown = await stage.ask(*history, turn="Two cats.")
            assert again.message.text == "Two cats."
            history += [again.message, said("user", "Sure?")]

    async def test_the_same_message_gives_the_same_bytes(self, stage: Stage) -> None:
        """In whatever order it is asked."""
        call_part = CallPart(CallId("c 1/" + "x" * 100), "shell", '{"b": 1, "a": 2}')
        messages = [HELLO, said("assistant", "Hm", call_part), said("tool", ResultPart(call_part.id, "shell", "ok"))]
        first = [stage.provider.encode(one) for one in messages]
        assert [stage.provider.encode(one) for one in reversed(messages)] == first[::-1]
        assert stage.provider.prefix("a", [SHELL]) == stage.provider.prefix("a", [SHELL])

    async def test_a_request_that_is_too_long_says_so(self, stage: Stage) -> None:
        """It is the one error that compaction helps against."""
        stage.play(Fail(ContextOverflow("too long")))
        await raises(ContextOverflow, stage.provider.call(stage.request(HELLO), lambda _: None))

    async def test_an_account_without_credit_is_a_limit_and_not_to_be_asked_again(self, stage: Stage) -> None:
        """Waiting does not fill it."""
        stage.play(Fail(LimitReached("no credit is left")))
        error = await raises(LimitReached, stage.provider.call(stage.request(HELLO), lambda _: None))
        assert not isinstance(error, ContextOverflow)

    async def test_a_vendor_that_is_busy_is_unavailable_for_a_while(self, stage: Stage) -> None:
        """The same call may succeed later."""
        stage.play(Fail(Unavailable("overloaded")))
        error = await raises(Unavailable, stage.provider.call(stage.request(HELLO), lambda _: None))
        assert isinstance(error, Unavailable)
        assert 0 <= error.retry_after < 3600
        reply, _ = await stage.ask(HELLO, turn="Here I am.")
        assert reply.message.text == "Here I am."

    async def test_an_answer_that_breaks_off_leaves_what_had_come(self, stage: Stage) -> None:
        """As an interrupted message, which can be sent back."""
        stage.play(Fail(Unavailable("gone"), after="Once upon a time there was"))
        shown: list[Delta] = []
        error = await raises(Cut, stage.provider.call(stage.request(HELLO), shown.append))
        assert isinstance(error, Cut)
        assert error.partial is not None
        assert error.partial.status == "interrupted"
        assert error.partial.text == "".join(d.text for d in shown if d.kind == "text")
        assert error.partial.text.startswith("Once upon")
        reply, _ = await stage.ask(HELLO, error.partial, said("user", "Go on."), turn="A wolf.")
        assert reply.message.text == "A wolf."

    async def test_cancelling_a_call_leaves_the_provider_usable(self, stage: Stage) -> None:
        """And no words come after it."""
        stage.play(Say("a" * 1000, piece=1, pause=0.01))
        shown: list[Delta] = []
        with anyio.move_on_after(0.1) as scope:
            await stage.provider.call(stage.request(HELLO), shown.append)
        assert scope.cancelled_caught
        count = len(shown)
        reply, _ = await stage.ask(HELLO, turn="Next.")
        assert (reply.message.text, len(shown)) == ("Next.", count)

    async def test_one_provider_serves_many_calls_at_once(self, stage: Stage) -> None:
        """Each gets an answer of its own."""
        stage.play(*(f"answer {number}" for number in range(20)))
        texts: list[str] = []

        async def ask() -> None:
            reply = await stage.provider.call(stage.request(HELLO), lambda _: None)
            texts.append(reply.message.text)

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(ask)
        assert sorted(texts) == sorted(f"answer {number}" for number in range(20))

    async def test_a_scripted_call_is_as_good_as_a_written_one(self, stage: Stage) -> None:
        """The short form of a script."""
        reply, _ = await stage.ask(HELLO, turn=call("shell", cmd="pwd"))
        assert [(c.name, c.arguments) for c in reply.message.calls] == [("shell", '{"cmd": "pwd"}')]
