"""A clock that stands still until it is told to go on."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hermes.domain.clock import uuid7

NOON = datetime(2027, 1, 4, 12, 0, tzinfo=UTC)
"""A Monday."""


class FakeClock:
    """Time, ids and chance of a test's making. The same seed gives the same ids.

    `on_advance` is called after each step; a test rings its doorbell there.
    """

    def __init__(self, at: datetime = NOON, *, seed: int = 0) -> None:
        self._at = at
        self._monotonic = 1000.0
        self._random = random.Random(seed)
        self.on_advance: Callable[[], None] = lambda: None

    def now(self) -> datetime:
        """Where the hands stand."""
        return self._at

    def monotonic(self) -> float:
        """Seconds that grow with `advance`, and do not notice `jump`."""
        return self._monotonic

    def new_id(self) -> str:
        """Return the next of this seed's ids; they sort by the millisecond they were made in."""
        return uuid7(int(self._at.timestamp() * 1000), self._random.randbytes(10))

    def chance(self) -> float:
        """Return the next of this seed's numbers."""
        return self._random.random()

    def advance(self, seconds: float = 0, **more: float) -> None:
        """Let time pass: `advance(5)`, `advance(hours=3)`."""
        passed = timedelta(seconds=seconds, **more)
        self._at += passed
        self._monotonic += passed.total_seconds()
        self.on_advance()

    def jump(self, seconds: float = 0, **more: float) -> None:
        """Set the hands, forwards or back, without any time passing."""
        self._at += timedelta(seconds=seconds, **more)
        self.on_advance()
