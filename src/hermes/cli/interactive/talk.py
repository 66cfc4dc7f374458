"""A chat: words and commands come in, turns are taken one after the other, what comes of them goes to the face.

Invariant: nothing that was said is lost: it is answered, waits in sight, or was dropped by a command that says so.
"""

import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import field

import anyio
from anyio.abc import TaskGroup

from hermes.cli.interactive.composing import Composed
from hermes.cli.interactive.face import Face
from hermes.commands import CATALOGUE, CommandDef, Look, Seat, parse
from hermes.commands.port import Place
from hermes.domain.errors import Conflict, HermesError
from hermes.domain.event import Event
from hermes.domain.message import Message, Part, TextPart
from hermes.domain.records import dataclass
from hermes.domain.session import SessionId
from hermes.tools.notices import Notices

_log = logging.getLogger("hermes.cli")


@dataclass(slots=True)
class _Inbox:
    """What is to be done when nothing else is: commands."""

    commands: deque[tuple[CommandDef, str]] = field(default_factory=deque)
    news: anyio.Event = field(default_factory=anyio.Event)


class Talk:
    """Implements `Port` for a terminal. `hear` takes what was typed; `serve` works until `close`."""

    place: Place = "terminal"

    def __init__(self, face: Face, seat: Seat, notices: Notices) -> None:
        self.face = face
        self.seat = seat
        self._notices = notices
        self._commands = CATALOGUE.at("terminal")
        self._inbox = _Inbox()
        self._is_closing = False
        self._rest = anyio.Event()
        self._group: TaskGroup | None = None
        seat.watches = (self._watch,)
        seat.ask = face.answer
        seat.approver = face if face.is_attended else None

    @property
    def look(self) -> Look:
        """How it looks."""
        return self.face.look

    @property
    def is_closing(self) -> bool:
        """Whether the person has left."""
        return self._is_closing

    def say(self, text: str) -> None:
        """Show lines."""
        self.face.say(text)

    def table(self, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show a table."""
        self.face.table(headings, rows)

    def replay(self, messages: Sequence[Message]) -> None:
        """Show what was said before."""
        self.face.replay(messages)

    def submit(self, parts: tuple[Part, ...]) -> None:
        """Take a turn with these words, after those that wait."""
        self.seat.wait(parts)
        self._wake()

    def close(self) -> None:
        """Leave: what goes on is interrupted, and written down."""
        self._is_closing = True
        self.seat.interrupt()
        self._inbox.news.set()

    def _wake(self) -> None:
        self._inbox.news.set()
        if self._rest.is_set():
            self._rest = anyio.Event()

    async def settled(self) -> None:
        """Wait until all that was said is answered and done."""
        await self._rest.wait()

    def hear(self, said: Composed) -> None:
        """Take what was typed."""
        try:
            self._hear(said)
        except HermesError as error:
            self.face.say(str(error), "bad")

    def _hear(self, said: Composed) -> None:
        for note in said.notes:
            self.face.say(note, "quiet")
        ordered = parse(said.text)
        if ordered is not None:
            self._order(self._commands.find(ordered.word), ordered.rest)
        elif said.parts and not self.seat.is_working:
            self.submit(said.parts)
        elif said.parts:
            self._interject(said)

    def _order(self, command: CommandDef, rest: str) -> None:
        is_busy = self.seat.is_working or bool(self.seat.waiting)
        if not is_busy:
            # One after the other, in the order they were typed.
            self._inbox.commands.append((command, rest))
            self._wake()
        elif command.while_running and self._group is not None:
            self._group.start_soon(self._do, command, rest)
        else:
            raise Conflict(f"/{command.name} waits until the answer is there; /stop ends it")

    def _interject(self, said: Composed) -> None:
        """Take words that were said into a run."""
        seat = self.seat
        if self.look.busy == "steer" and seat.steering is not None and all(isinstance(p, TextPart) for p in said.parts):
            seat.steering.steer("".join(part.text for part in said.parts if isinstance(part, TextPart)))
            self.face.say("will be read at the next step", "quiet")
            return
        is_interrupting = self.look.busy == "interrupt"
        seat.wait(said.parts, is_next=is_interrupting)
        if is_interrupting:
            seat.interrupt()

    async def serve(self) -> None:
        """Work until `close`."""
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._listen)
            while not self._is_closing:
                # Set before it is looked, so that what comes meanwhile is seen.
                self._inbox.news = anyio.Event()
                if self._inbox.commands:
                    await self._do(*self._inbox.commands.popleft())
                elif self.seat.waiting:
                    await self._take(self.seat.waiting.popleft())
                else:
                    self._rest.set()
                    await self._inbox.news.wait()
            self._rest.set()
            group.cancel_scope.cancel()

    async def _do(self, command: CommandDef, rest: str) -> None:
        try:
            await command.act(self, rest)
        except HermesError as error:
            self.face.say(str(error), "bad")
        except OSError as error:
            self.face.say(f"{error.filename or ''}: {error.strerror or error}; look at the path and its rights", "bad")
        except Exception as error:  # noqa: BLE001 - the boundary of a command: it is logged and told, and the chat goes on
            _log.exception("a command failed by a fault of Hermes")
            self.face.say(f"/{command.name} failed by a fault of Hermes: {type(error).__name__}; see the log", "bad")

    async def _take(self, parts: tuple[Part, ...]) -> None:
        self.face.begin("".join(part.text for part in parts if isinstance(part, TextPart)))
        ended = None
        try:
            ended = await self.seat.take(parts)
        except HermesError as error:
            self.face.say(str(error), "bad")
        finally:
            self.face.end(ended)

    def _watch(self, event: Event) -> None:
        if event.type == "usage.progress":
            tokens = event.data.get("tokens")
            self.seat.tokens = tokens if isinstance(tokens, int) else 0
        self.face.watch(event)

    async def _listen(self) -> None:
        """Let what background processes say reach the session, also when nothing goes on."""
        await self._notices.run(self._notice)

    async def _notice(self, session: SessionId, texts: list[str]) -> None:
        for text in texts:
            self.face.say(f"notice: {text}", "quiet")
        if session != self.seat.session.id:
            return
        said = "\n".join(f"[notice] {text}" for text in texts)
        if self.seat.steering is not None:
            self.seat.steering.steer(said)
        else:
            self.submit((TextPart(said),))
