"""Draws what goes into the scrollback: Markdown, tool lines, diffs, tables. Text in, lines for a terminal out.

Invariant: whatever a model or a tool has written was made harmless first; the only orders to the terminal are ours.
"""

import json
import re
from collections.abc import Sequence
from io import StringIO
from typing import ClassVar, Literal, TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, Markdown
from rich.padding import Padding
from rich.style import Style
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from hermes.cli.interactive.skin import Skin
from hermes.cli.progress import harmless, remarks, work_line
from hermes.cli.screen import clean, cut
from hermes.cli.screen import width as cells_of
from hermes.domain.event import Data

Colours: TypeAlias = Literal["none", "standard", "256", "truecolor"]
_WIDEST = 120
_MOST_DIFF = 40
_MOST_OUTPUT = 12
_SHORT = 12
_LEAST = 8
_GAP_CELLS = 2
_FENCE = re.compile(r"^ {0,3}(```|~~~)|^ {4}|^\t", re.MULTILINE)
_GAP = re.compile(r"\n{3,}")
_TRAILING = re.compile(r"[ ]+((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)


class _Heading(Heading):
    """A heading at the left, as all other text."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it."""
        self.text.justify = "left"
        yield self.text


class _Code(CodeBlock):
    """Code without a background, so that it can be read in any terminal and copied from it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it."""
        code = str(self.text).rstrip("\n")
        drawn = Syntax(code, self.lexer_name, theme=self.theme, word_wrap=True, background_color="default")
        yield Padding(drawn, (0, 0, 0, 2))


class _Words(Markdown):
    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
    }


class Drawing:
    """Draws in one skin. `width` is asked each time: the terminal may change."""

    def __init__(self, skin: Skin, colours: Colours) -> None:
        self.skin = skin
        self._colours = colours

    def _drawn(self, what: RenderableType, width: int) -> str:
        accent = self.skin.accent or "bold"
        theme = Theme({"markdown.code": accent, "markdown.item.bullet": accent, "markdown.item.number": accent})
        console = Console(
            file=StringIO(),
            force_terminal=True,
            width=max(20, min(width, _WIDEST)),
            color_system=None if self._colours == "none" else self._colours,
            no_color=self._colours == "none",
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
            theme=theme,
        )
        with console.capture() as captured:
            console.print(what)
        return _TRAILING.sub(r"\1", captured.get())

    def words(self, text: str, kind: str, width: int) -> str:
        """Draw words in a colour of the skin; its lines are wrapped."""
        return self._drawn(Text(harmless(text), style=self.skin.style(kind)), width)

    def markdown(self, text: str, width: int) -> str:
        """Draw a block of an answer."""
        drawn = self._drawn(_Words(harmless(text), code_theme=self.skin.code, hyperlinks=False), width)
        if _FENCE.search(text) is None:
            drawn = _GAP.sub("\n\n", drawn)
        return f"{drawn.strip(chr(10))}\n"

    def thought(self, text: str, width: int) -> str:
        """Draw what the model thinks aloud."""
        style = Style.parse(self.skin.quiet or "none") + Style(italic=True)
        return self._drawn(Padding(Text(harmless(text.strip()), style=style), (0, 0, 0, 2)), width)

    def asked(self, text: str, width: int) -> str:
        """Draw what the person has said; a long text shows its beginning."""
        lines = harmless(text).split("\n")
        shown = lines if len(lines) <= 8 else [*lines[:4], f"… {len(lines) - 4} more lines"]
        said = Text()
        for number, line in enumerate(shown):
            mark = f"{self.skin.prompt} " if number == 0 else "  "
            said.append(mark, style=self.skin.accent)
            said.append(cut(line, 4 * width) + ("\n" if number < len(shown) - 1 else ""), style="bold")
        return self._drawn(said, width)

    def tool(self, data: Data, width: int, *, has_output: bool) -> str:
        """Draw a tool that has ended: its line, why it failed, the diff of what it changed."""
        seconds = data.get("seconds")
        took = f"  {seconds:.1f}s" if isinstance(seconds, (int, float)) else ""
        is_error, text = bool(data.get("is_error")), str(data.get("text", ""))
        line = cut(work_line(data), max(8, width - len(took) - 1)) + took
        said = Text(line, style=self.skin.style("bad" if is_error else "quiet"))
        for remark in remarks(data):
            said.append(f"\n┊   ↳ {cut(clean(remark), max(20, width * 2))}")
        if is_error:
            return self._drawn(said, width)
        told = _fields(text)
        if isinstance(diff := told.get("diff"), str) and diff:
            said.append("\n")
            said.append_text(self._diff(diff, width))
        elif has_output:
            output = told.get("output", told.get("content", text))
            said.append(_indented(str(output), width))
        return self._drawn(said, width)

    def _diff(self, diff: str, width: int) -> Text:
        lines = diff.rstrip("\n").split("\n")
        said = Text()
        for line in lines[:_MOST_DIFF]:
            kind = {"+": "good", "-": "bad", "@": "accent"}.get(line[:1], "quiet")
            said.append(f"┊   {cut(clean(line), max(20, width - 5))}\n", style=self.skin.style(kind))
        if len(lines) > _MOST_DIFF:
            said.append(f"┊   … {len(lines) - _MOST_DIFF} more lines\n", style=self.skin.style("quiet"))
        said.right_crop(1)
        return said

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
        """Draw a table that fits the screen."""
        cells = [[clean(cell) for cell in row] for row in rows]
        # Two columns are a list to be read; more are a table to be looked over, a line for each row.
        is_table = len(headings) > 2
        if is_table:
            _fit(cells, headings, width)
        table = Table(box=None, pad_edge=False, header_style=self.skin.accent or "bold", show_header=any(headings))
        for number, heading in enumerate(headings):
            is_short = max((cells_of(row[number]) for row in cells), default=0) <= _SHORT
            table.add_column(clean(heading), no_wrap=is_table or is_short, overflow="ellipsis")
        for row in cells:
            table.add_row(*map(Text, row))
        return self._drawn(table, width)


def _fit(rows: list[list[str]], headings: Sequence[str], width: int) -> None:
    """Cut the widest column, so that all others are shown whole: names stand in them, which people type."""
    wide = [max(cells_of(cell) for cell in column) for column in zip(headings, *rows, strict=True)]
    widest = wide.index(max(wide))
    room = width - (sum(wide) - wide[widest]) - _GAP_CELLS * (len(wide) - 1)
    for row in rows:
        row[widest] = cut(row[widest], max(_LEAST, room))


def _fields(text: str) -> dict[str, object]:
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _indented(text: str, width: int) -> str:
    lines = harmless(text).rstrip("\n").split("\n")
    shown = (
        lines if len(lines) <= _MOST_OUTPUT else [*lines[:_MOST_OUTPUT], f"… {len(lines) - _MOST_OUTPUT} more lines"]
    )
    return "".join(f"\n┊   {cut(clean(line), max(20, width - 5))}" for line in shown)
