"""How much a run may use: steps, tokens, money, seconds.

Invariant: what is about to be used is reserved before and settled after, so calls that run side by side cannot
together use more than there is.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from hermes.domain.clock import Clock
from hermes.domain.errors import LimitReached
from hermes.domain.records import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The most of each; None is no limit. `cost` is in millionths of a dollar."""

    steps: int | None = None
    tokens: int | None = None
    cost: int | None = None
    seconds: float | None = None


_PART = re.compile(r"\$?(?P<number>\d{1,12}(?:\.\d{1,9})?)(?P<unit>usd|\$|k|m|t|tokens|s|min|h)?")
_SECONDS = {"s": 1, "min": 60, "h": 3600}
_TOKENS = {"k": 1_000, "m": 1_000_000, "t": 1, "tokens": 1}


def parse_limits(word: str) -> Limits:
    """Read `0.50` (dollars), `200k` (tokens), `10min`, or several by comma; raise ValueError with what was expected."""
    cost = tokens = seconds = None
    for part in (piece.strip().lower() for piece in word.split(",")):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"expected dollars such as 0.50, tokens such as 200k, a time such as 10min, got {part!r}")
        number, unit = float(match["number"]), match["unit"]
        if unit in _SECONDS:
            seconds = number * _SECONDS[unit]
        elif unit in _TOKENS:
            tokens = int(number * _TOKENS[unit])
        else:
            cost = int(number * 1_000_000)
    return Limits(tokens=tokens, cost=cost, seconds=seconds)


@dataclass(frozen=True, slots=True)
class Reserved:
    """What one call may use, until it is settled."""

    tokens: int
    cost: int


class Budget:
    """What one run, session or job may use. Used on one event loop."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._began = clock.monotonic()
        self._open: set[int] = set()
        self._reserved_tokens = self._reserved_cost = 0
        self.steps = self.tokens = self.cost = 0

    @property
    def seconds(self) -> float:
        """How long it has been in use."""
        return self._clock.monotonic() - self._began

    def check(self) -> None:
        """Raise LimitReached when the time is up."""
        _hold("seconds", self.seconds, self._limits.seconds)

    def reserve(self, tokens: int = 0, cost: int = 0) -> Reserved:
        """Set aside what a step may use; raise LimitReached, and set nothing aside, when it is not there."""
        self.check()
        _hold("steps", self.steps + 1, self._limits.steps)
        _hold("tokens", self.tokens + self._reserved_tokens + tokens, self._limits.tokens)
        _hold("cost", self.cost + self._reserved_cost + cost, self._limits.cost)
        self.steps += 1
        self._reserved_tokens += tokens
        self._reserved_cost += cost
        reserved = Reserved(tokens, cost)
        self._open.add(id(reserved))
        return reserved

    def settle(self, reserved: Reserved, tokens: int = 0, cost: int = 0) -> None:
        """Say what a step has really used; settling again is nothing. It never raises: what is used is used."""
        if id(reserved) not in self._open:
            return
        self._open.discard(id(reserved))
        self._reserved_tokens -= reserved.tokens
        self._reserved_cost -= reserved.cost
        self.tokens += tokens
        self.cost += cost

    @contextmanager
    def step(self, tokens: int = 0, cost: int = 0) -> Iterator[Reserved]:
        """Reserve for the block; what the block does not settle is given back when it is left."""
        reserved = self.reserve(tokens, cost)
        try:
            yield reserved
        finally:
            self.settle(reserved)


def _hold(name: str, would_be: float, limit: float | None) -> None:
    if limit is not None and would_be > limit:
        raise LimitReached(f"the limit of {_worded(name, limit)} is reached; raise it, or go on in a new message")


def _worded(name: str, limit: float) -> str:
    if name == "cost":
        dollars = f"{limit / 1_000_000:,.6f}".rstrip("0")
        return f"${dollars}0" if dollars.endswith(".") else f"${dollars}"
    return f"{limit:,} {name.removesuffix('s') if limit == 1 else name}"
