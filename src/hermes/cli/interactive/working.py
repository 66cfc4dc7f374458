"""What the assistant does now, in one line: a face, a verb, what tool runs, and for how long."""

from hermes.cli.interactive.skin import Skin
from hermes.cli.progress import work_line
from hermes.cli.screen import clean, cut
from hermes.domain.clock import Clock
from hermes.domain.event import Data

_FACE, _VERB = 0.4, 5.0
"""Seconds that a face and a verb stay."""


class Working:
    """The spinner. Whoever draws asks for its line."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = 0.0
        self._tools: dict[str, tuple[str, float]] = {}
        self.detail = ""
        self.is_on = False
        self.is_asking = False
        self.is_thinking = False
        self._is_answering = False

    def begin(self) -> None:
        """A turn begins."""
        self._began, self.is_on, self._is_answering = self._clock.monotonic(), True, False
        self._tools.clear()
        self.detail = ""

    def end(self) -> None:
        """It has ended."""
        self.is_on = self.is_asking = self.is_thinking = False
        self._tools.clear()

    def note_text(self) -> None:
        """The answer comes in."""
        self._is_answering = True

    def tool_began(self, data: Data) -> None:
        """A tool runs."""
        self._is_answering = False
        self.detail = ""
        self._tools[str(data["call"])] = (work_line(data), self._clock.monotonic())

    def tool_ended(self, data: Data) -> None:
        """A tool has ended."""
        self._tools.pop(str(data["call"]), None)

    def line(self, skin: Skin, width: int) -> str:
        """Return what to show now."""
        now = self._clock.monotonic()
        passed = now - self._began
        if self.is_asking:
            return "waits for your answer"
        if self._tools:
            what, since = next(reversed(self._tools.values()))
            more = f" and {len(self._tools) - 1} more" if len(self._tools) > 1 else ""
            took = f"{more}  {now - since:.1f}s"
            detail = f"  {clean(self.detail)}" if self.detail else ""
            return cut(cut(what + detail, max(20, width - len(took))) + took, width)
        face = skin.faces[int(passed / _FACE) % len(skin.faces)]
        verb = skin.verbs[int(passed / _VERB) % len(skin.verbs)]
        doing = "thinking" if self.is_thinking else "writing" if self._is_answering else verb
        return cut(f"{face} {doing}… {passed:.0f}s  (Ctrl-C stops)", width)
