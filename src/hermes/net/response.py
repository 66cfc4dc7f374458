"""One answer while it arrives: its head, then its body in the pieces that the network brings.

Invariant: no wait is without a deadline, and what is held of a body that nobody reads is bounded.
"""

import asyncio
from collections.abc import Mapping
from typing import Protocol, Self

import httptools

from hermes.domain.errors import HermesError, LimitReached, Unavailable, Unsupported
from hermes.domain.records import dataclass
from hermes.net.target import Target

HELD = 1024 * 1024
"""How many bytes of a body wait for their reader before the sender is made to pause."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How many seconds each wait may take: for a connection, for the first of the answer, between bytes, for all."""

    connect: float = 10.0
    first: float = 60.0
    idle: float = 60.0
    total: float = 600.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much an answer may be."""

    head: int = 64 * 1024
    fields: int = 200
    body: int = 64 * 1024 * 1024


class Line(Protocol):
    """What a response needs of the connection it comes from."""

    def pause(self) -> None:
        """Let the sender wait."""
        ...

    def go_on(self) -> None:
        """Take more from the sender."""
        ...

    def release(self, *, is_reusable: bool) -> None:
        """The response is over, read to its end or not."""
        ...


@dataclass(frozen=True, slots=True)
class Terms:
    """What a response keeps to. `end` is a moment on the loop's clock."""

    deadlines: Deadlines
    bounds: Bounds
    end: float


