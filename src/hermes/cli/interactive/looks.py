"""How a chat looks and behaves in a terminal; each person may change it while it goes on."""

import base64
import sys
from collections.abc import Callable
from pathlib import Path

from hermes.cli.interactive import skin as skins
from hermes.cli.interactive.skin import Skin
from hermes.commands.port import Busy, Detail
from hermes.config.sections import Display
from hermes.domain.errors import LimitReached, Unsupported

_MOST_COPIED = 74_000
"""Bytes that terminals take into their clipboard, of which base64 makes a third more."""


class Looks:
    """Implements `Look`. `changed` is called when the skin is another."""

    def __init__(self, home: Path, display: Display, *, is_plain: bool) -> None:
        self._home = home
        self.is_plain = is_plain
        self.detail: Detail = display.tool_progress
        self.busy: Busy = display.busy
        self.shows_reasoning = display.show_reasoning
        self.worn: Skin = skins.load(home, display.skin)
        self.changed: Callable[[], None] = lambda: None
        self.write: Callable[[str], None] = lambda _text: None
        self.empty: Callable[[], None] = lambda: None

    @property
    def skin(self) -> str:
        """The name of the skin that is worn."""
        return self.worn.name

    def skins(self) -> tuple[str, ...]:
        """Return the names of those there are."""
        return skins.names(self._home)

    def wear(self, skin: str) -> None:
        """Change the skin."""
        self.worn = skins.load(self._home, skin)
        self.changed()

    def clear(self) -> None:
        """Empty the screen."""
        self.empty()

    def copy(self, text: str) -> None:
        """Put a text into the clipboard of the terminal, also through ssh."""
        raw = text.encode()
        if self.is_plain or not sys.stdout.isatty():
            raise Unsupported("plain output has no clipboard; /save writes the session to a file")
        if len(raw) > _MOST_COPIED:
            raise LimitReached(f"{len(raw):,} bytes are more than a terminal takes; /save writes the session to a file")
        self.write(f"\x1b]52;c;{base64.b64encode(raw).decode()}\x07")
