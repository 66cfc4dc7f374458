"""Which events somebody wants. Patterns are words between dots or colons: `*` is one word, `>` is all the rest."""

import re
from collections.abc import Sequence
from functools import lru_cache

from hermes.domain.event import OUTSIDE, Event
from hermes.domain.records import dataclass

_WORD = re.compile(r"[.:]")


@dataclass(frozen=True, slots=True)
class Filter:
    """All conditions must hold; of several patterns one must match.

    What outsiders publish is seen only by those who name its stream: no wildcard matches it.
    """

    types: Sequence[str] = (">",)
    streams: Sequence[str] = (">",)
    subject: str | None = None

    def wants(self, event: Event) -> bool:
        """Whether this event is one of those."""
        if self.subject is not None and event.subject != self.subject:
            return False
        if not any(matches(pattern, event.type) for pattern in self.types):
            return False
        return any(_matches_stream(pattern, event.stream) for pattern in self.streams)


def _matches_stream(pattern: str, stream: str) -> bool:
    if stream.startswith(OUTSIDE) and not pattern.startswith(OUTSIDE):
        return False
    return matches(pattern, stream)


def matches(pattern: str, name: str) -> bool:
    """Whether a name is meant by a pattern."""
    if pattern in {name, ">"}:
        return True
    wanted, found = _words(pattern), _WORD.split(name)
    if wanted[-1] == ">":
        wanted = wanted[:-1]
        if len(found) <= len(wanted):
            return False
        found = found[: len(wanted)]
    return len(wanted) == len(found) and all(w in {"*", f} for w, f in zip(wanted, found, strict=True))


@lru_cache(maxsize=1024)
def _words(pattern: str) -> list[str]:
    return _WORD.split(pattern)
