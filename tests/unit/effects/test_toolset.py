"""What can be made of groups of tools."""

from datetime import timedelta

import pytest
from tests.unit.effects.conftest import Person, Stage

from hermes.domain.errors import Conflict, Misconfigured
from hermes.domain.tool import Tool, Toolset
from hermes.effects.tool import FunctionTool, tool, touches_nothing
from hermes.effects.toolset import (
    Tools,
    approved,
    budgeted,
    combined,
    equipped,
    filtered,
    prefixed,
    renamed,
    timed,
)

pytestmark = pytest.mark.anyio


def named(name: str, *, env: tuple[str, ...] = ()) -> FunctionTool:
    @tool(toolset="t", access="write", name=name, effects=touches_nothing, requires_env=env)
    async def work() -> str:
        """Work."""
        return name

    return work


A, B = named("a"), named("b", env=("KEY",))
BOTH = Tools("t", (A, B), "how to use it")


def names(toolset: Toolset) -> list[str]:
    return [one.spec.name for one in toolset.tools()]


async def say(stage: Stage, one: Tool[object], times: int = 1) -> list[str]:
    done = await stage.perform(stage.executor(one), *[(one.spec.name, "{}")] * times)
    return [each.result.text for each in done]


def test_groups_come_and_go_as_one() -> None:
    is_there = False
    group = Tools("t", (A,), "how", is_available=lambda: is_there)
    assert (names(group), group.instructions()) == ([], "")
    is_there = True
    assert (names(group), group.instructions()) == (["a"], "how")


def test_combined_refuses_two_of_one_name() -> None:
    both = combined([BOTH, Tools("u", (named("c"),), "more")])
    assert (names(both), both.instructions()) == (["a", "b", "c"], "how to use it\n\nmore")
    with pytest.raises(Conflict, match="'a'"):
        combined([BOTH, Tools("u", (named("a"),))]).tools()


def test_filtered_and_equipped_leave_tools_out() -> None:
    assert names(filtered(BOTH, lambda spec: spec.name == "b")) == ["b"]
    assert names(equipped(BOTH, ())) == ["a"]
    assert names(equipped(BOTH, {"KEY": "x"})) == ["a", "b"]
    assert filtered(BOTH, lambda _: False).instructions() == ""


async def test_renamed_and_prefixed_tools_are_the_same_tools(stage: Stage) -> None:
    assert names(renamed(BOTH, {"a": "z"})) == ["z", "b"]
    assert names(prefixed(BOTH, "x_")) == ["x_a", "x_b"]
    assert await say(stage, prefixed(BOTH, "x_").tools()[0]) == ["a"]


def test_timed_only_shortens() -> None:
    (one, _) = timed(BOTH, timedelta(seconds=3)).tools()
    assert one.spec.timeout == timedelta(seconds=3)
    (one, _) = timed(BOTH, timedelta(days=3)).tools()
    assert one.spec.timeout == A.spec.timeout
    with pytest.raises(Misconfigured):
        timed(BOTH, timedelta(0))


async def test_approved_asks_whatever_the_tool_touches(stage: Stage) -> None:
    (one, other) = approved(BOTH, {"a"}).tools()
    assert "unseen-tool" in (await say(stage, one))[0]
    assert await say(stage, other) == ["b"]
    stage.approver = person = Person()
    assert await say(stage, one) == ["a"]
    assert len(person.asked) == 1


async def test_budgeted_counts_the_calls_of_a_run_together(stage: Stage) -> None:
    (one, other) = budgeted(BOTH, 3).tools()
    assert await say(stage, one, 2) == ["a", "a"]
    (last, refused) = await say(stage, other, 2)
    assert last == "b"
    assert "was used 3 times in this run" in refused
