"""Bringing weights to this machine: where they come from is shown, one yes is asked, and a line says how far it is."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from hermes.cli.screen import clean, columns, cut, say, size
from hermes.config import Settings
from hermes.config.variables import process_environment
from hermes.domain.errors import Denied

if TYPE_CHECKING:
    from hermes.llm.catalogue.weights import Weights
    from hermes.llm.local.pulling import Index


def pull(settings: Settings, wanted: "Weights", *, is_agreed: bool, index: "Index | None" = None) -> None:
    """Bring weights, or check those that are here. Raises Denied without a yes, and what `Pull.run` raises."""
    import anyio

    from hermes.llm.local.opening import require_engine
    from hermes.llm.local.pulling import Pip, Pull
    from hermes.llm.local.sources import sources

    require_engine()
    if not wanted.is_there(settings.home):
        _show_origin(settings, wanted)
        if not is_agreed:
            _ask()
    line = Line(_write, is_drawn=sys.stderr.isatty())
    try:
        path = anyio.run(
            Pull(wanted, sources(wanted), settings.home, index or Pip(process_environment()), line.tell, line.say).run
        )
    finally:
        line.end()
    say(f"{wanted.name} is ready in {clean(str(path))}; `hermes -z 'which files are here?'` asks it")


def _show_origin(settings: Settings, wanted: "Weights") -> None:
    from hermes.llm.local.sources import sources

    say(f"{wanted.title}: {size(wanted.size)} to {clean(str(wanted.path(settings.home).parent))}, {wanted.licence}")
    for number, source in enumerate(sources(wanted), 1):
        say(f"  {'from' if number == 1 else 'else from'} {source.said}")
    say(f"  only a file with the SHA-256 {wanted.sha256} is used")


def _ask() -> None:
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Denied("nobody is there to say yes to this download; `hermes model pull --yes` says it")
    sys.stderr.write("Download it? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes", "j", "ja"}:
        raise Denied("the download was not agreed to, and nothing was loaded; a key works too: see `hermes model list`")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


class Line:
    """How far a download is: one line that is drawn again on a terminal, elsewhere a line for each tenth."""

    def __init__(self, write: Callable[[str], None], *, is_drawn: bool) -> None:
        self._write = write
        self._is_drawn = is_drawn
        self._tenth = -1
        self._is_open = False

    def tell(self, what: str, done: int, whole: int) -> None:
        """Show how far it is."""
        share = done * 100 // max(whole, 1)
        text = f"{share:3d} %  {size(done)} of {size(whole)}  {clean(what)}"
        if self._is_drawn:
            self._write(f"\r\x1b[2K{cut(text, columns() - 1)}")
            self._is_open = True
        elif share // 10 != self._tenth:
            self._tenth = share // 10
            self._write(f"· {text}\n")

    def say(self, text: str) -> None:
        """Show a line of its own."""
        self.end()
        self._write(f"· {clean(text)}\n")

    def end(self) -> None:
        """End the line that is drawn."""
        if self._is_open:
            self._write("\n")
            self._is_open = False
