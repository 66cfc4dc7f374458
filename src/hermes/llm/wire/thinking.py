"""Tells thoughts and calls from words in models that write all of it into one text, between tags.

Invariant: the pieces that come out, put together, are the text that went in without its tags; of a text that may still
become a tag only the end is held back.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["text", "reasoning"]

_OPEN = "<think>"
_CLOSE = "</think>"
_CALL = "<tool_call>"


class Splitter:
    """Takes the pieces of one text in order and gives them on by kind. Thoughts stand at the beginning or nowhere."""

    def __init__(self, give: Callable[[Kind, str], None]) -> None:
        self._give = give
        self._held = ""
        self._state: Literal["start", "inside", "after"] = "start"

    @property
    def is_through(self) -> bool:
        """Whether everything from here on is words."""
        return self._state == "after"

    def take(self, piece: str) -> None:
        """Take the next piece."""
        text, self._held = self._held + piece, ""
        if self._state == "start":
            begun = text.lstrip()
            if len(begun) < len(_OPEN) and _OPEN.startswith(begun):
                self._held = text
                return
            if begun.startswith(_OPEN):
                self._state, text = "inside", begun[len(_OPEN) :].lstrip("\n")
            else:
                self._state = "after"
        if self._state == "inside":
            thought, closer, text = text.partition(_CLOSE)
            if not closer:
                length = _overlap(thought, _CLOSE)
                self._held = thought[len(thought) - length :]
                thought = thought[: len(thought) - length]
            if thought:
                self._give("reasoning", thought)
            if not closer:
                return
            self._state, text = "after", text.lstrip("\n")
        if text:
            self._give("text", text)

    def finish(self) -> None:
        """The text has ended: give what was held back."""
        if self._held:
            self._give("reasoning" if self._state == "inside" else "text", self._held)
            self._held = ""


class Curtain:
    """Holds back what a person need not see: calls that are written as text. If they are none, they are shown late."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._held = ""
        self._hidden: list[str] = []

    def take(self, piece: str) -> None:
        """Take the next piece of the text."""
        if self._hidden:
            self._hidden.append(piece)
            return
        if not self._held and "<" not in piece:
            self._show(piece)
            return
        text = self._held + piece
        words, tag, rest = text.partition(_CALL)
        if tag:
            self._hidden, self._held = [tag, rest], ""
        else:
            length = _overlap(text, _CALL)
            words, self._held = text[: len(text) - length], text[len(text) - length :]
        if words:
            self._show(words)

    def finish(self, *, is_call: bool) -> None:
        """The text has ended: show what was held back, unless it was a call."""
        rest = "".join([*self._hidden, self._held])
        self._held, self._hidden = "", []
        if rest and not is_call:
            self._show(rest)


def _overlap(text: str, tag: str) -> int:
    """Return how many letters at the end could be the beginning of a tag."""
    return next((n for n in range(min(len(tag) - 1, len(text)), 0, -1) if tag.startswith(text[-n:])), 0)


def unopened(text: str) -> tuple[str, str]:
    """Part a text whose opening tag stood in the prompt: what is before the closing tag was thought."""
    thought, closer, words = text.partition(_CLOSE)
    return (thought.strip(), words.lstrip("\n")) if closer and _OPEN not in thought else ("", text)
