"""A server that writes exactly the bytes it is told, on loopback."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import pytest
from anyio.abc import ByteStream, SocketAttribute

Play = Callable[[ByteStream, bytes], Awaitable[None]]
pytestmark = pytest.mark.anyio


@dataclass
class RawServer:
    """Calls `play` for each request, with its bytes; a connection ends when the client ends it or `play` closes it."""

    play: Play
    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/x"

    async def serve(self, stream: ByteStream) -> None:
        self.connections += 1
        async with stream:
            try:
                while True:
                    request = b""
                    while b"\r\n\r\n" not in request:
                        request += await stream.receive()
                    self.requests.append(request)
                    await self.play(stream, request)
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


@asynccontextmanager
async def serving(play: Play | bytes) -> AsyncIterator[RawServer]:
    """Serve the same bytes to every request, or whatever a function writes."""

    async def write(stream: ByteStream, _request: bytes) -> None:
        assert isinstance(play, bytes)
        await stream.send(play)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server = RawServer(write if isinstance(play, bytes) else play)
    server.port = listener.extra(SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, server.serve)
        yield server
        group.cancel_scope.cancel()