class Response:
    """An answer, to be used in a `with` block: leaving it early closes the connection.

    `read` raises Unavailable when the answer breaks off or takes too long, LimitReached beyond a bound. One reader.
    """

    def __init__(self, target: Target, line: Line, terms: Terms, loop: asyncio.AbstractEventLoop) -> None:
        self.target = target
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._fields: dict[str, str] = {}
        self._fields_size = 0
        self._line: Line | None = line
        self._terms = terms
        self._loop = loop
        self._parser = httptools.HttpResponseParser(self)
        self._chunks: list[bytes] = []
        self._held = 0
        self._raw = 0
        self._is_interim = self._is_complete = self._is_reusable = self._is_paused = self._is_lost = False
        self._failure: HermesError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = terms.end
        self._what = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_stale(self) -> bool:
        """Whether the connection was closed before a single byte of the answer came."""
        return self._is_lost and self._raw == 0

    def _is_over(self) -> bool:
        return self._is_complete or self._failure is not None

    async def start(self) -> None:
        """Wait until status and headers are there."""
        while not self.status:
            if self._failure is not None:
                raise self._failure
            await self._wait(self._terms.deadlines.first, "the first of the answer")

    async def read(self) -> bytes:
        """Return what has arrived since the last call, waiting for something; empty at the end of the body."""
        while True:
            if self._chunks:
                data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
                self._chunks.clear()
                self._held = 0
                if self._is_paused and self._line is not None:
                    self._is_paused = False
                    self._line.go_on()
                return data
            if self._failure is not None:
                raise self._failure
            if self._is_complete:
                return b""
            await self._wait(self._terms.deadlines.idle, "more of the answer")

    async def read_all(self, most: int) -> bytes:
        """Return the whole body; of one that is longer than `most` only its beginning, and the rest is not read."""
        pieces, size = [], 0
        while size < most and (data := await self.read()):
            pieces.append(data)
            size += len(data)
        return b"".join(pieces)[:most]

    async def drain(self, seconds: float) -> None:
        """Wait a moment for the end of a body that nobody needs any more, so that the connection can be kept."""
        try:
            async with asyncio.timeout(seconds):
                while await self.read():
                    continue
        except (TimeoutError, HermesError):
            self.close()

    def close(self) -> None:
        """Give up what has not been read. May be called again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._line is not None:
            line, self._line = self._line, None
            line.release(is_reusable=self._is_complete and self._is_reusable)

    # What the connection calls.

    def feed(self, data: bytes) -> None:
        """Take what has arrived."""
        if self._is_over():
            self._is_reusable = False
            return
        self._raw += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            what = str(error) or type(error).__name__
            self._fail(Unavailable(f"'{self.target}' answers with something that is not HTTP/1.1 ({what})"))
            self._is_reusable = False
        if not self.status and self._raw > self._terms.bounds.head:
            self._fail(self._beyond(f"headers of more than {self._terms.bounds.head:,} bytes"))
        elif self._raw > self._terms.bounds.body:
            self._fail(self._beyond(f"more than {self._terms.bounds.body:,} bytes"))
        self._wake()
        if self._is_over():
            self.close()
        elif self._held > HELD and not self._is_paused and self._line is not None:
            self._is_paused = True
            self._line.pause()

    def lose(self, error: Exception | None) -> None:
        """The connection is gone; an answer without a length ends with it."""
        self._line = None
        self._is_lost = True
        has_length = "content-length" in self.headers or "chunked" in self.headers.get("transfer-encoding", "").lower()
        if self.status and not has_length and error is None and self._failure is None:
            self._is_complete = True
        elif not self._is_complete:
            why = f" ({getattr(error, 'strerror', None) or error})" if error else ""
            when = "before it answered" if self._raw == 0 else "in the middle of its answer"
            self._fail(Unavailable(f"'{self.target}' closed the connection {when}{why}"))
        self.close()
        self._wake()

    # What the parser calls. An exception here would be wrapped by it, so failures are noted instead.

    def on_message_begin(self) -> None:
        """A second answer to one question makes the connection useless."""
        if self._is_complete:
            self._is_reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep one header; of the same name again, both with a comma."""
        self._fields_size += len(name) + len(value) + 4
        if len(self._fields) >= self._terms.bounds.fields or self._fields_size > self._terms.bounds.head:
            self._fail(self._beyond("too many or too long headers"))
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._fields[key] = f"{self._fields[key]}, {text}" if key in self._fields else text

    def on_headers_complete(self) -> None:
        """The head is there; one of 100 to 199 only announces another."""
        if self._is_complete:
            return
        status = self._parser.get_status_code()
        self._is_interim = status < 200
        if not self._is_interim:
            self.headers = self._fields
            self.status = status
            coding = self.headers.get("content-encoding", "identity").strip().lower()
            if coding not in {"", "identity"}:
                self._fail(
                    Unsupported(
                        f"'{self.target}' answers in the coding {coding!r} although it was asked for none; "
                        "look at what stands between here and there"
                    )
                )
        self._fields = {}

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body."""
        if self._failure is None and not self._is_complete:
            self._chunks.append(body)
            self._held += len(body)

    def on_message_complete(self) -> None:
        """The body has come to its end."""
        if not self._is_interim and not self._is_complete and self._failure is None:
            self._is_complete = True
            self._is_reusable = self._parser.should_keep_alive()

    async def _wait(self, seconds: float, what: str) -> None:
        self._what = what
        self._due = min(self._loop.time() + seconds, self._terms.end)
        if self._timer is None or self._timer.when() > self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(self._due, self._tick)
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _tick(self) -> None:
        """The timer is set seldom and looks, when it rings, whether the wait has moved on."""
        self._timer = None
        if self._waiter is None or self._is_complete:
            return
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._tick)
        else:
            self._fail(self._late())

    def _late(self) -> Unavailable:
        if self._due >= self._terms.end:
            return Unavailable(f"'{self.target}' did not end its answer within {self._terms.deadlines.total:g} s")
        deadlines = self._terms.deadlines
        seconds = deadlines.idle if self.status else deadlines.first
        return Unavailable(f"'{self.target}' did not send {self._what} within {seconds:g} s")

    def _beyond(self, what: str) -> LimitReached:
        return LimitReached(f"'{self.target}' answers with {what}; it was not read further")

    def _fail(self, error: HermesError) -> None:
        if not self._is_over():
            self._failure = error
            self.close()
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
