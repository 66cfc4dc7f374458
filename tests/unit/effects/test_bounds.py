"""How much may be used, and when to stop."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.errors import LimitReached
from hermes.domain.message import CallId, CallPart, ResultPart
from hermes.effects.budget import Budget, Limits
from hermes.effects.loopstop import Circle, LoopStop
from hermes.effects.spill import clip
from hermes.testing.clock import FakeClock


@pytest.mark.parametrize(
    ("limits", "said"),
    [(Limits(steps=2), "2 steps"), (Limits(tokens=250), "250 tokens"), (Limits(cost=20), r"\$0\.00002 is")],
)
def test_a_budget_stops_at_its_limit_and_names_it(limits: Limits, said: str) -> None:
    budget = Budget(limits, FakeClock())
    for _ in range(2):
        budget.settle(budget.reserve(tokens=100, cost=10), tokens=100, cost=10)
    with pytest.raises(LimitReached, match=said):
        budget.reserve(tokens=100, cost=10)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(steps=0), "0 steps"),
        (Limits(steps=1), "1 step is"),
        (Limits(tokens=1), "1 token is"),
        (Limits(cost=100), r"\$0\.0001 is"),
        (Limits(cost=2_000_000), r"\$2\.0 is"),
        (Limits(cost=1_500_000), r"\$1\.5 is"),
        (Limits(steps=1_000), "1,000 steps"),
    ],
)
def test_a_limit_is_named_in_words_for_people(limits: Limits, said: str) -> None:
    budget = Budget(limits, FakeClock())
    budget.steps = limits.steps or 0
    with pytest.raises(LimitReached, match=said):
        budget.reserve(tokens=2, cost=3_000_000)


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


def step(loop: LoopStop, name: str, result: str = "same") -> Circle | None:
    return loop.note(CallPart(CallId("c"), name, "{}"), ResultPart(CallId("c"), name, result))


def test_the_same_call_with_the_same_result_is_warned_of_and_then_a_circle() -> None:
    loop = LoopStop()
    said = [step(loop, "a") for _ in range(5)]
    assert [said[0], said[1], said[3]] == [None, None, None]
    assert said[2] is not None
    assert (said[2].is_over, "'a' was called 3 times" in said[2].why) == (False, True)
    assert said[4] is not None
    assert said[4].is_over


def test_going_back_and_forth_is_warned_of_and_then_a_circle() -> None:
    loop = LoopStop()
    said = [step(loop, name) for name in "abababab"]
    assert [at for at, one in enumerate(said) if one is not None] == [3, 7]
    assert said[3] is not None
    assert (said[3].is_over, "'a', 'b'" in said[3].why) == (False, True)
    assert said[7] is not None
    assert said[7].is_over


def test_waiting_for_something_that_comes_at_last_is_no_circle() -> None:
    loop = LoopStop()
    said = [step(loop, "poll", "not yet") for _ in range(4)] + [step(loop, "poll", "ready")]
    assert not any(one.is_over for one in said if one is not None)


@given(st.lists(st.sampled_from("abc"), max_size=60))
def test_nothing_is_stopped_that_was_not_warned_of(names: list[str]) -> None:
    loop, warned = LoopStop(), 0
    for name in names:
        said = step(loop, name)
        if said is not None and said.is_over:
            assert warned
            return
        warned += said is not None


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
