"""The way out for everything that a tool, a page or a remote names: resolve once, judge every answer, dial what was
judged, and look once more who answers.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from hermes.domain.errors import Unavailable
from hermes.domain.records import dataclass
from hermes.net import address
from hermes.net.address import Ip, Listed
from hermes.net.dial import connect, said

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Gives every address of a host, as text; raises OSError."""


async def resolve(name: str, port: int) -> Sequence[str]:
    """Ask the system's resolver."""
    answers = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    # A scope (after the percent sign) makes it an address of this link, which is refused.
    return [str(answer[4][0]) for answer in answers]


@dataclass(frozen=True, slots=True)
class CheckedDial:
    """Implements `Dial`; `listed` are the private places that may be reached all the same."""

    listed: Sequence[Listed] = ()
    resolve: Resolve = resolve

    async def __call__(self, host: str, port: int, deadline: float) -> socket.socket:
        """Connect to a judged address; raise Denied, Misconfigured or Unavailable."""
        loop = asyncio.get_running_loop()
        name = address.parse_host(host)
        permitted = address.permit(name, port, await self._answers(name, port, deadline), self.listed)
        failure = "it has no address" if not permitted else "nobody answered in time"
        for number, ip in enumerate(permitted):
            left = deadline - loop.time()
            if left <= 0:
                break
            try:
                # An address that swallows packets must leave time for the next one.
                share = left if number == len(permitted) - 1 else left / 2
                return self._judged(await connect(_family(ip), _as_address(ip, port), share), name, port)
            except OSError as error:
                failure = said(error)
        raise Unavailable(f"'{host}:{port}' cannot be reached: {failure}; check the address, and that the server runs")

    async def _answers(self, name: str, port: int, deadline: float) -> Sequence[str]:
        if ":" in name or name.replace(".", "").isdigit():
            return [name]
        try:
            async with asyncio.timeout_at(deadline):
                return await self.resolve(name, port)
        except (OSError, UnicodeError) as error:
            raise Unavailable(f"the host {name!r} cannot be found: {said(error)}; check the address") from error

    def _judged(self, sock: socket.socket, name: str, port: int) -> socket.socket:
        """Judge who is at the other end, whatever was between."""
        try:
            address.permit(name, port, [sock.getpeername()[0]], self.listed)
        except BaseException:
            sock.close()
            raise
        return sock


def _family(ip: Ip) -> int:
    return socket.AF_INET if ip.version == 4 else socket.AF_INET6


def _as_address(ip: Ip, port: int) -> tuple[str, int]:
    return str(ip), port
