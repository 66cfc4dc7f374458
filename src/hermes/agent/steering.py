"""What a person says into a run that is under way: a word for the model to read next, or stop.

Invariant: a word that was taken in reaches the model in this run, or is handed back as not read.
"""

from collections import deque

import anyio

from hermes.domain.errors import LimitReached

_MOST_WORDS = 100


class Steering:
    """The wheel of one run. Callable from the event loop only; `steer` and `interrupt` return at once."""

    def __init__(self) -> None:
        self._words: deque[str] = deque()
        self._scope: anyio.CancelScope | None = None
        self.is_interrupted = False

    def steer(self, text: str) -> None:
        """Let the model read this before its next step. Raises LimitReached when too much waits already."""
        if len(self._words) >= _MOST_WORDS:
            raise LimitReached(f"{_MOST_WORDS} words wait to be read by the model; let it read them first")
        self._words.append(text)

    def interrupt(self) -> None:
        """Stop what is going on; the run ends as cancelled, and what it has done stays."""
        self.is_interrupted = True
        if self._scope is not None:
            self._scope.cancel()

    @property
    def is_waiting(self) -> bool:
        """Whether something was said that the model has not read."""
        return bool(self._words)

    def take(self) -> list[str]:
        """Give what was said since the last time."""
        words = list(self._words)
        self._words.clear()
        return words

    def holding(self, scope: anyio.CancelScope) -> anyio.CancelScope:
        """Let `interrupt` cancel this scope, also when it came before."""
        self._scope = scope
        if self.is_interrupted:
            scope.cancel()
        return scope
