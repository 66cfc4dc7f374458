"""The way out for everything that a tool, a page or a remote names: only what is on the internet, or listed.

Invariant: the address that was judged is the address that is dialled, and of a name with several answers all are
judged; nothing is listed unless the owner listed it.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from hermes.domain.errors import Denied, Unavailable
from hermes.domain.records import dataclass
from hermes.net.dial import Address, connect, said
from hermes.net.target import strict_host

IP: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[tuple[int, Address]]]]
"""Gives every address of a host, as family and what the system calls an address; raises OSError."""

_METADATA = frozenset(
    {"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"}
)
# Networks that the standard library calls global, or whose inside it does not look at.
_NEVER = tuple(
    ipaddress.ip_network(text)
    for text in (
        "100.64.0.0/10", "168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "224.0.0.0/4",
        "240.0.0.0/4", "::/96", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7",
        "fe80::/10", "fec0::/10", "ff00::/8",
    )
)  # fmt: skip
_NAT64 = tuple(ipaddress.ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48"))
_6TO4 = ipaddress.ip_network("2002::/16")


def is_global(ip: IP) -> bool:
    """Whether an address is on the internet, and so is every address that it carries inside."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.scope_id is not None:
            return False
        if (inner := carried(ip)) is not None:
            return is_global(inner)
    return ip.is_global and not ip.is_multicast and not any(ip in net for net in _NEVER if net.version == ip.version)


def carried(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the older address that a mapped, translated or tunnelled one leads to."""
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip in _6TO4:
        return ip.sixtofour
    if any(ip in net for net in _NAT64):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return None


@dataclass(frozen=True, slots=True)
class Listed:
    """What the owner allows although it is not on the internet: items such as `10.1.2.0/24:443` or `nas.lan:*`."""

    items: tuple[str, ...] = ()

    def names(self, host: str, port: int) -> bool:
        """Whether this very host is listed by its name."""
        return any(name == host and fits in {"*", str(port)} for name, fits in self._split())

    def holds(self, ip: IP, port: int) -> bool:
        """Whether a listed network or address contains this one."""
        return any(_contains(name, ip) and fits in {"*", str(port)} for name, fits in self._split())

    def _split(self) -> list[tuple[str, str]]:
        pairs = [item.rpartition(":") for item in self.items]
        return [(name.strip("[]").lower().removesuffix("."), port) for name, _, port in pairs]


def _contains(text: str, ip: IP) -> bool:
    try:
        return ip in ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False


async def resolve(host: str, port: int) -> Sequence[tuple[int, Address]]:
    """Ask the system's resolver."""
    answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [(family, address) for family, _, _, _, address in answers]


@dataclass(frozen=True, slots=True)
class Egress:
    """Dials what may be reached; it is a `Dial`. `listed` is what the owner set, nothing if not."""

    listed: Listed = Listed()
    resolve: Resolve = resolve

    async def __call__(self, host: str, port: int, deadline: float) -> socket.socket:
        """Return a connected socket. Raises Denied for what may not be reached, Unavailable when nobody answers."""
        name = strict_host(host)
        loop = asyncio.get_running_loop()
        found = await self._allowed(name, port, deadline)
        failure = "nobody answered in time"
        for number, (family, address) in enumerate(found):
            left = deadline - loop.time()
            if left <= 0:
                break
            try:
                sock = await connect(family, address, left if number == len(found) - 1 else left / 2)
            except OSError as error:
                failure = said(error)
                continue
            try:
                self._require_peer(sock, name, port)
            except BaseException:
                sock.close()
                raise
            return sock
        raise Unavailable(f"'{name}:{port}' cannot be reached: {failure}")

    async def _allowed(self, name: str, port: int, deadline: float) -> Sequence[tuple[int, Address]]:
        """Resolve a host and judge every answer."""
        is_named = self.listed.names(name, port)
        if name in _METADATA and not is_named:
            raise Denied(f"{name!r} gives out secrets of this machine and may not be reached")
        try:
            async with asyncio.timeout_at(deadline):
                found = await self.resolve(name, port)
        except (OSError, UnicodeError) as error:
            raise Unavailable(f"the host {name!r} cannot be found: {said(error)}") from error
        if not found:
            raise Unavailable(f"the host {name!r} has no address")
        for _, address in found:
            if not is_named:
                self._require(_ip(address), name, port)
        return found

    def _require_peer(self, sock: socket.socket, name: str, port: int) -> None:
        """Judge once more who is at the other end, whatever was between."""
        if not self.listed.names(name, port):
            self._require(_ip(sock.getpeername()), name, port)

    def _require(self, ip: IP, name: str, port: int) -> None:
        if is_global(ip) or self.listed.holds(ip, port):
            return
        where = name if name == str(ip) else f"{name} ({ip})"
        raise Denied(
            f"'{where}:{port}' is not on the internet and may not be reached; "
            f"the owner can list it: `hermes config set sandbox.listed {name}:{port}`"
        )


def _ip(address: Address) -> IP:
    return ipaddress.ip_address(address[0])
