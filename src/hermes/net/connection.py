"""One TCP or TLS connection that asks one question at a time.

Invariant: it belongs to at most one response; bytes that nobody asked for close it.
"""

import asyncio
from collections.abc import Callable, Sequence

from hermes.net.response import Response, Terms
from hermes.net.target import Target

LARGE = 64 * 1024
"""From here on another system call costs less than another copy."""


class Connection(asyncio.Protocol):
    """A connection to one origin. `on_free` is called when it may be used again, `on_gone` once, when it is closed."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        target: Target,
        on_free: Callable[["Connection"], None],
        on_gone: Callable[["Connection"], None],
    ) -> None:
        self.target = target
        self._loop = loop
        self._on_free = on_free
        self._on_gone = on_gone
        self._transport: asyncio.Transport | None = None
        self._response: Response | None = None
        self.free_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - what create_connection promises
        self._transport = transport

    @property
    def is_open(self) -> bool:
        """Whether a question can be asked."""
        return self._transport is not None and not self._transport.is_closing()

    def ask(self, target: Target, pieces: Sequence[bytes], terms: Terms) -> Response:
        """Write a request and return its response, of which nothing is there yet."""
        assert self._transport is not None  # noqa: S101 - only an open connection is asked
        self._response = Response(target, self, terms, self._loop)
        if max(map(len, pieces)) < LARGE:
            self._transport.write(b"".join(pieces))
        else:
            self._write(pieces)
        return self._response

    def _write(self, pieces: Sequence[bytes]) -> None:
        """Write a long request without another copy of what is long in it."""
        assert self._transport is not None  # noqa: S101 - only an open connection is asked
        small: list[bytes] = []
        for piece in pieces:
            if len(piece) < LARGE:
                small.append(piece)
                continue
            self._transport.write(b"".join(small))
            small.clear()
            self._transport.write(piece)
        self._transport.write(b"".join(small))

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """Let the sender wait."""
        if self.is_open and self._transport is not None:
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Take more from the sender."""
        if self.is_open and self._transport is not None:
            self._transport.resume_reading()

    def release(self, *, is_reusable: bool) -> None:
        """The response is over."""
        self._response = None
        if is_reusable and self.is_open:
            self._on_free(self)
        else:
            self.abort()

    def data_received(self, data: bytes) -> None:
        """Hand on what has arrived."""
        if self._response is not None:
            self._response.feed(data)
        else:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed, by whomever."""
        response, self._response = self._response, None
        self._transport = None
        if response is not None:
            response.lose(exc)
        self._on_gone(self)
