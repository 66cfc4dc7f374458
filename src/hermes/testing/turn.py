"""What a model that plays from a script does next: say something, call tools, think, wait, fail."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hermes.domain.errors import HermesError
from hermes.domain.event import JSON
from hermes.domain.model import Finish, Usage

_USAGE = Usage(input=100, output=10)


@dataclass(frozen=True, slots=True)
class Order:
    """A call of a tool. `arguments` may be text, also such as no JSON parser takes."""

    name: str
    arguments: Mapping[str, JSON] | str = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True, slots=True)
class Say:
    """An answer. It streams in pieces of `piece` characters, with `pause` seconds between."""

    text: str = ""
    calls: tuple[Order, ...] = ()
    reasoning: str = ""
    finish: Finish | None = None
    usage: Usage = _USAGE
    piece: int = 8
    pause: float = 0.0

    @property
    def ends(self) -> Finish:
        """Why it ends."""
        return self.finish or ("tool_calls" if self.calls else "stop")

    def pieces(self, text: str) -> list[str]:
        """Cut a text as it streams."""
        return [text[at : at + self.piece] for at in range(0, len(text), self.piece)]


@dataclass(frozen=True, slots=True)
class Fail:
    """An error instead of an answer, `after` having said so much."""

    error: HermesError
    after: str = ""


Turn: TypeAlias = Say | Fail | str
"""A text alone is something to say."""


def call(name: str, **arguments: JSON) -> Say:
    """Let the model call one tool."""
    return Say(calls=(Order(name, arguments),))
