"""The chat as plain lines: for screen readers, pipes, and terminals that can do little. Nothing is drawn over.

Invariant: each thing that happens is said once, in words, in the order in which it happens.
"""

import os
import select
import signal
import sys
import threading
from collections.abc import AsyncIterator, Sequence

import anyio
import anyio.lowlevel
import anyio.to_thread

from hermes import __version__
from hermes.agent.turn import Ended
from hermes.cli.approving import Terminal
from hermes.cli.interactive.composing import Composing
from hermes.cli.interactive.face import Kind
from hermes.cli.interactive.looks import Looks
from hermes.cli.interactive.talk import Talk
from hermes.cli.progress import Lines, harmless
from hermes.cli.screen import table
from hermes.commands import Seat
from hermes.domain.approval import Approval, Decision
from hermes.domain.event import Event
from hermes.domain.message import Message
from hermes.tools.notices import Notices

_LOOK = 0.2
_LONGEST_LINE = 1_000_000


class Plain:
    """Implements `Face` on standard output. A person is asked only where standard input is a terminal."""

    def __init__(self, look: Looks) -> None:
        self.look = look
        self._lines = Lines(sys.stdout, is_answering=True, is_plain=True)
        self._has_answered = False
        self.is_attended = sys.stdin is not None and sys.stdin.isatty()
        self._person = Terminal()
        self.asking = anyio.Lock()
        """Held while a person is asked: what is typed then is the answer."""

    def say(self, text: str, kind: Kind = "words") -> None:
        """Print lines."""
        self._lines.end()
        mark = "error: " if kind == "bad" else ""
        self._write(f"{mark}{harmless(text)}\n")

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table."""
        self.say("\n".join(table(headings, rows)))

    def replay(self, messages: Sequence[Message]) -> None:
        """Print what was said before."""
        names = {"user": "you", "assistant": "hermes"}
        for message in messages:
            if message.role in names and message.text.strip():
                self.say(f"{names[message.role]}: {message.text.strip()}")

    def begin(self, shown: str) -> None:  # noqa: ARG002 - it stands on the screen already
        """A turn begins."""
        self._has_answered = False
        self._lines.is_verbose = self.look.shows_reasoning

    def watch(self, event: Event) -> None:
        """Print what happens."""
        if event.type == "text.delta":
            self._has_answered = True
        if event.type == "tool.progress" and self.look.detail == "off":
            return
        self._lines.watch(event)

    def end(self, ended: Ended | None) -> None:
        """Print what is left to be said."""
        self._lines.end()
        if ended is None:
            return
        if not self._has_answered and ended.text:
            self._write(harmless(ended.text).rstrip("\n") + "\n")
        for notice in ended.notices:
            self.say(f"note: {notice}")
        if ended.error is not None:
            self.say(str(ended.error), "bad")
        elif ended.ending.reason:
            self.say(f"({ended.ending.reason})")

    async def decide(self, asked: Approval) -> Decision:
        """Ask whether something may be done."""
        async with self.asking:
            return await self._person.decide(asked)

    async def answer(self, question: str, choices: Sequence[str] = ()) -> str | None:
        """Put a question of the model's; nobody answers in a pipe."""
        if not self.is_attended:
            return None
        async with self.asking:
            return await self._person.answer(question, choices)

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    async def lines(self) -> AsyncIterator[str]:
        """Give what is typed, a line each, until the input ends. While a person is asked nothing is read."""
        handle, rest, given_up = sys.stdin.fileno(), b"", threading.Event()
        try:
            while True:
                async with self.asking:
                    piece = await anyio.to_thread.run_sync(_piece, handle, given_up, abandon_on_cancel=True)
                if piece is None:
                    await anyio.lowlevel.checkpoint()
                    continue
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    yield line.decode("utf-8", "replace")
                if not piece or len(rest) > _LONGEST_LINE:
                    yield rest.decode("utf-8", "replace")
                    rest = b""
                if not piece:
                    return
        finally:
            given_up.set()


def _piece(handle: int, given_up: threading.Event) -> bytes | None:
    """Return what was typed within a moment, nothing at the end of the input, None when nothing was typed."""
    if given_up.is_set() or not select.select([handle], [], [], _LOOK)[0]:
        return None
    return os.read(handle, 65_536)


async def chat_plainly(seat: Seat, look: Looks, notices: Notices) -> None:
    """Chat in plain lines until the input ends or the person leaves."""
    face = Plain(look)
    talk = Talk(face, seat, notices)
    composing = Composing(lambda: seat.workspace)
    face.say(f"Hermes {__version__}, {seat.assistant.model_name}")
    face.say(f"in {seat.workspace}, session {seat.session.title or seat.session.id}; /help lists the commands")

    async def obey() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                if number != signal.SIGINT or not seat.interrupt():
                    talk.close()

    async def read() -> None:
        async for line in face.lines():
            if not face.is_attended:
                # What is piped in is one thing after the other.
                await talk.settled()
            if line.strip() and not talk.is_closing:
                talk.hear(composing.compose(line))
        await talk.settled()
        talk.close()

    async with anyio.create_task_group() as group:
        group.start_soon(obey)
        group.start_soon(read)
        await talk.serve()
        group.cancel_scope.cancel()
