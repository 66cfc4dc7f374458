"""How a connection to a host begins: the seam at which egress decides who may be reached.

Invariant: what is returned is connected to the host that was named, or nothing is left open.
"""

import asyncio
import os
import socket
from typing import Any, Protocol, TypeAlias

from hermes.domain.errors import Unavailable

Address: TypeAlias = tuple[Any, ...]
"""What the system calls an address; its form depends on the family."""


class Dial(Protocol):
    """Opens a TCP connection; TLS is laid over it afterwards, for the same host.

    `deadline` is a moment on the running loop's clock. Raises Denied for a host that may not be reached, Unavailable
    when nobody answers. Cancelling it leaves nothing open.
    """

    async def __call__(self, host: str, port: int, deadline: float) -> socket.socket:
        """Return a connected socket that does not block."""
        ...


async def dial(host: str, port: int, deadline: float) -> socket.socket:
    """Dial whatever the system's resolver says, one address after the other."""
    loop = asyncio.get_running_loop()
    failure = "nobody answered in time"
    found = await _resolve(host, port, deadline)
    for number, (family, address) in enumerate(found):
        left = deadline - loop.time()
        if left <= 0:
            break
        # An address that swallows packets must leave time for the next one.
        share = left if number == len(found) - 1 else left / 2
        try:
            return await connect(family, address, share)
        except OSError as error:
            failure = said(error)
    raise Unavailable(f"'{host}:{port}' cannot be reached: {failure}; check the address, and that the server runs")


async def connect(family: int, address: Address, seconds: float) -> socket.socket:
    """Connect to one address within `seconds`; raises OSError."""
    loop = asyncio.get_running_loop()
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        async with asyncio.timeout(seconds):
            await loop.sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


async def _resolve(host: str, port: int, deadline: float) -> list[tuple[int, Address]]:
    loop = asyncio.get_running_loop()
    try:
        if _is_literal(host):
            # Answered at once, so no thread is needed.
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        else:
            async with asyncio.timeout_at(deadline):
                answers = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unavailable(f"the host {host!r} cannot be found: {said(error)}; check the address") from error
    return [(family, address) for family, _, _, _, address in answers]


def _is_literal(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def said(error: Exception) -> str:
    """Say in the system's words why a connection could not be made."""
    if isinstance(error, TimeoutError):
        return "nobody answered in time"
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        # What asyncio writes instead repeats the address.
        return os.strerror(error.errno)
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
