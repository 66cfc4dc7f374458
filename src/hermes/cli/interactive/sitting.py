"""A chat on the screen, from the greeting to the last word: keys, signals, pictures and the talk itself."""

import importlib
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.history import FileHistory

from hermes import __version__
from hermes.cli.interactive import skin as skins
from hermes.cli.interactive.completing import Completing
from hermes.cli.interactive.composing import Composing
from hermes.cli.interactive.keys import Ways, bindings
from hermes.cli.interactive.layout import build
from hermes.cli.interactive.looks import Looks
from hermes.cli.interactive.screen import Screen
from hermes.cli.interactive.statusline import Status
from hermes.cli.interactive.talk import Talk
from hermes.cli.interactive.terminal import colours_of, open_output
from hermes.commands import CATALOGUE, Seat
from hermes.config.settings import SCHEMA
from hermes.domain.errors import HermesError
from hermes.llm.catalogue.models import table
from hermes.tools.notices import Notices

_AGAIN = 2.0
"""Seconds within which a second Ctrl-C leaves."""
_MOST_HISTORY = 2_000_000
_RECALLED = 6


class Sitting:
    """One chat on one screen."""

    def __init__(self, seat: Seat, look: Looks, notices: Notices, environment: Mapping[str, str]) -> None:
        self._clock = seat.assistant.clock
        colours = colours_of(environment)
        output = open_output(colours, environment.get("TERM", ""))
        self.screen = Screen(look, output, colours, self._clock)
        self.status = Status(seat)
        self.talk = Talk(self.screen, seat, notices)
        self._seat = seat
        self._composing = Composing(lambda: seat.workspace)
        self._stopped_at = -_AGAIN
        self._buffer = self._make_buffer()
        ways = Ways(self._submit, self._stop, self._leave)
        keys = bindings(self.screen, self._buffer, self._composing, ways, self._clock)
        self.app = build(self.screen, self._buffer, keys, output, self.status.line)
        self.screen.app = self.app

    def _make_buffer(self) -> Buffer:
        seat = self._seat
        home = seat.assistant.settings.home
        completing = Completing(
            CATALOGUE.at("terminal"),
            lambda: seat.workspace,
            {
                "model": _models,
                "skin": partial(skins.names, home),
                "config": lambda: SCHEMA.settings,
                "tools": lambda: ("enable", "disable", *(one.name for one in seat.assistant.known)),
                "personality": lambda: ("none", *(path.stem for path in (home / "personalities").glob("*.md"))),
                "help": lambda: (one.name for one in CATALOGUE.at("terminal").commands),
            },
        )
        return Buffer(
            multiline=True,
            completer=completing,
            complete_while_typing=True,
            history=FileHistory(str(_history(home))),
            enable_history_search=True,
        )

    async def run(self) -> None:
        """Chat until the person leaves."""
        await self._greet()
        async with anyio.create_task_group() as group:
            group.start_soon(self._obey)
            group.start_soon(self.screen.tick)
            group.start_soon(self._look_at_machine)
            group.start_soon(anyio.to_thread.run_sync, _load_ahead)
            group.start_soon(self._talk)
            await self.app.run_async(handle_sigint=False)
            # Also when the screen ended by itself, because the terminal is gone.
            self.talk.close()
            await self.talk.settled()
            group.cancel_scope.cancel()

    async def _talk(self) -> None:
        await self.talk.serve()
        self.screen.picture()
        if self.app.is_running and not self.app.is_done:
            self.app.exit()

    async def _greet(self) -> None:
        seat, say = self._seat, self.screen.say
        say(f"⚕ Hermes {__version__} · {seat.assistant.model_name} · {_short(seat.workspace)}", "words")
        if seat.is_new:
            say("/help for commands · @ names a file · Ctrl-C stops\n", "quiet")
            return
        said = await seat.assistant.sessions.path(seat.principal, seat.session.id)
        if len(said) > _RECALLED:
            say(f"… {len(said) - _RECALLED} earlier messages (/history)", "quiet")
        self.screen.replay(said[-_RECALLED:])
        say(f"going on with {seat.session.title or seat.session.id}\n", "quiet")

    def _submit(self, typed: str) -> None:
        self._stopped_at = -_AGAIN
        if not typed.strip():
            return
        said = self._composing.compose(typed)
        if said.text.strip():
            self._buffer.history.append_string(said.text.strip())
        self._buffer.reset()
        self._composing.forget()
        self.talk.hear(said)

    def _stop(self) -> None:
        """Do what Ctrl-C does: stop what goes on, else empty the input, else leave when it comes twice."""
        now = self._clock.monotonic()
        is_again = now - self._stopped_at < _AGAIN
        self._stopped_at = now
        if is_again:
            self._leave()
        elif self._seat.interrupt():
            self._hint("stopping; Ctrl-C again leaves")
        elif self._buffer.text:
            self._buffer.reset()
            self._composing.forget()
            self._stopped_at = -_AGAIN
        else:
            self._hint("Ctrl-C again leaves")

    def _hint(self, text: str) -> None:
        self.status.hint = text
        loop = self.app.loop
        if loop is not None:
            loop.call_later(_AGAIN, self._forget_hint)

    def _forget_hint(self) -> None:
        self.status.hint = ""
        self.app.invalidate()

    def _leave(self) -> None:
        self.talk.close()

    async def _obey(self) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                if number == signal.SIGINT:
                    self._stop()
                else:
                    self._leave()

    async def _look_at_machine(self) -> None:
        """Open the machine before it is needed, to say what holds commands here."""
        try:
            self.status.protection = (await self._seat.assistant.machine()).protection
        except HermesError as error:
            self.screen.say(f"commands cannot run here: {error}", "bad")
        self.app.invalidate()


def _load_ahead() -> None:
    """Load what draws the first answer, while the person types."""
    for name in ("rich.markdown", "rich.syntax", "pygments.lexers.python"):
        importlib.import_module(name)


def _short(place: Path) -> str:
    """Write a folder as people do."""
    home = Path.home()
    return f"~/{place.relative_to(home)}" if place.is_relative_to(home) and place != home else str(place)


def _models() -> list[str]:
    return [f"{vendor}/{name}" for vendor, models in table().vendors.items() for name in models]


def _history(home: Path) -> Path:
    """Return the file of what was typed, for its owner alone; an overlong one begins anew."""
    path = home / "history"
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.is_file() and path.stat().st_size > _MOST_HISTORY:
        path.replace(home / "history.1")
    path.touch(mode=0o600, exist_ok=True)
    return path


async def chat_on_screen(seat: Seat, look: Looks, notices: Notices, environment: Mapping[str, str]) -> None:
    """Chat on the screen until the person leaves."""
    await Sitting(seat, look, notices, environment).run()
