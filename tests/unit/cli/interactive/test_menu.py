"""A question and its answers."""

from datetime import UTC, datetime

import anyio
import pytest

from hermes.cli.interactive.menu import HEED_AFTER, Menu, decision, options_for
from hermes.domain.approval import Approval, Decision
from hermes.domain.session import RunId, SessionId

pytestmark = pytest.mark.anyio
LATER = HEED_AFTER + 1


def asked(pattern: str = "write /x/*") -> Approval:
    at = datetime(2027, 1, 4, tzinfo=UTC)
    return Approval("1", SessionId("s"), RunId("r"), "e", pattern, "shown", "rule", at)


def menu(pattern: str = "write /x/*") -> Menu:
    return Menu("?", options_for(asked(pattern)), now=0)


async def answer(one: Menu) -> Decision:
    with anyio.fail_after(5):
        return decision(await one.answer())


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("y", Decision("given", "once")),
        ("S", Decision("given", "session")),
        ("3", Decision("given", "always")),
        ("n", Decision("denied")),
    ],
)
async def test_a_key_answers(key: str, given: Decision) -> None:
    one = menu()
    one.press(key, now=LATER)
    assert await answer(one) == given


async def test_what_was_typed_before_the_question_is_no_answer() -> None:
    one = menu()
    one.press("y", now=HEED_AFTER / 2)
    one.take(now=HEED_AFTER / 2)
    one.press("q", now=LATER)
    one.press("n", now=LATER)
    assert await answer(one) == Decision("denied")


async def test_without_a_pattern_there_is_no_wider_yes() -> None:
    one = menu("")
    one.press("a", now=LATER)
    one.press("s", now=LATER)
    assert [option.value for option in one.options] == ["once", "no", "why"]
    one.move(-1)
    one.take(now=LATER)
    assert one.is_writing
    assert one.write("never there", now=LATER)
    assert await answer(one) == Decision("denied", reason="never there")


async def test_back_leaves_the_writing_then_the_question() -> None:
    one = menu()
    one.press("w", now=LATER)
    one.back()
    assert not one.is_writing
    one.back()
    one.press("y", now=LATER)
    assert await answer(one) == Decision("denied")
