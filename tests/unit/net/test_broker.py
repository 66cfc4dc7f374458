"""The way out of a sandbox: who is asked, who is dialled, and what goes over the wire."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.effect import Connect
from hermes.domain.errors import HermesError, Misconfigured, Unavailable
from hermes.net.asked import parse_asked
from hermes.net.broker import Bounds, Broker
from hermes.net.dial import connect

pytestmark = pytest.mark.anyio


@dataclass(slots=True)
class World:
    """One judge, one dial that leads everything to a server of ours, and what they were asked."""

    allowed: set[str] = field(default_factory=lambda: {"good.example"})
    asked: list[Connect] = field(default_factory=list)
    dialled: list[tuple[str, int]] = field(default_factory=list)
    heard: list[bytes] = field(default_factory=list)
    port: int = 0
    proxy: int = 0
    reply: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

    async def judge(self, connect: Connect) -> bool:
        self.asked.append(connect)
        await anyio.sleep(0.01)
        if connect.host == "broken.example":
            raise RuntimeError("nobody can judge this")
        return connect.host in self.allowed

    async def dial(self, host: str, port: int, deadline: float) -> socket.socket:
        assert deadline > anyio.current_time()
        self.dialled.append((host, port))
        if port == 81:
            raise Unavailable(f"'{host}:{port}' cannot be reached: nobody is there; try later")
        return await connect(socket.AF_INET, ("127.0.0.1", self.port), 5)

    async def attend(self, stream: anyio.abc.SocketStream) -> None:
        async with stream:
            data = b""
            # Whoever asked may be gone again.
            with anyio.move_on_after(0.3), suppress(anyio.EndOfStream):
                while True:
                    data += await stream.receive()
                    if data.startswith(b"echo"):
                        await stream.send(data)
                        data = b""
            self.heard.append(data)
            with suppress(anyio.BrokenResourceError):
                await stream.send(self.reply)

    async def talk(self, *parts: bytes, end: bool = False) -> bytes:
        said = b""
        async with await anyio.connect_tcp("127.0.0.1", self.proxy) as stream:
            for part in parts:
                await stream.send(part)
            if end:
                await stream.send_eof()
            with anyio.move_on_after(5):
                async for data in stream:
                    said += data
        return said


@asynccontextmanager
async def opened(world: World, bounds: Bounds | None = None) -> AsyncIterator[Broker]:
    broker = Broker(world.judge, world.dial, bounds)
    server = await anyio.create_tcp_listener(local_host="127.0.0.1")
    world.port = server.extra(anyio.abc.SocketAttribute.local_port)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        world.proxy = listener.getsockname()[1]
        async with server, anyio.create_task_group() as group:
            group.start_soon(server.serve, world.attend)
            group.start_soon(broker.serve, listener)
            yield broker
            group.cancel_scope.cancel()


async def test_a_request_goes_to_the_judged_host_with_its_head_written_anew() -> None:
    world = World()
    async with opened(world) as broker:
        answer = await world.talk(
            b"POST http://Good.Example/a?b=1 HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic eA==\r\n"
            b"X-One: 1\r\nX-Gone: 2\r\nConnection: x-gone, keep-alive\r\nContent-Length: 4\r\n\r\nbody"
            b"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"
        )
    assert answer == world.reply
    assert world.asked == [Connect("good.example", 80)]
    assert world.dialled == [("good.example", 80)]
    assert broker.denied == ()
    assert world.heard == [
        b"POST /a?b=1 HTTP/1.1\r\nHost: good.example\r\nX-One: 1\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
    ]


async def test_a_body_in_pieces_is_passed_on_and_what_follows_it_is_not() -> None:
    world = World()
    async with opened(world):
        head = b"POST http://good.example:8080/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        await world.talk(head, b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\nGET / HTTP/1.1\r\n\r\n")
    assert world.heard[0].startswith(b"POST / HTTP/1.1\r\nHost: good.example:8080\r\n")
    assert world.heard[0].endswith(b"\r\n\r\n3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n")


async def test_a_tunnel_passes_every_byte_untouched() -> None:
    world = World()
    async with opened(world):
        answer = await world.talk(
            b"CONNECT good.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", b"echo\x16\x03\0"
        )
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\necho\x16\x03\0" + world.reply
    assert world.dialled == [("good.example", 443)]


async def test_a_denied_host_is_refused_at_once_named_and_never_looked_up() -> None:
    world = World()
    async with opened(world) as broker:
        for _ in range(3):
            answer = await world.talk(b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 403 ")
            assert b"'evil.example:443' may not be reached" in answer
            assert b"The policy of the session decides" in answer
        answer = await world.talk(b"GET http://broken.example/ HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 ")
    assert broker.denied == ("evil.example:443", "broken.example:80")
    assert world.asked == [Connect("evil.example", 443), Connect("broken.example", 80)]
    assert world.dialled == []


async def test_a_host_is_asked_about_once_however_many_want_it() -> None:
    world = World()
    async with opened(world), anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(world.talk, b"GET http://good.example/ HTTP/1.1\r\n\r\n")
    assert world.asked == [Connect("good.example", 80)]
    assert len(world.dialled) == 20


async def test_a_host_that_does_not_answer_is_no_denied_host() -> None:
    world = World()
    async with opened(world) as broker:
        answer = await world.talk(b"GET http://good.example:81/ HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert broker.denied == ()


CROOKED = [
    b"CONNECT good.example HTTP/1.1\r\n\r\n",
    b"CONNECT good.example:443@evil.example:443 HTTP/1.1\r\n\r\n",
    b"CONNECT user:pw@good.example:443 HTTP/1.1\r\n\r\n",
    b"CONNECT good.example\0.evil.example:443 HTTP/1.1\r\n\r\n",
    b"CONNECT good.example:443 evil.example:443 HTTP/1.1\r\n\r\n",
    b"CONNECT good.example:443\tx HTTP/1.1\r\n\r\n",
    b"CONNECT 2130706433:443 HTTP/1.1\r\n\r\n",
    b"CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n",
    b"CONNECT [::ffff:7f00:1%25lo]:443 HTTP/1.1\r\n\r\n",
    b"CONNECT good.example.:443 HTTP/1.1\r\n\r\n",
    b"CONNECT good.example:00443 HTTP/1.1\r\n\r\n",
    b"CONNECT good.example:443 HTTP/2.0\r\n\r\n",
    b"CONNECT good.example:443\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"GET https://good.example/ HTTP/1.1\r\n\r\n",
    b"GET ftp://good.example/ HTTP/1.1\r\n\r\n",
    b"GET http://user@good.example/ HTTP/1.1\r\n\r\n",
    b"GET http://good.example\\@evil.example/ HTTP/1.1\r\n\r\n",
    b"GET http://good.example#@evil.example/ HTTP/1.1\r\n\r\n",
    b"GET http://good.example/\x01 HTTP/1.1\r\n\r\n",
    b"GET http://good.example/ HTTP/1.1\r\nX: a\nHost: evil.example\r\n\r\n",
    b"GET http://good.example/ HTTP/1.1\r\nX : a\r\n\r\n",
    b"GET http://good.example/ HTTP/1.1\r\n folded: a\r\n\r\n",
    b"GET http://good.example/ HTTP/1.1\nHost: x\r\n\r\n",
    b"POST http://good.example/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST http://good.example/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"POST http://good.example/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
    b"POST http://good.example/ HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
    b"POST http://good.example/ HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
    b"GET http://good.example/ HTTP/1.1\r\nX: " + b"a" * 40_000 + b"\r\n\r\n",
    b"\x16\x03\x01\r\n\r\n",
    b"\r\n\r\n",
]


@pytest.mark.parametrize("raw", CROOKED, ids=range(len(CROOKED)))
async def test_a_request_that_two_programs_could_read_differently_is_refused(raw: bytes) -> None:
    world = World()
    async with opened(world):
        answer = await world.talk(raw)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert (world.asked, world.dialled) == ([], [])


async def test_socks_is_judged_like_the_rest() -> None:
    world = World()
    good, evil = (b"\x05\x01\0\x03" + bytes([len(name)]) + name for name in (b"good.example", b"evil.example"))
    async with opened(world) as broker:
        hello = b"\x05\x01\0"
        assert (await world.talk(hello, good + b"\0\x50echo")) == b"\x05\0" + _said(0) + b"echo" + world.reply
        assert (await world.talk(hello, evil + b"\0\x50")) == b"\x05\0" + _said(2)
        for crooked in (b"good.example\0.evil.example", b"good.example.", b"127.1", b"a@b", b""):
            wanted = b"\x05\x01\0\x03" + bytes([len(crooked)]) + crooked + b"\0\x50"
            assert (await world.talk(hello, wanted)) == b"\x05\0" + _said(8)
        assert (await world.talk(hello, b"\x05\x01\0\x01\x7f\0\0\x01\0\x50")) == b"\x05\0" + _said(2)
        assert (await world.talk(hello, b"\x05\x02\0\x01\x7f\0\0\x01\0\x50")) == b"\x05\0" + _said(7)
        assert (await world.talk(b"\x05\x01\x02")) == b"\x05\xff"
    assert broker.denied == ("evil.example:80", "127.0.0.1:80")
    assert world.dialled == [("good.example", 80)]


def _said(code: int) -> bytes:
    return bytes((5, code, 0, 1, 0, 0, 0, 0, 0, 0))


async def test_what_is_spent_is_spent() -> None:
    world = World(reply=b"x" * 5_000)
    async with opened(world, Bounds(bytes=4_000, hosts=1)):
        await world.talk(b"GET http://good.example/ HTTP/1.1\r\n\r\n")
        answer = await world.talk(b"GET http://good.example/ HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 429 ")
    async with opened(world, Bounds(hosts=1)):
        await world.talk(b"GET http://good.example/ HTTP/1.1\r\n\r\n")
        assert (await world.talk(b"GET http://a.example/ HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 429 ")


async def test_a_connection_that_says_nothing_is_ended() -> None:
    world = World()
    async with opened(world, Bounds(idle=0.1, head=0.1)):
        assert await world.talk(b"") == b""
        assert await world.talk(b"GET http://good") == b""
        tunnel = await world.talk(b"CONNECT good.example:443 HTTP/1.1\r\n\r\n")
    assert tunnel == b"HTTP/1.1 200 Connection established\r\n\r\n"


async def test_connections_beyond_the_bound_wait_for_others_to_end() -> None:
    world = World()
    async with opened(world, Bounds(connections=2)), anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(world.talk, b"GET http://good.example/ HTTP/1.1\r\n\r\n")
    assert len(world.heard) == 6


def read(raw: bytes) -> bytes | None:
    try:
        return parse_asked(raw).head
    except HermesError:
        return None


_HOSTS = st.sampled_from(["good.example", "GOOD.example:8080", "[2606:4700::1]:80", "a@b", "1.2.3.4", "x\0y", ""])
_LINES = st.lists(
    st.binary(max_size=20) | st.sampled_from([b"Host: evil", b"Connection: host", b"Content-Length: 3"]), max_size=4
)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reading(raw: bytes) -> None:
    read(raw + b"\r\n\r\n")


@given(_HOSTS, st.binary(max_size=12), _LINES)
def test_what_is_sent_on_names_one_host_the_judged_one(host: str, path: bytes, lines: list[bytes]) -> None:
    raw = b"\r\n".join([b"GET http://" + host.encode() + b"/" + path + b" HTTP/1.1", *lines, b"", b""])
    try:
        asked = parse_asked(raw)
    except Misconfigured:
        return
    written = asked.head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    hosts = [line for line in written if line.lower().startswith(b"host:")]
    shown = f"[{asked.host}]" if ":" in asked.host else asked.host
    assert hosts == [b"Host: " + (shown if asked.port == 80 else f"{shown}:{asked.port}").encode()]
    assert written[0].endswith(b" HTTP/1.1")
    assert not any(b"\n" in line or b"\r" in line or b"\0" in line for line in written)
