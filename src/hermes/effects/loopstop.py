"""Notices a run that goes round in circles: tells the model first, and ends the run when it goes on.

Invariant: only calls that brought the same result count; work that gets on is never stopped, and nothing is stopped
without a warning before.
"""

import hashlib
from collections import deque
from collections.abc import Iterator

from hermes.domain.message import CallPart, ResultPart
from hermes.domain.records import dataclass

_SAME_WARNED, _SAME_OVER = 3, 5
_ROUNDS_WARNED, _ROUNDS_OVER = 2, 4
_LONGEST_CYCLE = 4
_KEPT = 24


@dataclass(frozen=True, slots=True)
class Circle:
    """What was noticed, in words. `is_over` says that the run is to end; else the model is to be told."""

    why: str
    is_over: bool


class LoopStop:
    """One run's memory of what was called, and what came of it."""

    def __init__(self) -> None:
        self._last: deque[tuple[str, bytes]] = deque(maxlen=_KEPT)
        self._warned: set[bytes] = set()

    def note(self, call: CallPart, result: ResultPart) -> Circle | None:
        """Remember a call; return what there is to say about it. Each call is warned of once."""
        said = hashlib.sha256()
        for part in (call.name, call.arguments, result.text):
            said.update(part.encode("utf-8", "surrogatepass") + b"\0")
        self._last.append((call.name, said.digest()))
        marks = [mark for _, mark in self._last]
        found = (self._circle(some, why, is_over=is_over) for some, why, is_over in self._suspicions(marks))
        return next((circle for circle in found if circle is not None), None)

    def _suspicions(self, marks: list[bytes]) -> Iterator[tuple[set[bytes], str, bool]]:
        names = [name for name, _ in self._last]
        same = marks.count(marks[-1])
        if same >= _SAME_WARNED:
            times = f"{same} times with the same arguments and brought the same result each time"
            yield {marks[-1]}, f"{names[-1]!r} was called {times}", same >= _SAME_OVER
        for length in range(2, _LONGEST_CYCLE + 1):
            rounds = _rounds(marks, length)
            if rounds >= _ROUNDS_WARNED:
                said = ", ".join(map(repr, names[-length:]))
                why = f"the calls {said} were made {rounds} times in a row with the same results"
                yield set(marks[-length:]), why, rounds >= _ROUNDS_OVER

    def _circle(self, marks: set[bytes], why: str, *, is_over: bool) -> Circle | None:
        is_told = marks <= self._warned
        self._warned |= marks
        if is_over and is_told:
            return Circle(why, is_over=True)
        return None if is_told else Circle(why, is_over=False)


def _rounds(marks: list[bytes], length: int) -> int:
    """Count how often the last calls stand one after the other at the end."""
    last, rounds = marks[-length:], 1
    while marks[-length * (rounds + 1) : -length * rounds] == last:
        rounds += 1
    return rounds
