"""The tools `todo` and `clarify`, and what the model is told of all of them."""

import json

import msgspec
import pytest
from tests.unit.tools.conftest import Hand

pytestmark = pytest.mark.anyio

MOST_BYTES = 8_000


async def test_a_list_is_set_merged_and_shown(hand: Hand) -> None:
    await hand("todo", todos=[{"id": "1", "content": "look"}, {"id": "2", "content": "do", "status": "pending"}])
    merged = await hand("todo", todos=[{"id": 1, "content": "look", "status": "completed"}], merge=True)
    assert [one["status"] for one in merged["todos"]] == ["completed", "pending"]  # type: ignore[attr-defined]
    assert (await hand("todo")) == merged
    assert merged["summary"] == {"total": 2, "pending": 1, "in_progress": 0, "completed": 1, "cancelled": 0}
    hand.session = "other"
    assert (await hand("todo"))["todos"] == []


async def test_a_list_may_come_as_a_text_of_json(hand: Hand) -> None:
    done = await hand("todo", todos=json.dumps([{"id": "1", "content": "x"}]))
    assert len(done["todos"]) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("todos", "said"),
    [
        ([{"id": "1", "content": "x"}, {"id": "1", "content": "y"}], "same id"),
        ([{"id": "1", "content": "x", "status": "someday"}], "someday"),
        ([{"id": "1"}], "content"),
        ([{"id": str(n), "content": "x"} for n in range(101)], "100"),
        ([{"id": "1", "content": "x" * 3_000}], "keep it to a line"),
    ],
)
async def test_a_list_that_cannot_be_is_told_of(hand: Hand, todos: object, said: str) -> None:
    assert said in str((await hand("todo", todos=todos))["error"])


async def test_a_person_is_asked_and_nobody_is_said_to_be_nobody(hand: Hand) -> None:
    hand.answers = ["blue"]
    done = await hand("clarify", question="Which?", choices=["red", "blue"])
    assert done == {"question": "Which?", "choices_offered": ["red", "blue"], "user_response": "blue"}
    assert "nobody is there" in str((await hand("clarify", question="Which?"))["error"])
    assert "error" in await hand("clarify", question="Which?", choices=list("abcde"))


async def test_what_the_model_is_told_of_all_tools_is_small(hand: Hand) -> None:
    told = [
        {"name": one.name, "description": one.description, "parameters": one.parameters}
        for one in hand.executor().specs
    ]
    names = [one["name"] for one in told]
    assert names == sorted(names)
    assert {"terminal", "process", "read_file", "write_file", "patch", "search_files", "todo", "clarify"} <= set(names)  # type: ignore[arg-type]
    assert len(msgspec.json.encode(told)) < MOST_BYTES
