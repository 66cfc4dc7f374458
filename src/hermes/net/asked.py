"""What a program asks of a proxy, read strictly: pure parsing of heads and of the sizes of bodies.

Invariant: a request names one host, in its target; no other word of it decides where it goes.
"""

import re
from typing import Literal, TypeAlias

from hermes.domain.errors import HermesError, Misconfigured
from hermes.domain.records import dataclass
from hermes.net.address import parse_authority

LONGEST_HEAD = 32_768
_METHOD = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,32}")
_NAME = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_PATH = re.compile(rb"[\x21-\x7e]*")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,15}")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_OF_ONE_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade", b"host", b"http2-settings"}
)

Body: TypeAlias = int | Literal["chunked"]
"""How long a body is, or that it says so itself, piece by piece."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. A tunnel has no head to send on; `head` is what the host gets, written anew."""

    host: str
    port: int
    is_tunnel: bool
    head: bytes = b""
    body: Body = 0


def parse_asked(raw: bytes) -> Asked:
    """Read a head, its empty line included; raise Misconfigured for anything but a plain request to a proxy."""
    first, *rest = raw.removesuffix(b"\r\n\r\n").split(b"\r\n")
    words = first.split(b" ")
    if len(words) != 3 or not _METHOD.fullmatch(words[0]) or words[2] not in {b"HTTP/1.1", b"HTTP/1.0"}:
        raise Misconfigured("the first line is no request; expected a method, a target and HTTP/1.1")
    method, target, _ = words
    fields = [_field(line) for line in rest]
    if method == b"CONNECT":
        host, port = parse_authority(_ascii(target))
        return Asked(host, port, is_tunnel=True)
    scheme, separator, after = target.partition(b"://")
    if not separator or scheme.lower() != b"http":
        raise Misconfigured("the target is neither CONNECT host:port nor http://host/; set no other scheme for a proxy")
    authority, path = _split(after)
    host, port = parse_authority(_ascii(authority), default=80)
    body, dropped = _body(fields), {name.strip().lower() for name in _listed(fields, b"connection")}
    shown = f"[{host}]" if ":" in host else host
    lines = [method + b" " + path + b" HTTP/1.1", b"Host: " + (shown if port == 80 else f"{shown}:{port}").encode()]
    for name, value in fields:
        low = name.lower()
        if low not in _OF_ONE_HOP and low not in dropped and not low.startswith(b"proxy-"):
            lines.append(name + b": " + value)
    lines += [b"Connection: close", b"", b""]
    return Asked(host, port, is_tunnel=False, head=b"\r\n".join(lines), body=body)


def parse_size(line: bytes) -> int:
    """Read the line before a piece of a body; raise Misconfigured."""
    size = line.partition(b";")[0]
    if not _SIZE.fullmatch(size):
        raise Misconfigured("a piece of the body has no size")
    return int(size, 16)


def said(error: HermesError) -> str:
    """Return what an error says on one line, safe to print."""
    return str(error).encode("ascii", "backslashreplace").decode().replace("\n", " ").replace("\r", " ")


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, colon, value = line.partition(b":")
    if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise Misconfigured("a line of the head is no field")
    return name, value.strip(b" \t")


def _split(after: bytes) -> tuple[bytes, bytes]:
    place = min((at for at in (after.find(b"/"), after.find(b"?")) if at >= 0), default=len(after))
    path = after[place:].partition(b"#")[0]
    path = path if path.startswith(b"/") else b"/" + path
    if not _PATH.fullmatch(path):
        raise Misconfigured("the path of the target holds something that must be escaped")
    return after[:place], path


def _body(fields: list[tuple[bytes, bytes]]) -> Body:
    lengths, codings = _listed(fields, b"content-length"), _listed(fields, b"transfer-encoding")
    if codings:
        if lengths or [coding.lower() for coding in codings] != [b"chunked"]:
            raise Misconfigured("the body has two sizes or an unknown coding")
        return "chunked"
    if len(lengths) > 1 or not all(_LENGTH.fullmatch(length) for length in lengths):
        raise Misconfigured("the body has no plain length")
    return int(lengths[0]) if lengths else 0


def _listed(fields: list[tuple[bytes, bytes]], wanted: bytes) -> list[bytes]:
    return [part.strip() for name, value in fields if name.lower() == wanted for part in value.split(b",")]


def _ascii(raw: bytes) -> str:
    # What is not ASCII stays visible as such, and the grammar refuses it.
    return raw.decode("latin-1")
