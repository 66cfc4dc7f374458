"""What commands work on: a person's seat at a session, and a face that shows things. Each face implements it once.

Invariant: a command knows nothing of terminals or platforms beyond this.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from hermes.commands.seat import Seat
from hermes.domain.message import Message, Part

Place = Literal["terminal", "chat"]
Detail = Literal["off", "tools", "all"]
"""What is shown of the work: nothing, a line for each tool, or also what it printed."""

Busy = Literal["interrupt", "queue", "steer"]
"""What happens to words that are said while the assistant works."""


class Look(Protocol):
    """How a terminal looks; a chat has none."""

    detail: Detail
    busy: Busy
    shows_reasoning: bool

    @property
    def skin(self) -> str:
        """The name of the colours and words in use."""
        ...

    def skins(self) -> Sequence[str]:
        """The names of those there are."""
        ...

    def wear(self, skin: str) -> None:
        """Change it. Raises NotFound."""
        ...

    def clear(self) -> None:
        """Empty the screen."""
        ...

    def copy(self, text: str) -> None:
        """Put a text into the clipboard of the terminal. Raises Unsupported where it cannot be done."""
        ...


class Port(Protocol):
    """One person in one place. Methods without `async` return at once."""

    @property
    def place(self) -> Place:
        """Where the person is."""
        ...

    @property
    def seat(self) -> Seat:
        """The session the person is in, and how the next turn is taken."""
        ...

    @property
    def look(self) -> Look | None:
        """How it looks, where that can be changed."""
        ...

    def say(self, text: str) -> None:
        """Show lines to the person."""
        ...

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        ...

    def replay(self, messages: Sequence[Message]) -> None:
        """Show what was said before."""
        ...

    def submit(self, parts: tuple[Part, ...]) -> None:
        """Take a turn with these words, after those that wait already."""
        ...

    def close(self) -> None:
        """Leave."""
        ...
