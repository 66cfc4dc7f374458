"""What the model writes: one step, or several in a row, each a JSON object: a tool, or words.

Invariant: words are shown as they come, and a step that is cut short is never taken for a whole one.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from hermes.domain.event import JSON
from hermes.domain.records import dataclass

FINAL, TOOL, THINK = "final", "tool", "think"
_LONGEST_FINAL, _LONGEST_ARGUMENT = 1200, 600
_WORDS = re.compile(r'\s*\{\s*"(final|think)"\s*:\s*"')
_NAME = re.compile(r'\s*\{\s*"tool"\s*:\s*("(?:[^"\\]|\\.)*")')
_WHOLE_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}|\\[^u]")
_HIGH = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_SMALLEST_LOOP, _LONGEST_PERIOD = 90, 60


@dataclass(frozen=True, slots=True)
class Known:
    """A tool as the model is told of it: the arguments it must give, or may give when none must be."""

    name: str
    summary: str
    arguments: tuple[str, ...]


def known(name: str, description: str, parameters: Mapping[str, JSON]) -> Known:
    """Describe a tool tersely."""
    fields = parameters.get("properties")
    every = tuple(fields) if isinstance(fields, Mapping) else ()
    needed = parameters.get("required")
    chosen = tuple(str(one) for one in needed) if isinstance(needed, Sequence) and needed else every[:2]
    summary = re.split(r"(?<=[.!?])\s", description.strip(), maxsplit=1)[0]
    return Known(name, summary, tuple(one for one in chosen if one not in {FINAL, TOOL, THINK}))


def schema(tools: Sequence[Known]) -> dict[str, JSON]:
    """Return what holds the model to one step."""

    def step(fields: dict[str, JSON]) -> JSON:
        return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}

    text: JSON = {"type": "string", "maxLength": _LONGEST_ARGUMENT}
    steps = [step({TOOL: {"const": one.name}, **dict.fromkeys(one.arguments, text)}) for one in tools]
    return {"oneOf": [*steps, step({FINAL: {"type": "string", "maxLength": _LONGEST_FINAL}})]}


class Taker(Protocol):
    """Takes what steps are made of, as it comes."""

    def say(self, piece: str) -> None:
        """Words for the user."""
        ...

    def think(self, piece: str) -> None:
        """Words for nobody."""
        ...

    def order(self, name: str) -> Callable[[str], None]:
        """A tool; what is returned takes its arguments."""
        ...


class Steps:
    """Reads steps as they stream in. What is no JSON object is words."""

    def __init__(self, taker: Taker) -> None:
        self._taker = taker
        self._held = ""
        self._give: Callable[[str], None] | None = None
        self._is_plain = False
        self._order: Callable[[str], None] | None = None

    def take(self, piece: str) -> None:
        """Take a piece."""
        self._held += piece
        while self._step():
            continue

    def finish(self) -> None:
        """No more will come: give what is left, a tool as far as it was ordered."""
        if self._order is not None:
            self._order(self._held)
        elif self._give is None and self._held.strip() and not self._held.lstrip().startswith("{"):
            self._taker.say(self._held)
        self._held = ""

    def _step(self) -> bool:
        """Go on by one part; return whether there may be more in what is held."""
        if self._give is not None:
            return self._words(self._give)
        start = self._held.lstrip()
        if self._is_plain or (start and not start.startswith("{")):
            self._is_plain = True
            self._taker.say(self._held)
            self._held = ""
            return False
        if found := _WORDS.match(self._held):
            self._give = self._taker.say if found[1] == FINAL else self._taker.think
            self._held = self._held[found.end() :]
            return True
        if self._order is None and (name := _NAME.match(self._held)):
            self._order = self._taker.order(json.loads(name[1]))
        return self._object()

    def _words(self, give: Callable[[str], None]) -> bool:
        """Give the words of a string as far as they are whole."""
        at, text = 0, self._held
        while at < len(text) and text[at] != '"':
            if text[at] != "\\":
                at += 1
                continue
            escape = _WHOLE_ESCAPE.match(text, at)
            if escape is None:
                break
            at = escape.end()
        is_over = at < len(text) and text[at] == '"'
        # Half of a character waits for its other half.
        whole = at if is_over or not (half := _HIGH.search(text, 0, at)) else half.start()
        if words := text[:whole]:
            give(json.loads(f'"{words}"', strict=False))
        self._held = text[whole:]
        if not is_over:
            return False
        end = self._held.find("}")
        if end < 0:
            return False
        self._held, self._give = self._held[end + 1 :], None
        return bool(self._held.strip())

    def _object(self) -> bool:
        """Take a whole object from what is held, when it is there."""
        try:
            value, end = json.JSONDecoder().raw_decode(self._held, len(self._held) - len(self._held.lstrip()))
        except ValueError:
            return False
        self._held = self._held[end:]
        if self._order is not None:
            self._order(json.dumps({name: one for name, one in value.items() if name != TOOL}, ensure_ascii=False))
            self._order = None
        else:
            self._taker.say(json.dumps(value, ensure_ascii=False))
        return bool(self._held.strip())


def is_circling(text: str) -> bool:
    """Whether a text has come to say the same again and again."""
    tail = text[-3 * _LONGEST_PERIOD :]
    for period in range(1, _LONGEST_PERIOD + 1):
        length = max(3 * period, _SMALLEST_LOOP)
        if len(tail) >= length and tail[-length + period :] == tail[-length:-period]:
            return True
    return False


def examples(names: Collection[str]) -> list[str]:
    """Return examples of steps, with tools only where they are there."""
    shown = [one for name, lines in _EXAMPLES.items() if name in names for one in lines]
    return [*shown, *_WITHOUT]


_EXAMPLES = {
    "terminal": (
        '"which files are here?" -> {"tool":"terminal","command":"ls"}',
        '"how much memory is used?" -> {"tool":"terminal","command":"free -h"}',
        '"pwd" -> {"tool":"terminal","command":"pwd"}',
        '"what time is it?" -> {"tool":"terminal","command":"date"}',
        '"which node version is installed?" -> {"tool":"terminal","command":"node --version"}',
    ),
    "read_file": ('"what does setup.cfg say?" -> {"tool":"read_file","path":"setup.cfg"}',),
}
_WITHOUT = (
    '"what is the capital of Spain?" -> {"final":"Madrid."}',
    '"what does RAM mean?" -> {"final":"Random access memory."}',
)
