"""Ways in which a model's server can fail below its wire format: connections, headers, chunks, pages."""

import socket
import struct
from collections.abc import Callable, Mapping

import anyio
from anyio.abc import ByteStream, SocketAttribute

from hermes.domain.errors import Denied, HermesError, LimitReached, Misconfigured, Unavailable, Unsupported
from hermes.domain.model import Cut
from hermes.testing.model_server import STREAM, Asked, Behave, Closed, chunk, good_events

PAGE = b"<!DOCTYPE html><html><body><h1>Welcome to the router</h1></body></html>"
_LENGTH = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s"


def raw(*pieces: bytes) -> Behave:
    """Write these bytes and close."""

    async def play(stream: ByteStream, _asked: Asked) -> None:
        for piece in pieces:
            await stream.send(piece)
        raise Closed

    return play


def hanging(*pieces: bytes) -> Behave:
    """Write these bytes and say no more."""

    async def play(stream: ByteStream, _asked: Asked) -> None:
        for piece in pieces:
            await stream.send(piece)
        await until_gone(stream)

    return play


async def until_gone(stream: ByteStream) -> None:
    """Say nothing until the other side gives up."""
    while True:
        await stream.receive()


def streamed(write: Callable[[list[bytes]], list[bytes]], *, hangs: bool = False, resets: bool = False) -> Behave:
    """Write what is made of a good answer's events, each as it stands, after the head of a stream."""

    async def play(stream: ByteStream, asked: Asked) -> None:
        await stream.send(STREAM)
        for piece in write(good_events(asked)):
            await stream.send(piece)
        if hangs:
            await until_gone(stream)
        if resets:
            reset(stream)
        raise Closed

    return play


def reset(stream: ByteStream) -> None:
    """Let the connection end with a reset instead of a farewell."""
    sock = stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - of anyio, no database
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def _reset(stream: ByteStream, _asked: Asked) -> None:
    reset(stream)
    raise Closed


async def _slowly(stream: ByteStream, asked: Asked) -> None:
    await stream.send(STREAM)
    for byte in b"".join(good_events(asked)):
        await stream.send(chunk(bytes([byte])))
        await anyio.sleep(0.02)


def page(status: int) -> Behave:
    """Answer with a web page."""
    head = b"HTTP/1.1 %d X\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"
    return raw(head % (status, len(PAGE)) + PAGE)


def whole(make: Callable[[bytes], bytes]) -> Behave:
    """Answer with something made of a good body."""

    async def play(stream: ByteStream, asked: Asked) -> None:
        await stream.send(make(b"".join(good_events(asked))))
        raise Closed

    return play


def _hello(events: list[bytes]) -> list[bytes]:
    """Most of an answer: everything but its end."""
    return [chunk(event) for event in events[:-3]]


TRANSPORT: Mapping[str, tuple[Behave, type[HermesError] | None]] = {
    "hang before headers": (hanging(), Unavailable),
    "hang in headers": (hanging(b"HTTP/1.1 200 OK\r\nContent-"), Unavailable),
    "hang after headers": (hanging(STREAM), Unavailable),
    "hang in mid stream": (streamed(_hello, hangs=True), Cut),
    "hang in mid chunk": (streamed(lambda events: [*_hello(events), b"ff\r\nhalf"], hangs=True), Cut),
    "hang after the last event": (streamed(lambda events: [chunk(e) for e in events], hangs=True), None),
    "one byte at a time, for ever": (_slowly, Unavailable),
    "close before headers": (raw(), Unavailable),
    "close in headers": (raw(b"HTTP/1.1 200 OK\r\nContent-"), Unavailable),
    "close after headers": (raw(STREAM), Unavailable),
    "reset before headers": (_reset, Unavailable),
    "reset in mid stream": (streamed(_hello, resets=True), Cut),
    "cut in mid chunk": (streamed(lambda events: [*_hello(events), b"ff\r\ndata: {"]), Cut),
    "cut between events": (streamed(_hello), Cut),
    "cut before the last chunk": (streamed(lambda events: [chunk(e) for e in events]), None),
    "no HTTP at all": (raw(b"220 smtp.example ESMTP\r\n"), Unavailable),
    "binary noise as headers": (raw(bytes(range(256)) * 8), Unavailable),
    "binary noise as body": (raw(_LENGTH % (512, bytes(range(256)) * 2)), Unavailable),
    "bad chunk size": (streamed(lambda events: [*_hello(events), b"zz\r\nx\r\n"]), Cut),
    "negative chunk size": (streamed(lambda events: [*_hello(events), b"-1\r\nx\r\n"]), Cut),
    "empty answer": (raw(_LENGTH % (0, b"")), Unavailable),
    "shorter length than body": (whole(lambda body: _LENGTH % (len(body) // 2, body)), Cut),
    "longer length than body": (whole(lambda body: _LENGTH % (len(body) + 999, body)), None),
    "two lengths": (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"), Unavailable),
    "length and chunks": (
        raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        Unavailable,
    ),
    "no length, until the end": (whole(lambda body: b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + body), None),
    "no type": (whole(lambda body: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)), None),
    "interim answers first": (whole(lambda body: b"HTTP/1.1 102 P\r\n\r\n" * 50 + _LENGTH % (len(body), body)), None),
    "interim answers without end": (raw(b"HTTP/1.1 102 P\r\n\r\n" * 20_000), LimitReached),
    "gzip although not asked": (
        raw(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00"),
        Unsupported,
    ),
    "redirect": (raw(b"HTTP/1.1 307 X\r\nLocation: https://example.com/v1\r\nContent-Length: 0\r\n\r\n"), Misconfigured),
    "headers too long": (raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000), LimitReached),
    "too many headers": (raw(b"HTTP/1.1 200 OK\r\n" + b"".join(b"A%d: y\r\n" % n for n in range(5000))), LimitReached),
    "page instead of an answer": (page(200), Misconfigured),
    "page as a stream": (raw(_LENGTH % (len(PAGE), PAGE)), Misconfigured),
    "page, not found": (page(404), Misconfigured),
    "page, forbidden": (page(403), Denied),
    "page, bad gateway": (page(502), Unavailable),
}  # fmt: skip
