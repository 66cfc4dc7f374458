"""How much may be used, and when to stop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.errors import LimitReached
from hermes.domain.message import CallId, CallPart, ResultPart
from hermes.effects.budget import Budget, Limits
from hermes.effects.loopstop import LoopStop
from hermes.effects.spill import clip
from hermes.testing.clock import FakeClock


@pytest.mark.parametrize(
    ("limits", "said"),
    [(Limits(steps=2), "2 steps"), (Limits(tokens=250), "250 tokens"), (Limits(cost=20), "20 millionths of a dollar")],
)
def test_a_budget_stops_at_its_limit_and_names_it(limits: Limits, said: str) -> None:
    budget = Budget(limits, FakeClock())
    for _ in range(2):
        budget.settle(budget.reserve(tokens=100, cost=10), tokens=100, cost=10)
    with pytest.raises(LimitReached, match=said):
        budget.reserve(tokens=100, cost=10)


def test_a_budget_ends_with_its_time() -> None:
    clock = FakeClock()
    budget = Budget(Limits(seconds=60), clock)
    budget.reserve()
    clock.advance(61)
    with pytest.raises(LimitReached, match="60 seconds"):
        budget.reserve()


def test_without_limits_there_is_no_end() -> None:
    budget = Budget(Limits(), FakeClock())
    for _ in range(1_000):
        budget.reserve(tokens=10**9, cost=10**9)


def test_what_runs_side_by_side_cannot_use_more_than_there_is() -> None:
    budget = Budget(Limits(tokens=100), FakeClock())
    first = budget.reserve(tokens=80)
    with pytest.raises(LimitReached):
        budget.reserve(tokens=80)
    budget.settle(first, tokens=10)
    budget.settle(first, tokens=10)
    assert budget.tokens == 10
    budget.reserve(tokens=80)


def test_what_was_not_used_is_given_back_also_after_a_failure() -> None:
    budget = Budget(Limits(tokens=100), FakeClock())
    with pytest.raises(ValueError, match="x"), budget.step(tokens=100):
        raise ValueError("x")
    assert budget.tokens == 0
    budget.reserve(tokens=100)


def step(loop: LoopStop, name: str, result: str = "same") -> str | None:
    return loop.note(CallPart(CallId("c"), name, "{}"), ResultPart(CallId("c"), name, result))


def test_the_same_call_with_the_same_result_three_times_is_a_circle() -> None:
    loop = LoopStop()
    assert [step(loop, "a"), step(loop, "a")] == [None, None]
    assert "'a' was called 3 times" in str(step(loop, "a"))


def test_going_back_and_forth_is_a_circle() -> None:
    loop = LoopStop()
    assert [step(loop, name) for name in "aba"] == [None, None, None]
    assert "'a', 'b'" in str(step(loop, "b"))


def test_results_that_change_are_no_circle() -> None:
    loop = LoopStop()
    assert [step(loop, "poll", str(n)) for n in range(100)] == [None] * 100
    assert [step(loop, name, str(n)) for n in range(50) for name in "ab"] == [None] * 100


def test_many_different_calls_are_no_circle() -> None:
    loop = LoopStop()
    assert [step(loop, str(n)) for n in range(200)] == [None] * 200


@given(st.text(), st.integers(50, 500), st.integers(4, 50))
def test_a_clipped_text_is_short_enough(text: str, most: int, lines: int) -> None:
    cut = clip(text, most, lines)
    if cut is None:
        assert len(text.encode("utf-8", "surrogatepass")) <= most
    else:
        assert len(cut.text.encode()) <= most + 60
        assert cut.left_out > 0


def test_a_clipped_text_keeps_its_ends() -> None:
    cut = clip("\n".join(f"line {n}" for n in range(1_000)), 200, 50, where="/x")
    assert cut is not None
    assert cut.text.startswith("line 0\n")
    assert cut.text.endswith("line 999")
    assert "read_file /x" in cut.text
