"""A question with answers to choose from: an approval, or what the model wants to know.

Invariant: keys that were pressed before the question was on the screen are no answer to it.
"""

from collections.abc import Sequence

import anyio

from hermes.domain.approval import Approval, Decision
from hermes.domain.records import dataclass

HEED_AFTER = 0.4
"""Seconds before keys count: whoever types while the question appears does not mean it."""


@dataclass(frozen=True, slots=True)
class Option:
    """One answer. `key` chooses it at once; `has_words` lets the person write."""

    label: str
    key: str
    value: str
    has_words: bool = False


class Menu:
    """One question on the screen. Used on one event loop; `answer` returns once, `None` for no answer."""

    def __init__(self, title: str, options: Sequence[Option], *, now: float) -> None:
        self.title = title
        self.options = tuple(options)
        self.chosen = 0
        self.is_writing = not options
        self._heeds_from = now + HEED_AFTER
        self._answer: tuple[str, str] | None = None
        self._answered = anyio.Event()

    async def answer(self) -> tuple[str, str] | None:
        """Wait for the answer: the value of the option, and what was written."""
        await self._answered.wait()
        return self._answer

    def move(self, step: int) -> None:
        """Go up or down."""
        if self.options:
            self.chosen = (self.chosen + step) % len(self.options)

    def press(self, key: str, *, now: float) -> None:
        """Choose by a key; others mean nothing."""
        found = next((n for n, one in enumerate(self.options) if key.lower() in {one.key, str(n + 1)}), None)
        if found is not None and now >= self._heeds_from:
            self.chosen = found
            self.take(now=now)

    def take(self, *, now: float) -> None:
        """Choose what is marked."""
        if now < self._heeds_from or not self.options:
            return
        option = self.options[self.chosen]
        if option.has_words:
            self.is_writing = True
        else:
            self.settle(option.value)

    def write(self, text: str, *, now: float) -> bool:
        """Answer with words; say whether they were taken."""
        if now < self._heeds_from:
            return False
        self.settle(self.options[self.chosen].value if self.options else "words", text)
        return True

    def back(self) -> None:
        """Leave the writing, or the question without an answer."""
        if self.is_writing and self.options:
            self.is_writing = False
        else:
            self.settle(None)

    def settle(self, value: str | None, words: str = "") -> None:
        """End the question; the first answer counts."""
        if not self._answered.is_set():
            self._answer = None if value is None else (value, words)
            self._answered.set()


def options_for(asked: Approval) -> list[Option]:
    """Return the answers to an approval; a wider yes only where there is a pattern to be covered."""
    wider = [
        Option(f"yes, for this session: {asked.pattern}", "s", "session"),
        Option(f"always: {asked.pattern}", "a", "always"),
    ]
    return [
        Option("yes, this once", "y", "once"),
        *(wider if asked.pattern else ()),
        Option("no", "n", "no"),
        Option("no, and say why", "w", "why", has_words=True),
    ]


def decision(answer: tuple[str, str] | None) -> Decision:
    """Return what an answer decides; none is a no."""
    match answer:
        case ("once", _):
            return Decision("given", "once")
        case ("session", _):
            return Decision("given", "session")
        case ("always", _):
            return Decision("given", "always")
        case (_, words):
            return Decision("denied", reason=words.strip()[:4_000])
        case _:
            return Decision("denied")
