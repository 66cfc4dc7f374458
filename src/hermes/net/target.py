"""Where a request goes: an http or https address, taken apart once and checked strictly.

Invariant: the host that is dialled, named in TLS and written in the Host line is one and the same text.
"""

import ipaddress
import re
from urllib.parse import urlsplit

from hermes.domain.errors import Misconfigured
from hermes.domain.records import dataclass

_PORTS = {"http": 80, "https": 443}
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
_NUMERIC = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.ASCII)
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_OUTSIDE_PATH = re.compile(r"[^!-~]")


@dataclass(frozen=True, slots=True)
class Target:
    """One address. `path` is what stands in the first line of a request, with its query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> tuple[str, str, int]:
        """What two addresses share when one connection serves both."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """What the Host line says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path.partition('?')[0]}"


def target(url: str) -> Target:
    """Take an address apart; raise Misconfigured for anything that two readers could understand differently."""
    what = f"the address {shown(url)!r}"
    if _UNSAFE.search(url):
        raise Misconfigured(f"{what} holds a blank, a backslash or a control character; write it without")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Misconfigured(f"{what} cannot be read ({error}); expected one such as https://host/path") from None
    if parts.scheme not in _PORTS:
        raise Misconfigured(f"{what} begins with {parts.scheme!r}, expected http:// or https://")
    if "@" in parts.netloc:
        raise Misconfigured(f"{what} holds a name or a password before the host; give those by themselves")
    host = strict_host(parts.hostname or "")
    query = f"?{parts.query}" if parts.query else ""
    path = _OUTSIDE_PATH.sub(_percent, f"{parts.path or '/'}{query}")
    return Target(parts.scheme, host, port or _PORTS[parts.scheme], path)


def strict_host(host: str) -> str:
    """Return a host name in ASCII and lower case, or a literal address; raise Misconfigured for everything else.

    Numbers that some resolvers take for an address and others for a name (0x7f.1, 2130706433, 010.0.0.1) are refused.
    """
    if ":" in host:
        return _literal(host, host)
    name = host.lower().removesuffix(".")
    if not name.isascii():
        try:
            name = name.encode("idna").decode()
        except UnicodeError:
            name = ""
    labels = name.split(".")
    if not name or len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise Misconfigured(f"{host!r} is no host; expected a name such as example.com, or an address")
    if _NUMERIC.fullmatch(labels[-1]):
        return _literal(name, host)
    return name


def _literal(text: str, host: str) -> str:
    try:
        return str(ipaddress.ip_address("" if "%" in text else text))
    except ValueError:
        raise Misconfigured(f"{host!r} is no address; expected one such as 192.0.2.1 or 2001:db8::1") from None


def shown(url: str) -> str:
    """Return an address for a message: without what may be a secret, and not endlessly long."""
    begin, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    bare = f"{begin}{separator}{authority.rpartition('@')[2]}{slash}{path}".partition("?")[0]
    return bare if len(bare) <= 200 else f"{bare[:200]}…"


def _percent(match: "re.Match[str]") -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))
