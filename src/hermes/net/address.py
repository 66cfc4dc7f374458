"""Which hosts may be named and which addresses may be dialled: pure rules, without a resolver and without a socket.

Invariant: a host has exactly one spelling, so what is judged is what is dialled. An address that is not plainly on the
internet is refused unless a person listed it; one bad answer of a resolver spoils all of them.
"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

from hermes.domain.errors import Denied, Misconfigured
from hermes.domain.records import dataclass

Ip: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_FOUR = re.compile(r"(?:(?:0|[1-9][0-9]{0,2})\.){3}(?:0|[1-9][0-9]{0,2})")
_A_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_SIX = re.compile(r"[0-9a-f:.]+")
_LONGEST = 253
_PORTS = 65_535

_NOT_GLOBAL_4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # behind a carrier; one cloud's metadata
        "127.0.0.0/8",  # this machine
        "168.63.129.16/32",  # one cloud's metadata, although it looks public
        "169.254.0.0/16",  # this link; metadata of most clouds
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; one cloud's metadata
        "192.0.2.0/24",  # for documents
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # measurements
        "198.51.100.0/24",  # for documents
        "203.0.113.0/24",  # for documents
        "224.0.0.0/4",  # many at once
        "240.0.0.0/4",  # reserved, and everybody
    )
)
_GLOBAL_6 = IPv6Network("2000::/3")
_NOT_GLOBAL_6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, among them Teredo, which holds an IPv4 address
        "2001:db8::/32",  # for documents
        "2002::/16",  # 6to4, which holds an IPv4 address
        "3fff::/20",  # for documents
    )
)
_TRANSLATED = IPv6Network("64:ff9b::/96")
"""What a network without IPv4 makes of an IPv4 address; judged by the address it holds."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What a person has listed: a host by its name, or a network; `port` None means any."""

    place: str | Network
    port: int | None

    def covers(self, host: str, ip: Ip, port: int) -> bool:
        """Whether this address, as an answer for this host, is meant."""
        if self.port not in {None, port}:
            return False
        return host == self.place if isinstance(self.place, str) else ip in self.place


def parse_listed(items: Iterable[str]) -> tuple[Listed, ...]:
    """Read `host:port` and `network:port`, as the setting `sandbox.listed` holds them; raise Misconfigured."""
    return tuple(_parse_listed(item) for item in items)


def _parse_listed(item: str) -> Listed:
    place, _, port = item.rpartition(":")
    number = None if port == "*" else parse_port(port)
    bare = place.removeprefix("[").removesuffix("]")
    try:
        return Listed(ip_network(bare), number)
    except ValueError:
        return Listed(parse_host(bare), number)


def parse_host(text: str) -> str:
    """Return the one spelling of a host: a name in lower case, or an address; without brackets. Raise Misconfigured for
    whatever two programs could read differently.
    """
    host = text.lower()
    if not host.isascii():
        raise _bad(text, "letters outside ASCII; write it in its xn-- form")
    if ":" in host:
        return str(_six(text, host))
    if host.endswith("."):
        raise _bad(text, "a dot at its end; leave it out")
    labels = host.split(".")
    if _A_NUMBER.fullmatch(labels[-1]):
        if not _FOUR.fullmatch(host) or any(int(label) > 255 for label in labels):
            raise _bad(text, "an odd form of an address; write four decimal numbers")
        return host
    if len(host) > _LONGEST or not all(_LABEL.fullmatch(label) for label in labels):
        raise _bad(text, "something that is no host name; expected letters, digits, hyphens and dots")
    return host


def _six(text: str, host: str) -> IPv6Address:
    if _SIX.fullmatch(host):
        with suppress(ValueError):
            return IPv6Address(host)
    raise _bad(text, "something that is no IPv6 address")


def parse_port(text: str) -> int:
    """Return a port from 1 to 65535 in plain decimal; raise Misconfigured."""
    if not (text.isascii() and text.isdigit() and text[0] != "0" and len(text) <= 5) or int(text) > _PORTS:
        raise Misconfigured(f"{text!r} is no port; expected a number from 1 to {_PORTS}")
    return int(text)


def parse_authority(text: str, *, default: int | None = None) -> tuple[str, int]:
    """Read `host:port` as it stands in a request; raise Misconfigured. Without `default` the port is needed."""
    bracketed = text.startswith("[")
    if bracketed:
        host, bracket, port = text[1:].partition("]")
        if not bracket or ":" not in host or (port and not port.startswith(":")):
            raise _bad(text, "brackets that hold no IPv6 address")
        port = port[1:] if port else ""
        has_port = text[-1] != "]"
    else:
        host, colon, port = text.partition(":")
        has_port = bool(colon)
    if not has_port and default is not None:
        return parse_host(host), default
    return parse_host(host), parse_port(port)


def is_global(ip: Ip) -> bool:
    """Whether an address is plainly somewhere on the internet."""
    if isinstance(ip, IPv4Address):
        return not any(ip in network for network in _NOT_GLOBAL_4)
    if ip.scope_id is not None:
        return False
    if ip in _TRANSLATED:
        return is_global(IPv4Address(int(ip) & 0xFFFF_FFFF))
    return ip in _GLOBAL_6 and not any(ip in network for network in _NOT_GLOBAL_6)


def permit(host: str, port: int, answers: Sequence[str], listed: Sequence[Listed]) -> tuple[Ip, ...]:
    """Return the addresses that may be dialled for a host, in their order; raise Denied when one of them may not."""
    found = []
    for answer in answers:
        ip = _parsed(host, answer)
        if not is_global(ip) and not any(one.covers(host, ip, port) for one in listed):
            raise Denied(
                f"'{host}:{port}' leads to {str(ip)!r}, which is not on the internet; "
                "only the owner lets programs reach such places"
            )
        found.append(ip)
    return tuple(found)


def _parsed(host: str, answer: str) -> Ip:
    try:
        return ip_address(answer)
    except ValueError:
        raise Denied(f"the host {host!r} leads to {answer!r}, which is no address; check its name server") from None


def _bad(text: str, why: str) -> Misconfigured:
    return Misconfigured(f"the host {text[:300]!r} holds {why}")
