"""The line at the very bottom: model, how full the context is, what it has cost, what holds commands, what waits.

Invariant: it fits; what is less important goes first.
"""

from prompt_toolkit.formatted_text import StyleAndTextTuples

from hermes.cli.screen import clean, cut, width
from hermes.commands import Seat
from hermes.commands.words import many, money
from hermes.domain.machine import Protection
from hermes.domain.records import dataclass

_HOLDS = {"sandbox": "sandbox", "confined": "confined", "none": "UNSANDBOXED", None: "…"}


@dataclass(slots=True)
class Status:
    """What the line says; `protection` is None until the machine is open."""

    seat: Seat
    protection: Protection | None = None
    hint: str = ""

    def line(self, room: int) -> StyleAndTextTuples:
        """Return the line for so many cells."""
        seat = self.seat
        if self.hint:
            return [("class:accent", cut(self.hint, room))]
        window = max(seat.assistant.window, 1)
        full = min(seat.tokens * 100 // window, 100)
        is_open = seat.mode == "full" or self.protection == "none"
        holds = "UNSANDBOXED" if is_open else f"{_HOLDS[self.protection]}: {seat.mode}"
        # The most important first; those at the end are left out when there is no room.
        parts = [
            ("class:quiet", clean(seat.assistant.model_name.rpartition("/")[2])),
            ("class:bad" if is_open else "class:quiet", holds),
            ("class:bad" if full >= 80 else "class:quiet", f"{full}% of {_short(window)}"),
            ("class:accent", f"{many(len(seat.waiting), 'message')} waiting" if seat.waiting else ""),
            ("class:quiet", money(seat.spent) if seat.spent else ""),
            ("class:quiet", clean(seat.personality)),
            ("class:quiet", clean(seat.session.title or "")),
        ]
        shown: StyleAndTextTuples = []
        for style, text in parts:
            gap = " · " if shown else ""
            if not text or width(gap + text) > room:
                continue
            shown += [("class:quiet", gap), (style, text)]
            room -= width(gap + text)
        return shown


def _short(tokens: int) -> str:
    return f"{tokens / 1_000_000:.3g}M" if tokens >= 1_000_000 else f"{tokens // 1000}k"
