"""Where a request goes: an http or https address, taken apart once and checked strictly.

Invariant: the host that is dialled, named in TLS and written in the Host line is one and the same text.
"""

import re
from urllib.parse import urlsplit

from hermes.domain.errors import Misconfigured
from hermes.domain.records import dataclass
from hermes.net.address import parse_host

_PORTS = {"http": 80, "https": 443}
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
    host = _host(parts.hostname or "")
    query = f"?{parts.query}" if parts.query else ""
    path = _OUTSIDE_PATH.sub(_percent, f"{parts.path or '/'}{query}")
    return Target(parts.scheme, host, port or _PORTS[parts.scheme], path)


def _host(text: str) -> str:
    """Return the host in ASCII and lower case. Beyond the rules for names an underscore may stand in one: services of a
    private network are called so.
    """
    name = text.lower().removesuffix(".")
    if not name.isascii():
        try:
            name = name.encode("idna").decode()
        except UnicodeError:
            raise Misconfigured(f"{text!r} is no host; expected a name such as example.com, or an address") from None
    parsed = parse_host(name.replace("_", "-"))
    return name if "_" in name else parsed


def shown(url: str) -> str:
    """Return an address for a message: without what may be a secret, and not endlessly long."""
    begin, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    bare = f"{begin}{separator}{authority.rpartition('@')[2]}{slash}{path}".partition("?")[0]
    return bare if len(bare) <= 200 else f"{bare[:200]}…"


def _percent(match: "re.Match[str]") -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogatepass"))
