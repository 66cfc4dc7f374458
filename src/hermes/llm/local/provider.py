"""The embedded model as a Provider: one process, one question at a time, each answer held to one step.

Invariant: a call ends with a reply or one error within its deadlines, and what nobody waits for any more is stopped.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

import anyio

from hermes.domain.clock import Clock
from hermes.domain.errors import HermesError, LimitReached, Misconfigured, Unavailable
from hermes.domain.message import Message
from hermes.domain.model import ContextOverflow, Cut, Delta, Finish, Reply, Request, Show, Usage
from hermes.domain.records import dataclass
from hermes.domain.tool import ToolSpec
from hermes.llm.local import prompt
from hermes.llm.local.frames import Ask, Done, Failed, Piece, Reading, Ready, Stop
from hermes.llm.local.link import Link
from hermes.llm.local.steps import Steps, is_circling, schema
from hermes.llm.wire.answer import Answer, Call
from hermes.llm.wire.pieces import encoded

_ANSWER_TOKENS = 400
_STOP_SECONDS = 3.0
_NOTE_EVERY = 2.0
_LOOKED_AT = 400


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: to load the model, between two signs of it, and for a whole call with its turn."""

    load: float = 180.0
    silence: float = 120.0
    call: float = 1800.0


@dataclass(frozen=True, slots=True)
class Terms:
    """Which model it is and what it is held to."""

    name: str
    window: int
    max_tokens: int | None = None
    temperature: float | None = None
    times: Times = Times()


class Local:
    """A Provider. Its process is started by the first call; one that has died is started again by the next."""

    def __init__(self, terms: Terms, open_link: Callable[[], Link], clock: Clock) -> None:
        self._terms = terms
        self._open_link = open_link
        self._clock = clock
        self._turn = anyio.Lock()
        self._link: Link | None = None
        self._count = 0

    @property
    def name(self) -> str:
        """Vendor and model."""
        return self._terms.name

    @property
    def wire(self) -> str:
        """The name of the wire format."""
        return prompt.NAME

    @property
    def window(self) -> int:
        """How many tokens the model can read."""
        return self._terms.window

    def prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        """Encode what never changes within a context."""
        return prompt.prefix(system, tools)

    def encode(self, message: Message) -> bytes:
        """Encode one message."""
        return prompt.encode(message)

    def close(self) -> None:
        """End the process."""
        if self._link is not None:
            self._link.close()

    async def call(self, request: Request, show: Show) -> Reply:
        """Ask the model once, when it is its turn."""
        asked = self._asked(request)
        try:
            with anyio.fail_after(self._terms.times.call):
                async with self._turn:
                    return await self._ask(asked, request, show)
        except TimeoutError:
            raise Unavailable(f"{self.name!r} gave no whole answer within {self._terms.times.call:g} s") from None

    def _asked(self, request: Request) -> Ask:
        given = prompt.fixed(request.prefix)
        most = request.max_tokens or self._terms.max_tokens or _ANSWER_TOKENS
        most = min(most, self.window // 2)
        form, begin = request.schema or (schema(given.known) if given.tools else None), prompt.beginning(given)
        room = self.window - most - len(begin) // 3
        messages = [prompt.said(one) for one in (*request.messages, *request.ephemeral)]
        self._count += 1
        return Ask(
            self._count,
            begin,
            prompt.rest(messages, has_tools=bool(given.tools), tokens=room),
            encoded(form) if form is not None else b"",
            most,
            (request.temperature if request.temperature is not None else self._terms.temperature) or 0.0,
        )

    async def _ask(self, asked: Ask, request: Request, show: Show) -> Reply:
        link = await self._opened(show)
        times = self._terms.times
        given = prompt.fixed(request.prefix)
        hearing = _Hearing(asked, show, self._clock, {one.name for one in given.known}, reads_steps=not request.schema)
        await link.send(asked, times.silence)
        done: Done | None = None
        try:
            while done is None:
                news = await link.receive(times.silence)
                if getattr(news, "number", asked.number) == asked.number:
                    done = hearing.take(news)
                    if hearing.is_enough and done is None:
                        await self._stop(link, asked)
                        done = Done(asked.number, "length", 0, 0)
        except Unavailable as error:
            partial = hearing.answer.partial(self._clock)
            if partial is None:
                raise
            raise Cut(str(error), partial=partial) from error
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), suppress(HermesError):
                await self._stop(link, asked)
            raise
        return self._reply(hearing, done)

    def _reply(self, hearing: "_Hearing", done: Done) -> Reply:
        hearing.finish()
        is_cut = done.finish != "stop"
        message = hearing.answer.message(self._clock, {}, is_cut=is_cut, reads_calls=hearing.reads_steps)
        finish: Finish = "tool_calls" if message.calls else "length" if is_cut else "stop"
        usage = Usage(input=done.input or hearing.read, output=done.output or hearing.pieces, cache_read=done.known)
        return Reply(message, self.encode(message), finish, usage, self.name.partition("/")[2])

    async def _opened(self, show: Show) -> Link:
        if self._link is None or not self._link.is_open:
            show(Delta("note", f"loading the local model {self.name.partition('/')[2]}"))
            self._link = self._open_link()
            news = await self._link.receive(self._terms.times.load)
            if not isinstance(news, Ready):
                self._link.close()
                why = news.text if isinstance(news, Failed) else repr(news)
                raise Misconfigured(
                    f"the local model cannot be loaded: {why}; `hermes model pull` checks its file, "
                    "or another program may need its memory"
                )
        return self._link

    async def _stop(self, link: Link, asked: Ask) -> None:
        """Have an answer stopped, and hear it out; a process that does not obey is ended."""
        if not link.is_open:
            return
        try:
            with anyio.fail_after(_STOP_SECONDS):
                await link.send(Stop(asked.number), _STOP_SECONDS)
                while True:
                    news = await link.receive(_STOP_SECONDS)
                    if isinstance(news, Done | Failed) and news.number == asked.number:
                        return
        except TimeoutError:
            link.close()


