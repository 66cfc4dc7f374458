"""One model at one vendor, over HTTP: the request is put together, sent, and its answer read as it comes.

Invariant: a call ends with a reply or with one error of `domain/errors.py`, within its deadline, and leaves nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from hermes.domain.clock import Clock
from hermes.domain.errors import HermesError, Unavailable
from hermes.domain.event import JSON
from hermes.domain.message import Message
from hermes.domain.model import Cut, Reply, Request, Show, Usage
from hermes.domain.records import dataclass
from hermes.domain.tool import ToolSpec
from hermes.llm.tokens import estimate
from hermes.llm.wire.answer import Answer
from hermes.llm.wire.failing import Place, failure, is_page, sort
from hermes.llm.wire.format import Format, Reader
from hermes.net.http import Head, Http
from hermes.net.response import Deadlines, Response
from hermes.net.sse import Events

_ERROR_BODY = 64 * 1024
_MOMENT = 0.25
_KNOWN_PREFIXES = 256


@dataclass(frozen=True, slots=True)
class Model:
    """Which model it is, for people and for the loop; `habits` hold where a request says nothing else."""

    name: str
    window: int
    place: Place
    reads_tags: bool
    habits: "Habits | None" = None


@dataclass(frozen=True, slots=True)
class Habits:
    """How the owner wants a model to answer."""

    max_tokens: int | None = None
    temperature: float | None = None
    extra: Mapping[str, JSON] = field(default_factory=dict)

    def on(self, request: Request) -> Request:
        """Return a request with what it leaves open filled in."""
        return replace(
            request,
            max_tokens=self.max_tokens if request.max_tokens is None else request.max_tokens,
            temperature=self.temperature if request.temperature is None else request.temperature,
            extra={**self.extra, **request.extra},
        )


class Remote:
    """A Provider. It has no state but what it remembers of prefixes; one serves many runs at once."""

    def __init__(self, model: Model, wire: Format, http: Http, head: Head, clock: Clock, deadlines: Deadlines) -> None:
        self._model = model
        self._format = wire
        self._http = http
        self._head = head
        self._clock = clock
        self._deadlines = deadlines
        self._names: dict[bytes, frozenset[str]] = {}

    @property
    def name(self) -> str:
        """Vendor and model."""
        return self._model.name

    @property
    def wire(self) -> str:
        """The name of the wire format."""
        return self._format.name

    @property
    def window(self) -> int:
        """How many tokens the model can read."""
        return self._model.window

    def prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        """Encode what never changes within a context."""
        return self._format.prefix(system, tools)

    def encode(self, message: Message) -> bytes:
        """Encode one message."""
        return self._format.encode(message)

    async def call(self, request: Request, show: Show) -> Reply:
        """Ask the model once."""
        if self._model.habits is not None:
            request = self._model.habits.on(request)
        messages = [*request.messages, *request.ephemeral] if request.ephemeral else request.messages
        body = (request.prefix, self._format.joined(messages), self._format.tail(request))
        answer = Answer(show, self._tools(request.prefix), reads_tags=self._model.reads_tags)
        reader = self._format.reader(answer)
        with await self._http.send(self._head, body, self._deadlines) as response:
            if not 200 <= response.status < 300:
                raise await self._refusal(response)
            try:
                await self._read(response, reader)
            except Unavailable as error:
                raise self._broken(error, reader) from error
        return self._reply(reader, request, body)

    def _tools(self, prefix: bytes) -> frozenset[str]:
        known = self._names.get(prefix)
        if known is None:
            if len(self._names) >= _KNOWN_PREFIXES:
                self._names.pop(next(iter(self._names)))
            known = self._names[prefix] = self._format.tool_names(prefix)
        return known

    async def _refusal(self, response: Response) -> HermesError:
        body = await response.read_all(_ERROR_BODY)
        return failure(self._model.place, response.status, response.headers, body, self._clock.now())

    async def _read(self, response: Response, reader: Reader) -> None:
        kind = response.headers.get("content-type", "").lower()
        if "application/json" in kind or "html" in kind:
            await self._read_whole(response, reader)
        else:
            await self._read_stream(response, reader)
        if reader.complaint is not None:
            said = reader.complaint
            raise sort(self._model.place, said.status or 500, said, None)
        if not reader.has_ended:
            raise Unavailable(f"{self._model.place.url!r} ended its answer without finishing it")
        if reader.answer.is_empty and reader.usage == Usage() and not reader.model:
            raise Unavailable(f"{self._model.place.url!r} answered with nothing")

    async def _read_stream(self, response: Response, reader: Reader) -> None:
        events, start = Events(), b""
        while data := await response.read():
            if len(start) < 64:
                start += data[:64]
            for name, payload in events.feed(data):
                reader.take(name, payload)
            if reader.is_done or reader.complaint is not None:
                await response.drain(_MOMENT)
                return
        for name, payload in events.finish():
            reader.take(name, payload)
        if not reader.has_ended and reader.answer.is_empty and reader.complaint is None and start.strip():
            raise self._unreadable(response, start)

    async def _read_whole(self, response: Response, reader: Reader) -> None:
        pieces = []
        while data := await response.read():
            pieces.append(data)
        body = b"".join(pieces)
        if is_page(response.headers, body):
            raise failure(self._model.place, response.status, response.headers, body, self._clock.now())
        if body.lstrip()[:5] in {b"data:", b"event"}:
            events = Events()
            for name, payload in [*events.feed(body), *events.finish()]:
                reader.take(name, payload)
        else:
            reader.whole(body)

    def _unreadable(self, response: Response, start: bytes) -> HermesError:
        if is_page(response.headers, start):
            return failure(self._model.place, response.status, response.headers, start, self._clock.now())
        begins = start.decode("utf-8", "replace")
        return Unavailable(
            f"{self._model.place.url!r} answers with something else than events: it begins with {begins!r}"
        )

    def _broken(self, error: Unavailable, reader: Reader) -> Unavailable:
        words = str(error)
        if self._model.place.url not in words and self._model.place.vendor not in words:
            words = f"{self._model.place.url!r}: {words}"
        if reader.answer.is_empty:
            return Unavailable(words, retry_after=error.retry_after)
        return Cut(words, partial=reader.partial(self._clock), retry_after=error.retry_after)

    def _reply(self, reader: Reader, request: Request, body: Sequence[bytes]) -> Reply:
        reads_calls = self._model.reads_tags and request.schema is None
        message, finish = reader.result(self._clock, reads_calls=reads_calls)
        encoded, usage = self._format.encode(message), reader.usage
        if not usage.input and not usage.output:
            # Nobody counted; a budget must not take that for free.
            usage = Usage(input=sum(estimate(piece) for piece in body), output=estimate(encoded))
        return Reply(message, encoded, finish, usage, reader.model or self._model.place.model)
