"""What the terminal can do, and how whole pictures are sent to it.

Invariant: between `hold` and `release` nothing reaches the terminal, so that what changes together is seen together.
"""

import os
import sys
from collections.abc import Mapping
from typing import TextIO

from prompt_toolkit.data_structures import Size
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from hermes.cli.interactive.drawing import Colours

_LEAST_COLUMNS, _LEAST_ROWS = 20, 5
_DEPTHS = {
    "none": ColorDepth.DEPTH_1_BIT,
    "standard": ColorDepth.DEPTH_4_BIT,
    "256": ColorDepth.DEPTH_8_BIT,
    "truecolor": ColorDepth.DEPTH_24_BIT,
}
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know these show what is between at once; others pass them over."""


class Held(Vt100_Output):
    """Output that can be held back for a moment."""

    is_held = False

    def flush(self) -> None:
        """Send what was written, unless it is held back."""
        if not self.is_held:
            super().flush()

    def hold(self) -> None:
        """Keep what is written from now on."""
        self.is_held = True
        self.write_raw(_BEGIN)

    def release(self) -> None:
        """Send it."""
        self.write_raw(_END)
        self.is_held = False
        self.flush()


def open_output(colours: Colours, term: str) -> Held:
    """Return the terminal as something to draw on."""
    stdout: TextIO = sys.stdout
    return Held(
        stdout,
        get_size=lambda: size_of(stdout.fileno()),
        term=term,
        default_color_depth=_DEPTHS[colours],
        enable_bell=False,
        enable_cpr=False,
    )


def size_of(handle: int) -> Size:
    """Return how large the terminal is; one that does not say is taken for 80 to 24."""
    try:
        columns, rows = os.get_terminal_size(handle)
    except OSError:
        columns, rows = 0, 0
    return Size(rows=max(_LEAST_ROWS, rows or 24), columns=max(_LEAST_COLUMNS, columns or 80))


def colours_of(environment: Mapping[str, str]) -> Colours:
    """Say how many colours the terminal has, and may be used."""
    term = environment.get("TERM", "")
    if environment.get("NO_COLOR") or term in {"", "dumb"}:
        return "none"
    if environment.get("COLORTERM", "").lower() in {"truecolor", "24bit"}:
        return "truecolor"
    return "256" if "256color" in term else "standard"


def is_capable(environment: Mapping[str, str]) -> bool:
    """Whether a screen can be drawn here: a terminal on both ends that moves its cursor."""
    if environment.get("TERM", "") in {"", "dumb", "unknown"}:
        return False
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
