"""The chat screen: an input line that stays, above it what goes on now, and above that the terminal's own scrollback.

Invariant: a line that was printed is never drawn again; only the few lines at the bottom change, each time at once.
"""

from collections.abc import Sequence

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.styles import Style

from hermes.agent.turn import Ended
from hermes.cli.interactive.drawing import Colours, Drawing
from hermes.cli.interactive.face import Kind
from hermes.cli.interactive.looks import Looks
from hermes.cli.interactive.menu import Menu, Option, decision, options_for
from hermes.cli.interactive.stream import Blocks
from hermes.cli.interactive.terminal import Held
from hermes.cli.interactive.working import Working
from hermes.cli.screen import clean
from hermes.domain.approval import Approval, Decision
from hermes.domain.clock import Clock
from hermes.domain.event import Event
from hermes.domain.message import Message

TICK = 0.08
"""Seconds between two pictures while something goes on."""


class Screen:
    """Implements `Face` on a terminal. `app` must run while it is used; all on one event loop."""

    is_attended = True

    def __init__(self, look: Looks, output: Held, colours: Colours, clock: Clock) -> None:
        self.look = look
        self._output = output
        self._colours = colours
        self._clock = clock
        self.drawing = Drawing(look.worn, colours)
        self.working = Working(clock)
        self.menu: Menu | None = None
        self.app: Application[None] | None = None
        self._one_question = anyio.Lock()
        self._answer = Blocks()
        self._thought: list[str] = []
        self._has_answered = False
        self._waiting: list[str] = []
        self._live: StyleAndTextTuples = []
        self._live_text = ""
        look.changed = self._wear
        look.write = self._write_raw
        look.empty = self._empty

    @property
    def width(self) -> int:
        """How many cells a line has; the last is left free, so that a narrower window breaks nothing."""
        return self._output.get_size().columns - 1

    @property
    def rows(self) -> int:
        """How many lines the terminal has."""
        return self._output.get_size().rows

    def live(self) -> StyleAndTextTuples:
        """Return what is going on now: the end of the answer that grows, and the spinner."""
        shown = list(self._live)
        if self.working.is_on and self.menu is None:
            skin = self.look.worn
            shown += [("class:quiet", f"{clean(self.working.line(skin, self.width))}\n")]
        if shown:
            style, text = shown[-1][0], shown[-1][1]
            shown[-1] = (style, text.removesuffix("\n"))
        return shown

    def say(self, text: str, kind: Kind = "words") -> None:
        """Show lines of ours."""
        self._print(self.drawing.words(text, kind, self.width))

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        self._print(self.drawing.table(headings, rows, self.width))

    def replay(self, messages: Sequence[Message]) -> None:
        """Show what was said before."""
        for message in messages:
            if message.role == "user" and message.text.strip():
                self._print(self.drawing.asked(message.text, self.width))
            elif message.role == "assistant":
                if message.text.strip():
                    self._print(self._block(message.text) + "\n")
                for call in message.calls:
                    told = {"name": call.name, "arguments": call.arguments}
                    self._print(self.drawing.tool(told, self.width, has_output=False))

    def begin(self, shown: str) -> None:
        """A turn begins."""
        self._print(self.drawing.asked(shown or "(a picture)", self.width))
        self._has_answered = False
        self.working.begin()

    def watch(self, event: Event) -> None:
        """Something happens in the run. While an answer streams in, this only keeps it for the next picture."""
        data = event.data
        match event.type:
            case "text.delta":
                self._end_thought()
                self._has_answered = True
                self.working.note_text()
                self._keep(self._answer.add(str(data["text"])))
            case "reasoning.delta":
                self.working.is_thinking = True
                if self.look.shows_reasoning:
                    self._thought.append(str(data["text"]))
            case "call.delta":
                self._end_answer()
            case "answer.delta":
                self._answer.drop()
                self._thought.clear()
                self._keep_line(f"↻ {data['text']}", "bad")
            case "tool.progress":
                self._tool(event)
            case "run.progress":
                if data["state"] == "tool":
                    self.working.detail = str(data["text"])
                else:
                    self._keep_line(f"· {data['text']}", "quiet")
            case _:
                return

    def _tool(self, event: Event) -> None:
        self._end_answer()
        if event.data["state"] == "began":
            self.working.tool_began(event.data)
            return
        self.working.tool_ended(event.data)
        if self.look.detail != "off" or event.data.get("is_error"):
            self._waiting.append(self.drawing.tool(event.data, self.width, has_output=self.look.detail == "all"))

    def end(self, ended: Ended | None) -> None:
        """The turn has ended."""
        self.working.end()
        self._end_answer()
        if ended is not None:
            if ended.text and not self._has_answered:
                self._waiting.append(self._block(ended.text))
            for notice in ended.notices:
                self._keep_line(f"note: {notice}", "quiet")
            if ended.error is not None:
                self._keep_line(f"✗ {ended.error}", "bad")
            elif ended.ending.reason:
                self._keep_line(f"· {ended.ending.reason}", "quiet")
        self._waiting.append("\n")
        self.picture()

    async def decide(self, asked: Approval) -> Decision:
        """Ask whether something may be done."""
        async with self._one_question:
            self._keep_line(f"\n⚠ {asked.shown}", "words")
            self._keep_line(f"  asked because: {asked.rule}", "quiet")
            given = decision(await self._ask("May this be done?", options_for(asked)))
            said = {"once": "this once", "session": "for this session", "always": "always"}
            if given.state == "given":
                self._keep_line(f"  ✓ yes, {said[given.scope]}", "good")
            else:
                self._keep_line(f"  ✗ no{f': {given.reason}' if given.reason else ''}", "bad")
            return given

    async def answer(self, question: str, choices: Sequence[str] = ()) -> str | None:
        """Put a question of the model's."""
        options = [Option(choice, "", choice) for choice in choices]
        options += [Option("something else", "", "words", has_words=True)] if choices else []
        async with self._one_question:
            self._keep_line(f"\n? {question}", "words")
            given = await self._ask("", options)
            if given is None:
                self._keep_line("  no answer", "quiet")
                return None
            said = given[1] if given[0] == "words" and given[1] else given[0]
            self._keep_line(f"  {said}", "good")
            return said.strip() or None

    async def _ask(self, title: str, options: Sequence[Option]) -> tuple[str, str] | None:
        self.menu = Menu(title, options, now=self._clock.monotonic())
        self.working.is_asking = True
        try:
            self.picture()
            return await self.menu.answer()
        finally:
            self.menu = None
            self.working.is_asking = False
            self.picture()

    async def tick(self) -> None:
        """Draw a picture now and then while something goes on, for ever."""
        while True:
            await anyio.sleep(TICK)
            if self.working.is_on or self._waiting:
                self.picture()

    def picture(self) -> None:
        """Print what is whole, and show the rest as it is now."""
        if self._answer.pending != self._live_text:
            self._live_text = self._answer.pending
            self._live = self._growing(self._live_text)
        if self._waiting:
            whole, self._waiting = "".join(self._waiting), []
            self._print(whole)
        elif self.app is not None:
            self.app.invalidate()

    def _growing(self, text: str) -> StyleAndTextTuples:
        """Return the last lines of the answer that grows."""
        if not text.strip():
            return []
        rows = max(3, self.rows // 2)
        lines = self._block(text).rstrip("\n").split("\n")
        return to_formatted_text(ANSI("\n".join(lines[-rows:]) + "\n"))

    def _print(self, drawn: str) -> None:
        """Put lines into the scrollback, above what stays at the bottom; all in one piece."""
        app = self.app
        if app is None or not app.is_running or app.is_done:
            self._output.write_raw(drawn.replace("\n", "\r\n"))
            self._output.flush()
            return
        if self._waiting and drawn is not None:
            drawn, self._waiting = "".join(self._waiting) + drawn, []
        self._output.hold()
        try:
            app.renderer.erase(leave_alternate_screen=False)
            self._output.write_raw(drawn.replace("\n", "\r\n"))
            self._draw(app)
        finally:
            self._output.release()

    def _draw(self, app: Application[None]) -> None:
        # Filters ask which application runs, and that is known in its own context only.
        # What is shown is asked for once for each picture, and this is the number of the picture.
        app.render_counter += 1
        if app.context is not None:
            app.context.copy().run(lambda: app.renderer.render(app, app.layout))

    def _keep(self, blocks: Sequence[str]) -> None:
        self._waiting += [self._block(block) for block in blocks]

    def _block(self, block: str) -> str:
        return f"\n{self.drawing.markdown(block, self.width)}"

    def _keep_line(self, text: str, kind: Kind) -> None:
        self._end_answer()
        self._waiting.append(self.drawing.words(text, kind, self.width))

    def _end_answer(self) -> None:
        self._end_thought()
        if rest := self._answer.finish():
            self._waiting.append(self._block(rest))

    def _end_thought(self) -> None:
        self.working.is_thinking = False
        if self._thought:
            thought, self._thought = "".join(self._thought), []
            self._waiting.append(self.drawing.thought(thought, self.width))

    def _wear(self) -> None:
        self.drawing = Drawing(self.look.worn, self._colours)
        if self.app is not None:
            self.app.style = style_of(self.look)

    def _write_raw(self, text: str) -> None:
        self._output.write_raw(text)
        self._output.flush()

    def _empty(self) -> None:
        if self.app is not None:
            self.app.renderer.clear()
            self.app.invalidate()


def style_of(look: Looks) -> Style:
    """Return the colours of the skin as the layout reads them."""
    skin = look.worn
    kinds = {name: skin.style(name) for name in ("accent", "quiet", "good", "bad", "words")}
    return Style.from_dict(
        {
            **{name: f"fg:{colour}" if colour else "" for name, colour in kinds.items()},
            "chosen": f"bold {f'fg:{skin.accent}' if skin.accent else ''}",
            "completion-menu": "noinherit",
            "completion-menu.completion.current": "reverse noinherit",
            "completion-menu.meta.completion": f"noinherit {f'fg:{skin.quiet}' if skin.quiet else ''}",
            "completion-menu.meta.completion.current": "reverse noinherit",
            "scrollbar.background": "noinherit",
            "scrollbar.button": "reverse noinherit",
        }
    )
