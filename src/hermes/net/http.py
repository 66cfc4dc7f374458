"""HTTP/1.1 as a client: a request is written as it stands, its answer read as it comes, the connection kept.

Invariant: a connection is used again only after an answer that was read to its end; nothing is left open when the
client is closed, and no task is left behind by anything.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from anyio.lowlevel import cancel_shielded_checkpoint

from hermes.domain.errors import HermesError, Misconfigured, Unavailable
from hermes.domain.records import dataclass
from hermes.net.connection import Connection
from hermes.net.dial import Dial, dial
from hermes.net.response import Bounds, Deadlines, Response, Terms
from hermes.net.target import Target, target
from hermes.net.tls import client_context

_FORBIDDEN = frozenset("\r\n\0")


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a request but for the length of its body: made once, used for many."""

    target: Target
    data: bytes = field(repr=False)
    has_body: bool


def head(method: Literal["GET", "POST"], url: str, headers: Mapping[str, str]) -> Head:
    """Write a head. Raises Misconfigured for an address or a header that cannot be sent."""
    where = target(url)
    lines = [f"{method} {where.path} HTTP/1.1", f"Host: {where.authority}", "Accept-Encoding: identity"]
    for name, value in headers.items():
        if not _FORBIDDEN.isdisjoint(name + value) or not (name + value).isascii():
            raise Misconfigured(
                f"the header {name!r} for '{where}' holds a character that no header can have; look at the key"
            )
        lines.append(f"{name}: {value}")
    return Head(where, "\r\n".join(lines).encode("ascii"), has_body=method == "POST")


@dataclass(frozen=True, slots=True)
class Pool:
    """How many connections there may be: in all, and kept unused for each origin, and for how long."""

    open: int = 1024
    kept: int = 1024
    seconds: float = 55.0


class Http:
    """A client on one event loop. It serves any number of tasks; `opened()` closes it in the end."""

    def __init__(
        self,
        dial: Dial = dial,
        *,
        bounds: Bounds | None = None,
        pool: Pool | None = None,
        authorities: Path | None = None,
    ) -> None:
        self._dial = dial
        self._bounds = bounds or Bounds()
        self._pool = pool or Pool()
        self._authorities = authorities
        self._free: dict[tuple[str, str, int], list[Connection]] = {}
        self._busy: set[Connection] = set()
        self._slots = asyncio.Semaphore(self._pool.open)
        self._timer: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Http"]:
        """Be there for the length of a block, and leave no connection open after it."""
        try:
            yield self
        finally:
            self.close()
            # A transport closes its socket in the loop's next round.
            await cancel_shielded_checkpoint()

    def close(self) -> None:
        """Close every connection."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for connection in [*self._busy, *(one for kept in self._free.values() for one in kept)]:
            connection.abort()
        self._free.clear()

    async def send(self, head: Head, body: Sequence[bytes] = (), deadlines: Deadlines | None = None) -> Response:
        """Ask, and return the response as soon as its status and headers are there; use it in a `with` block.

        Raises what dialling raises, Unavailable when no answer comes in time, LimitReached for a head beyond the
        bounds. A kept connection that turns out to be closed, before a byte of the answer came, is replaced once.
        """
        deadlines = deadlines or Deadlines()
        terms = Terms(deadlines, self._bounds, asyncio.get_running_loop().time() + deadlines.total)
        length = b"\r\nContent-Length: %d" % sum(map(len, body)) if head.has_body else b""
        pieces = (head.data, length, b"\r\n\r\n", *body)
        await self._slot(terms)
        if (kept := self._take(head.target)) is not None:
            response = kept.ask(head.target, pieces, terms)
            try:
                return await _started(response)
            except Unavailable:
                if not response.is_stale:
                    raise
            await self._slot(terms)
        connection = await self._connect(head.target, terms)
        return await _started(connection.ask(head.target, pieces, terms))

    async def _slot(self, terms: Terms) -> None:
        """Wait until one more connection may be busy."""
        if not self._slots.locked():
            await self._slots.acquire()
            return
        try:
            async with asyncio.timeout_at(terms.end):
                await self._slots.acquire()
        except TimeoutError:
            raise Unavailable(
                f"{self._pool.open} requests are under way and none ended in {terms.deadlines.total:g} s; "
                "try again later"
            ) from None

    def _take(self, where: Target) -> Connection | None:
        kept = self._free.get(where.origin)
        while kept:
            connection = kept.pop()
            if connection.is_open:
                self._busy.add(connection)
                return connection
        return None

    async def _connect(self, where: Target, terms: Terms) -> Connection:
        loop = asyncio.get_running_loop()
        deadline = min(loop.time() + terms.deadlines.connect, terms.end)
        connection = Connection(loop, where, self._freed, self._gone)
        self._busy.add(connection)
        try:
            sock = await self._dial(where.host, where.port, deadline)
            try:
                async with asyncio.timeout_at(deadline):
                    await loop.create_connection(lambda: connection, sock=sock, **self._security(where))
            except BaseException:
                sock.close()
                raise
        except BaseException as error:
            connection.abort()
            self._gone(connection)
            if isinstance(error, OSError):
                raise _explained(error, where, terms.deadlines.connect) from error
            raise
        return connection

    def _security(self, where: Target) -> dict[str, Any]:
        if where.scheme == "http":
            return {}
        return {"ssl": client_context(self._authorities), "server_hostname": where.host}

    def _freed(self, connection: Connection) -> None:
        self._leave(connection)
        kept = self._free.setdefault(connection.target.origin, [])
        if len(kept) >= self._pool.kept:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.free_since = loop.time()
        kept.append(connection)
        if self._timer is None:
            self._timer = loop.call_later(self._pool.seconds, self._prune)

    def _gone(self, connection: Connection) -> None:
        self._leave(connection)
        kept = self._free.get(connection.target.origin, [])
        if connection in kept:
            kept.remove(connection)

    def _leave(self, connection: Connection) -> None:
        if connection in self._busy:
            self._busy.remove(connection)
            self._slots.release()

    def _prune(self) -> None:
        """Close what was unused for long, and come again while anything is left."""
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._pool.seconds
        for kept in self._free.values():
            for connection in [one for one in kept if one.free_since <= oldest]:
                kept.remove(connection)
                connection.abort()
        self._free = {origin: kept for origin, kept in self._free.items() if kept}
        self._timer = loop.call_later(self._pool.seconds, self._prune) if self._free else None


async def _started(response: Response) -> Response:
    try:
        await response.start()
    except BaseException:
        response.close()
        raise
    return response


def _explained(error: OSError, where: Target, seconds: float) -> HermesError:
    match error:
        case TimeoutError():
            return Unavailable(f"'{where}' did not finish the TLS handshake within {seconds:g} s")
        case ssl.SSLCertVerificationError():
            return Misconfigured(
                f"the certificate of {where.host!r} is not to be trusted: {error.verify_message}; "
                "check the address and this machine's certificates and time"
            )
        case ssl.SSLError():
            return Misconfigured(
                f"'{where}' does not speak TLS as expected ({error.reason or error}); is it an http:// address?"
            )
        case _:
            return Unavailable(f"'{where}' cannot be reached: {error.strerror or error}")
