"""Notices a run that goes round in circles.

Invariant: only calls that brought the same result count; work that gets on is never stopped.
"""

import hashlib
from collections import deque

from hermes.domain.message import CallPart, ResultPart

_SAME = 3
_LONGEST_CYCLE = 4
_KEPT = 24


class LoopStop:
    """One run's memory of what was called, and what came of it."""

    def __init__(self) -> None:
        self._last: deque[tuple[str, bytes]] = deque(maxlen=_KEPT)

    def note(self, call: CallPart, result: ResultPart) -> str | None:
        """Remember a call; return why to stop, in words for the person, or None."""
        said = hashlib.sha256()
        for part in (call.name, call.arguments, result.text):
            said.update(part.encode("utf-8", "surrogatepass") + b"\0")
        self._last.append((call.name, said.digest()))
        marks = [mark for _, mark in self._last]
        if marks.count(marks[-1]) >= _SAME:
            return (
                f"{call.name!r} was called {_SAME} times with the same arguments and brought the same result each time"
            )
        for length in range(2, _LONGEST_CYCLE + 1):
            if len(marks) >= 2 * length and marks[-length:] == marks[-2 * length : -length]:
                names = ", ".join(repr(name) for name, _ in list(self._last)[-length:])
                return f"the calls {names} were made twice in a row with the same results"
        return None
