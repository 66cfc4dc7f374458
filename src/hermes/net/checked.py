"""Dial strictly: resolve once, judge every answer, and dial exactly the addresses that were judged."""

import asyncio
import socket
from collections.abc import Sequence

from hermes.domain.errors import Unavailable
from hermes.domain.records import dataclass
from hermes.net import address
from hermes.net.address import Ip, Listed
from hermes.net.dial import connect


@dataclass(frozen=True, slots=True)
class CheckedDial:
    """Implements `Dial`; `listed` are the private places that may be reached all the same."""

    listed: Sequence[Listed] = ()

    async def __call__(self, host: str, port: int, deadline: float) -> socket.socket:
        """Connect to a judged address; raise Denied, Misconfigured or Unavailable."""
        loop = asyncio.get_running_loop()
        name = address.parse_host(host)
        permitted = address.permit(name, port, await _resolve(name, port, deadline), self.listed)
        failure = "nobody answered in time"
        for number, ip in enumerate(permitted):
            left = deadline - loop.time()
            if left <= 0:
                break
            try:
                # An address that swallows packets must leave time for the next one.
                return await connect(
                    socket.AF_INET if ip.version == 4 else socket.AF_INET6,
                    _as_address(ip, port),
                    left if number == len(permitted) - 1 else left / 2,
                )
            except OSError as error:
                failure = error.strerror or failure
        raise Unavailable(f"'{host}:{port}' cannot be reached: {failure}; check the address, and that the server runs")


def _as_address(ip: Ip, port: int) -> tuple[str, int]:
    return str(ip), port


async def _resolve(name: str, port: int, deadline: float) -> list[str]:
    loop = asyncio.get_running_loop()
    is_literal = ":" in name or name.replace(".", "").isdigit()
    try:
        if is_literal:
            return [name]
        async with asyncio.timeout_at(deadline):
            answers = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        said = getattr(error, "strerror", None) or "nobody answered in time"
        raise Unavailable(f"the host {name!r} cannot be found: {said}; check the address") from error
    # A scope (after the percent sign) makes it an address of this link, which is refused.
    return [str(answer[4][0]) for answer in answers]
