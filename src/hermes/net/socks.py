"""The few bytes of SOCKS5 that a proxy without passwords speaks."""

import ipaddress

from hermes.domain.errors import HermesError
from hermes.net.address import parse_host
from hermes.net.wire import Wire

VERSION = 5
GRANTED, NOT_ALLOWED, UNREACHABLE = 0, 2, 4
_ORDER_UNKNOWN, _FORM_UNKNOWN = 7, 8
_NO_PASSWORD, _NO_METHOD = b"\x05\x00", b"\x05\xff"
_CONNECT = 1
_FOUR, _NAME, _SIX = 1, 3, 4


def answer(code: int) -> bytes:
    """Return the answer to a request; where we are dialling from is nobody's business."""
    return bytes((VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0))


async def greet(client: Wire) -> tuple[str, int] | None:
    """Speak up to the request and return the host and port it names; None when it was refused already."""
    _, count = await client.exactly(2)
    methods = await client.exactly(count)
    if 0 not in methods:
        await client.send(_NO_METHOD)
        return None
    await client.send(_NO_PASSWORD)
    version, order, _, form = await client.exactly(4)
    if form == _NAME:
        (count,) = await client.exactly(1)
        text = (await client.exactly(count)).decode("latin-1")
    elif form in {_FOUR, _SIX}:
        text = str(ipaddress.ip_address(await client.exactly(4 if form == _FOUR else 16)))
    else:
        await client.send(answer(_FORM_UNKNOWN))
        return None
    port = int.from_bytes(await client.exactly(2), "big")
    if version != VERSION or order != _CONNECT:
        await client.send(answer(_ORDER_UNKNOWN))
        return None
    try:
        host = parse_host(text)
    except HermesError:
        host = ""
    if not host or not port:
        await client.send(answer(_FORM_UNKNOWN))
        return None
    return host, port
