"""One side of a brokered connection: a socket with what was read too far, metered together with all others.

Invariant: no read waits longer than the connection may be idle, and nothing moves when the allowance is spent.
"""

import asyncio
import socket

import anyio

from hermes.domain.errors import Misconfigured
from hermes.domain.records import dataclass

_CHUNK = 1 << 16
_LAST_WORDS, _LAST_READS = 2.0, 64


@dataclass(slots=True)
class Meter:
    """What all connections of a command have moved."""

    allowance: int
    idle: float
    moved: int = 0

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is let."""
        return self.moved >= self.allowance


class Wire:
    """A socket that does not block. Read by one task and written by one."""

    def __init__(self, sock: socket.socket, meter: Meter) -> None:
        self._sock = sock
        self._meter = meter
        self._buffer = bytearray()
        self._moved_at = anyio.current_time()

    async def peek(self) -> int:
        """Return the first byte without taking it; raise EOFError when there is none."""
        if not self._buffer:
            await self._fill()
        return self._buffer[0]

    async def until(self, end: bytes, limit: int) -> bytes:
        """Take what comes up to and with `end`; raise Misconfigured beyond `limit` bytes."""
        looked_at = 0
        while (found := self._buffer.find(end, max(0, looked_at - len(end)))) < 0:
            looked_at = len(self._buffer)
            if looked_at > limit:
                raise Misconfigured(f"the request is longer than {limit:,} bytes before its end")
            await self._fill()
        if found > limit:
            raise Misconfigured(f"the request is longer than {limit:,} bytes before its end")
        return self._take(found + len(end))

    async def exactly(self, count: int) -> bytes:
        """Take so many bytes."""
        while len(self._buffer) < count:
            await self._fill()
        return self._take(count)

    async def pass_on(self, other: "Wire", count: int) -> None:
        """Send so many bytes on to another."""
        while count > 0:
            if self._meter.is_spent:
                raise EOFError
            if not self._buffer:
                await self._fill()
            part = self._take(min(count, len(self._buffer)))
            await other.send(part)
            count -= len(part)

    async def drain_to(self, other: "Wire") -> None:
        """Send everything on to another until there is no more, then say so."""
        loop = asyncio.get_running_loop()
        if self._buffer:
            await other.send(self._take(len(self._buffer)))
        while not self._meter.is_spent:
            data = await self._received(loop, other)
            if not data:
                break
            await other.send(data)
        await other.end()

    async def send(self, data: bytes) -> None:
        """Send all of it."""
        with anyio.fail_after(self._meter.idle):
            await asyncio.get_running_loop().sock_sendall(self._sock, data)
        self._meter.moved += len(data)
        self._moved_at = anyio.current_time()

    async def end(self) -> None:
        """Say that nothing more comes."""
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            # The other side was faster.
            return

    async def hear_out(self) -> None:
        """Say that nothing more comes, and let the other side finish: who is cut off while it speaks hears nothing."""
        await self.end()
        self._buffer.clear()
        with anyio.move_on_after(_LAST_WORDS):
            for _ in range(_LAST_READS):
                if not await asyncio.get_running_loop().sock_recv(self._sock, _CHUNK):
                    return

    async def _received(self, loop: asyncio.AbstractEventLoop, other: "Wire") -> bytes:
        """Wait for more; empty at the end, and when neither direction has moved for too long."""
        while True:
            quiet_since = max(self._moved_at, other._moved_at)  # noqa: SLF001  # both are of this class
            left = quiet_since + self._meter.idle - anyio.current_time()
            if left <= 0:
                return b""
            with anyio.move_on_after(left):
                data = await loop.sock_recv(self._sock, _CHUNK)
                self._moved_at = anyio.current_time()
                return data

    async def _fill(self) -> None:
        with anyio.fail_after(self._meter.idle):
            data = await asyncio.get_running_loop().sock_recv(self._sock, _CHUNK)
        if not data:
            raise EOFError
        self._buffer += data

    def _take(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


async def relay(one: Wire, other: Wire) -> None:
    """Send on in both directions until both have ended, or one is gone."""

    async def go(source: Wire, target: Wire, scope: anyio.CancelScope) -> None:
        try:
            await source.drain_to(target)
        except (OSError, TimeoutError):
            scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(go, one, other, group.cancel_scope)
        group.start_soon(go, other, one, group.cancel_scope)