class _Hearing:
    """Takes what comes of one answer."""

    def __init__(self, asked: Ask, show: Show, clock: Clock, names: set[str], *, reads_steps: bool) -> None:
        self.answer = Answer(show, names, reads_tags=False)
        self.reads_steps = reads_steps and bool(names)
        self.read = self.pieces = 0
        self.is_enough = False
        self._show = show
        self._clock = clock
        self._steps = Steps(_Taker(self.answer, clock)) if self.reads_steps else None
        self._asked = asked
        self._tail = ""
        self._noted = clock.monotonic()

    def take(self, news: object) -> Done | None:
        """Hear one thing; return the end when it is that. Raises what a failure means."""
        match news:
            case Reading(_, done, total):
                self.read = total
                self._note(done, total)
            case Piece(_, text):
                self.pieces += 1
                self._tail = (self._tail + text)[-_LOOKED_AT:]
                self.is_enough = is_circling(self._tail)
                if self._steps is not None:
                    self._steps.take(text)
                else:
                    self.answer.say(text)
            case Done() as done:
                return done
            case Failed() as failed:
                raise _error(failed)
            case _:
                return None
        return None

    def finish(self) -> None:
        """Nothing more will come."""
        if self._steps is not None:
            self._steps.finish()

    def _note(self, done: int, total: int) -> None:
        now = self._clock.monotonic()
        if done < total and now - self._noted >= _NOTE_EVERY:
            self._noted = now
            self._show(Delta("note", f"the local model has read {done:,} of {total:,} tokens"))


class _Taker:
    """Puts steps into an answer."""

    def __init__(self, answer: Answer, clock: Clock) -> None:
        self._answer = answer
        self._clock = clock

    def say(self, piece: str) -> None:
        """Words for the user."""
        self._answer.say(piece)

    def think(self, piece: str) -> None:
        """Words for nobody."""
        self._answer.think(piece)

    def order(self, name: str) -> Callable[[str], None]:
        """A tool."""
        call: Call = self._answer.order(f"call_{self._clock.new_id()}", name)
        return lambda arguments: self._answer.add(call, arguments)


def _error(failed: Failed) -> HermesError:
    match failed.kind:
        case "overflow":
            return ContextOverflow(
                f"the local model cannot read so much: {failed.text}; ask about less, or connect a provider"
            )
        case "limit":
            return LimitReached(failed.text)
        case "request" | "load":
            return Misconfigured(f"the local model cannot do what was asked: {failed.text}")
        case "unavailable":
            return Unavailable(f"the local model broke off: {failed.text}")
