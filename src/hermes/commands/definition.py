"""What a command is, and how the one that is meant is found.

Invariant: a name or an alias means one command; a beginning means one only when nothing else begins so.
"""

import difflib
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from hermes.commands.port import Place, Port
from hermes.domain.errors import Conflict, NotFound
from hermes.domain.records import dataclass

Act: TypeAlias = Callable[[Port, str], Awaitable[None]]
"""Does a command with the words after it. Raises HermesError, which the face shows."""

Category = Literal["session", "settings", "tools", "info"]
CATEGORIES: tuple[Category, ...] = ("session", "settings", "tools", "info")

_WORD = re.compile(r"/([a-z][a-z_-]*)(?=\s|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDef:
    """One command. `arguments` is shown in the help; `choices` are words that complete it."""

    name: str
    act: Act
    summary: str
    category: Category
    aliases: tuple[str, ...] = ()
    arguments: str = ""
    choices: tuple[str, ...] = ()
    where: Literal["both"] | Place = "both"
    while_running: bool = False
    """Whether it is done also while the assistant works; others are refused then."""

    @property
    def usage(self) -> str:
        """How it is written."""
        return f"/{self.name} {self.arguments}".rstrip()


class Parsed(NamedTuple):
    """A line that orders something: the word after the slash, and the rest."""

    word: str
    rest: str


def parse(line: str) -> Parsed | None:
    """Return what a line orders; None for words to the assistant, such as a path that begins with a slash."""
    # What cannot be stored or looked for is no part of an order.
    plain = line.replace("\0", "").encode("utf-8", "replace").decode().lstrip()
    match = _WORD.match(plain)
    if match is None:
        return None
    return Parsed(match[1].lower().replace("_", "-"), plain[match.end() :].strip())


class Registry:
    """All commands of one place."""

    def __init__(self, commands: Sequence[CommandDef]) -> None:
        self.commands = tuple(commands)
        self._by_name: dict[str, CommandDef] = {}
        for one in self.commands:
            for name in (one.name, *one.aliases):
                if name in self._by_name:
                    raise Conflict(f"two commands are called {name!r}; rename one of them")
                self._by_name[name] = one

    def at(self, place: Place) -> "Registry":
        """Return those that may be used in a place."""
        return Registry([one for one in self.commands if one.where in {"both", place}])

    def find(self, word: str) -> CommandDef:
        """Return the command of a word, an alias or a beginning. Raises NotFound and Conflict with what there is."""
        if word in self._by_name:
            return self._by_name[word]
        found = {one.name: one for name, one in self._by_name.items() if name.startswith(word)}
        if len(found) == 1:
            return next(iter(found.values()))
        if found:
            raise Conflict(f"/{word} may be {', '.join(f'/{name}' for name in found)}; say more of it")
        near = difflib.get_close_matches(word, self._by_name, n=1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them"
        raise NotFound(f"there is no command /{word}; {hint}")
