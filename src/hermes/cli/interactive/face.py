"""What a chat in a terminal needs of whatever shows it: the screen, or plain lines."""

from collections.abc import Sequence
from typing import Literal, Protocol

from hermes.agent.turn import Ended
from hermes.commands import Look
from hermes.domain.approval import Approval, Decision
from hermes.domain.event import Event
from hermes.domain.message import Message

Kind = Literal["words", "quiet", "good", "bad"]


class Face(Protocol):
    """One way to show a chat. Methods without `async` return at once and never raise."""

    @property
    def look(self) -> Look:
        """How it looks."""
        ...

    @property
    def is_attended(self) -> bool:
        """Whether a person can be asked."""
        ...

    def say(self, text: str, kind: Kind = "words") -> None:
        """Show lines of ours."""
        ...

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        ...

    def replay(self, messages: Sequence[Message]) -> None:
        """Show what was said before."""
        ...

    def begin(self, shown: str) -> None:
        """A turn begins with these words."""
        ...

    def watch(self, event: Event) -> None:
        """Something happens in the run."""
        ...

    def end(self, ended: Ended | None) -> None:
        """The turn has ended; without `ended` it could not begin."""
        ...

    async def decide(self, asked: Approval) -> Decision:
        """Ask whether something may be done."""
        ...

    async def answer(self, question: str, choices: Sequence[str] = ()) -> str | None:
        """Put a question of the model's."""
        ...
