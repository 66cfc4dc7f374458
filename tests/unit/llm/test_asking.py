"""What another try may change is tried again; nothing else is."""

import math

import anyio
import pytest

from hermes.domain.errors import Denied, HermesError, LimitReached, Misconfigured, NotFound, Unavailable
from hermes.domain.model import ContextOverflow, Cut, Delta, Request
from hermes.llm.asking import ask
from hermes.testing.clock import FakeClock
from hermes.testing.scripted import ScriptedProvider
from hermes.testing.turn import Fail, Say, Turn

pytestmark = pytest.mark.anyio
REQUEST = Request(b"", ())


class Try:
    """A model with a script, a clock, and pauses that take no time."""

    def __init__(self, *turns: Turn) -> None:
        self.clock = FakeClock()
        self.provider = ScriptedProvider(self.clock, turns)
        self.pauses: list[float] = []
        self.shown: list[Delta] = []

    async def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(seconds)

    async def ask(self, attempts: int = 4, seconds: float = 3600.0) -> str:
        reply = await ask(
            self.provider,
            REQUEST,
            self.shown.append,
            clock=self.clock,
            attempts=attempts,
            seconds=seconds,
            wait=self.wait,
        )
        return reply.message.text


async def test_a_busy_model_is_asked_again_with_growing_pauses_and_says_so() -> None:
    tried = Try(*[Fail(Unavailable("busy", retry_after=0))] * 3, "There.")
    assert await tried.ask() == "There."
    assert [d.kind for d in tried.shown][:3] == ["retry"] * 3
    assert "busy" in tried.shown[0].text
    low, high = (0.25, 0.75)
    for number, pause in enumerate(tried.pauses):
        assert low * 2**number <= pause <= high * 2**number


async def test_the_pause_a_vendor_asks_for_is_kept_and_not_shortened() -> None:
    tried = Try(Fail(Unavailable("busy", retry_after=17)), "There.")
    await tried.ask()
    assert tried.pauses == [17]


async def test_a_pause_beyond_the_deadline_is_not_waited_for() -> None:
    tried = Try(Fail(Unavailable("busy", retry_after=120)), "There.")
    with pytest.raises(Unavailable, match="busy"):
        await tried.ask(seconds=60)
    assert (tried.pauses, tried.provider.left) == ([], 1)


async def test_the_last_error_is_the_one_that_is_raised() -> None:
    tried = Try(*(Fail(Unavailable(f"busy {number}", retry_after=0)) for number in range(9)))
    with pytest.raises(Unavailable, match="busy 2"):
        await tried.ask(attempts=3)
    assert tried.provider.left == 6


@pytest.mark.parametrize("kind", [Denied, NotFound, Misconfigured, ContextOverflow, LimitReached])
async def test_what_another_try_cannot_change_is_not_tried_again(kind: type[HermesError]) -> None:
    tried = Try(Fail(kind("no")), "There.")
    with pytest.raises(kind):
        await tried.ask()
    assert (tried.shown, tried.provider.left) == ([], 1)


async def test_an_answer_that_broke_off_is_asked_for_as_a_whole() -> None:
    tried = Try(Fail(Unavailable("gone"), after="Once up"), "Once upon a time.")
    assert await tried.ask() == "Once upon a time."
    kinds = [d.kind for d in tried.shown]
    assert kinds[:2] == ["text", "retry"]
    after = "".join(d.text for d in tried.shown[kinds.index("retry") + 1 :])
    assert after == "Once upon a time."
    with pytest.raises(Cut):
        await Try(Fail(Unavailable("gone"), after="Once up")).ask(attempts=1)


async def test_a_model_that_never_ends_ends_at_the_deadline_over_all() -> None:
    tried = Try(Say("x" * 100, piece=1, pause=10))
    with pytest.raises(Unavailable, match="all tries together"), anyio.fail_after(5):
        await tried.ask(seconds=0.05, attempts=1)
    assert not math.isnan(tried.clock.monotonic())
