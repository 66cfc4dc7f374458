"""The way out of a sandbox: a proxy that asks for each host, then dials it; HTTP, CONNECT and SOCKS5 on one port.

Invariant: nothing is resolved or dialled that was not judged, and what was judged is what is dialled. Refused is
whatever nobody allowed, and whatever could not be judged.
"""

import errno
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio

from hermes.domain.effect import Connect
from hermes.domain.errors import Denied, HermesError, LimitReached, Misconfigured
from hermes.domain.machine import MayConnect
from hermes.domain.records import dataclass
from hermes.net import socks
from hermes.net.asked import LONGEST_HEAD, Asked, parse_asked, parse_size, said
from hermes.net.dial import Dial
from hermes.net.wire import Meter, Wire, relay

_log = logging.getLogger("hermes.net.broker")
_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_BREATH = 0.05
_LONGEST_LINE = 1_024
REASONS = {400: "Bad Request", 403: "Forbidden", 429: "Too Many Requests", 502: "Bad Gateway"}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one command may use of the network. `hosts` are those that are asked about."""

    connections: int = 128
    hosts: int = 256
    bytes: int = 10_000_000_000
    idle: float = 300.0
    head: float = 30.0
    dial: float = 30.0


async def nobody(connect: Connect) -> bool:  # noqa: ARG001  # it has the form of one who judges
    """Allow no host."""
    return False


class Broker:
    """The way out of one command. `serve` runs until it is cancelled, which ends all connections."""

    def __init__(self, judge: MayConnect, dial: Dial, bounds: Bounds | None = None) -> None:
        self._judge = judge
        self._dial = dial
        self._bounds = bounds or Bounds()
        self._judged: dict[Connect, bool] = {}
        self._judging: dict[Connect, anyio.Lock] = {}
        self._denied: dict[str, None] = {}
        self._meter = Meter(self._bounds.bytes, self._bounds.idle)
        self._free = anyio.Semaphore(self._bounds.connections)

    @property
    def denied(self) -> tuple[str, ...]:
        """The hosts that were refused, as `host:port`, the first first."""
        return tuple(self._denied)

    async def serve(self, listener: socket.socket) -> None:
        """Answer whoever connects. A connection beyond the bound waits until another has ended."""
        async with anyio.create_task_group() as group:
            while True:
                await self._free.acquire()
                group.start_soon(self._attend, await _accept(listener))

    async def _attend(self, sock: socket.socket) -> None:
        try:
            with sock:
                sock.setblocking(False)
                await self._answer(Wire(sock, self._meter))
        except (OSError, TimeoutError, EOFError):
            # Either side may be gone at any moment; there is nobody left to tell.
            _log.debug("a connection of a command broke")
        except Exception:  # noqa: BLE001 - a named boundary: one connection
            _log.exception("a connection of a command failed")
        finally:
            self._free.release()

    async def _answer(self, client: Wire) -> None:
        with anyio.fail_after(self._bounds.head):
            first = await client.peek()
        if first == socks.VERSION:
            await self._answer_socks(client)
            return
        try:
            with anyio.fail_after(self._bounds.head):
                asked = parse_asked(await client.until(b"\r\n\r\n", LONGEST_HEAD))
            async with self._reached(asked.host, asked.port) as host:
                await self._converse(client, host, asked)
        except HermesError as error:
            await _refuse(client, error)

    async def _converse(self, client: Wire, host: Wire, asked: Asked) -> None:
        if asked.is_tunnel:
            await client.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await relay(client, host)
            return
        await host.send(asked.head)

        async def send_body() -> None:
            with suppress(OSError, EOFError, Misconfigured):
                await _pass_body(client, host, asked)

        async with anyio.create_task_group() as group:
            group.start_soon(send_body)
            # Only this one request goes to the host: what follows could be meant for another.
            await host.drain_to(client)
            group.cancel_scope.cancel()

    async def _answer_socks(self, client: Wire) -> None:
        with anyio.fail_after(self._bounds.head):
            wanted = await socks.greet(client)
        if wanted is None:
            return
        try:
            async with self._reached(*wanted) as host:
                await client.send(socks.answer(socks.GRANTED))
                await relay(client, host)
        except Denied:
            await client.send(socks.answer(socks.NOT_ALLOWED))
        except HermesError:
            await client.send(socks.answer(socks.UNREACHABLE))

    @asynccontextmanager
    async def _reached(self, host: str, port: int) -> AsyncIterator[Wire]:
        if self._meter.is_spent:
            raise LimitReached(f"the command has moved {self._bounds.bytes:,} bytes over the network; no more is let")
        await self._require(Connect(host, port))
        try:
            sock = await self._dial(host, port, anyio.current_time() + self._bounds.dial)
        except Denied:
            shown = _shown(host, port)
            self._denied[shown] = None
            # How it could be allowed is for the owner to know, not for the command.
            raise Denied(f"{shown!r} is not on the internet; only the owner lets programs reach such places") from None
        with sock:
            yield Wire(sock, self._meter)

    async def _require(self, connect: Connect) -> None:
        """Raise Denied unless the host may be reached; each is asked about once."""
        if connect not in self._judged:
            if connect not in self._judging and len(self._judging) >= self._bounds.hosts:
                raise LimitReached(f"the command has asked for {self._bounds.hosts} hosts; no more are asked about")
            async with self._judging.setdefault(connect, anyio.Lock()):
                if connect not in self._judged:
                    self._judged[connect] = await self._ask(connect)
        if not self._judged[connect]:
            shown = _shown(connect.host, connect.port)
            self._denied[shown] = None
            raise Denied(
                f"{shown!r} may not be reached by this command. The policy of the session decides, and the person "
                "who runs it; another way to the same host is refused as well"
            )

    async def _ask(self, connect: Connect) -> bool:
        try:
            return await self._judge(connect)
        except Exception:  # noqa: BLE001 - a named boundary: who cannot judge has not allowed
            _log.exception("a host could not be judged", extra={"fields": {"host": connect.host}})
            return False


async def _accept(listener: socket.socket) -> socket.socket:
    while True:
        await anyio.wait_readable(listener)
        try:
            return listener.accept()[0]
        except OSError as error:
            if error.errno in _FULL:
                # Descriptors come back when other connections end.
                await anyio.sleep(_BREATH)


async def _pass_body(client: Wire, host: Wire, asked: Asked) -> None:
    if asked.body != "chunked":
        await client.pass_on(host, asked.body)
        return
    while True:
        line = await client.until(b"\r\n", _LONGEST_LINE)
        size = parse_size(line[:-2])
        await host.send(f"{size:x}\r\n".encode())
        if size == 0:
            while (line := await client.until(b"\r\n", _LONGEST_LINE)) != b"\r\n":
                pass
            await host.send(line)
            return
        await client.pass_on(host, size)
        if await client.until(b"\r\n", 2) != b"\r\n":
            raise Misconfigured("a piece of the body is longer than it says")
        await host.send(b"\r\n")


async def _refuse(client: Wire, error: HermesError) -> None:
    match error:
        case Denied():
            code = 403
        case LimitReached():
            code = 429
        case Misconfigured():
            code = 400
        case _:
            code = 502
    text = f"Hermes: {said(error)}.\n".encode()
    head = (
        f"HTTP/1.1 {code} {REASONS[code]}\r\nContent-Type: text/plain\r\n"
        f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    )
    await client.send(head.encode() + text)
    await client.hear_out()


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
