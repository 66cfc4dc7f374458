"""Requests and answers as bytes: what is kept, what is refused, and that every wait ends."""

import asyncio
import contextlib
import socket
import ssl

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import ByteStream
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.net.conftest import serving

from hermes.domain.errors import HermesError, LimitReached, Misconfigured, Unavailable, Unsupported
from hermes.net.http import Http, Pool, head
from hermes.net.response import Bounds, Deadlines

pytestmark = pytest.mark.anyio
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
QUICK = Deadlines(connect=5, first=0.1, idle=0.1, total=5)


async def body_of(http: Http, url: str, deadlines: Deadlines | None = None) -> bytes:
    with await http.send(head("GET", url, {}), deadlines=deadlines) as response:
        return await response.read_all(10_000_000)


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (OK, b"hello"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nA: b\r\n\r\n",
            b"hello",
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, b"hello"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 2\r\n\r\nhi", b"hi"),
    ],
)
async def test_a_body_is_read_in_each_of_its_forms(raw: bytes, body: bytes) -> None:
    async with serving(raw) as server, Http().opened() as http:
        assert [await body_of(http, server.url) for _ in range(3)] == [body] * 3
        assert server.connections == 1


async def test_a_body_without_a_length_ends_with_the_connection() -> None:
    async def play(stream: ByteStream, _request: bytes) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\n\r\nhel")
        await stream.send(b"lo")
        await stream.aclose()

    async with serving(play) as server, Http().opened() as http:
        assert await body_of(http, server.url) == b"hello"
        assert await body_of(http, server.url) == b"hello"
        assert server.connections == 2


async def test_a_request_is_what_was_given_and_asks_for_no_coding() -> None:
    async with serving(OK) as server, Http().opened() as http:
        prepared = head("POST", server.url + "?a=b c".replace(" ", "%20"), {"X-Key": "k"})
        with await http.send(prepared, (b"one", b"", b"two")) as response:
            assert (response.status, response.headers["content-length"]) == (200, "5")
        (request,) = server.requests
        assert request.startswith(b"POST /x?a=b%20c HTTP/1.1\r\nHost: 127.0.0.1:")
        assert request.endswith(b"X-Key: k\r\nContent-Length: 6\r\n\r\nonetwo")
        assert b"Accept-Encoding: identity\r\n" in request


@pytest.mark.parametrize("value", ["a\r\nEvil: 1", "a\nb", "a\0b", "ключ"])
def test_a_header_that_would_be_two_is_refused(value: str) -> None:
    with pytest.raises(Misconfigured, match="X-Key"):
        head("GET", "http://localhost/", {"X-Key": value})


async def test_a_kept_connection_that_was_closed_is_replaced_once() -> None:
    async def play(stream: ByteStream, _request: bytes) -> None:
        await stream.send(OK)
        await anyio.lowlevel.checkpoint()
        await stream.aclose()

    async with serving(play) as server, Http().opened() as http:
        assert await body_of(http, server.url) == b"hello"
        # The server's end may not have come to us yet: then the question meets a closed door.
        assert await body_of(http, server.url) == b"hello"
        assert server.connections == 2


async def test_a_kept_connection_that_dies_in_mid_answer_is_not_asked_again() -> None:
    async def play(stream: ByteStream, _request: bytes) -> None:
        if len(server.requests) == 1:
            await stream.send(OK)
        else:
            await stream.send(b"HTTP/1.1 2")
            await stream.aclose()

    async with serving(play) as server, Http().opened() as http:
        await body_of(http, server.url)
        with pytest.raises(Unavailable, match="in the middle"):
            await body_of(http, server.url)
        assert len(server.requests) == 2


async def test_a_fresh_connection_that_dies_is_not_asked_again() -> None:
    async def play(stream: ByteStream, _request: bytes) -> None:
        await stream.aclose()

    async with serving(play) as server, Http().opened() as http:
        with pytest.raises(Unavailable, match="before it answered"):
            await body_of(http, server.url)
        assert server.connections == 1


@pytest.mark.parametrize(
    ("raw", "kind", "words"),
    [
        (b"SSH-2.0-OpenSSH_9\r\n", Unavailable, "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", Unsupported, "gzip"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000, LimitReached, "headers"),
        (b"HTTP/1.1 200 OK\r\n" + b"".join(b"X%d: y\r\n" % n for n in range(300)) + b"\r\n", LimitReached, "headers"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + b"y" * 2_000_000, LimitReached, "1,000,000"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Unavailable, "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", Unavailable, "within 0.1 s"),
        (b"HTTP/1.1 200 OK\r\n", Unavailable, "within 0.1 s"),
        (b"", Unavailable, "within 0.1 s"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", Unavailable, "not HTTP"),
    ],
)
async def test_an_answer_beyond_form_bounds_or_time_is_one_clear_error(
    raw: bytes, kind: type[HermesError], words: str
) -> None:
    async with serving(raw) as server, Http(bounds=Bounds(body=1_000_000)).opened() as http:
        with pytest.raises(kind, match=words) as caught:
            await body_of(http, server.url, QUICK)
        assert server.url.removesuffix("/x") in str(caught.value)


async def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    async with serving(OK + OK) as server, Http().opened() as http:
        assert [await body_of(http, server.url) for _ in range(2)] == [b"hello"] * 2
        assert server.connections == 2


async def test_a_connection_that_its_server_means_to_close_is_not_kept() -> None:
    async with serving(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")) as server, Http().opened() as http:
        assert [await body_of(http, server.url) for _ in range(2)] == [b"hello"] * 2
        assert server.connections == 2


async def test_a_flood_ends_at_the_deadline_over_all_too() -> None:
    async def play(stream: ByteStream, _request: bytes) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await stream.send(b"x" * 100_000)

    async def read(http: Http, url: str) -> None:
        with await http.send(head("GET", url, {}), deadlines=Deadlines(total=0.3)) as response:
            while await response.read():
                continue

    async with serving(play) as server, Http(bounds=Bounds(body=1 << 50)).opened() as http:
        with pytest.raises(Unavailable, match=r"did not end its answer within 0\.3 s"):
            await read(http, server.url)


async def test_a_drip_that_never_pauses_long_ends_at_the_deadline_over_all() -> None:
    async def play(stream: ByteStream, _request: bytes) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while True:
            await stream.send(b"x")
            await anyio.sleep(0.01)

    async with serving(play) as server, Http().opened() as http:
        with pytest.raises(Unavailable, match=r"did not end its answer within 0\.2 s"):
            await body_of(http, server.url, Deadlines(connect=5, first=5, idle=5, total=0.2))


async def test_a_slow_reader_makes_the_sender_pause() -> None:
    sent = 0

    async def play(stream: ByteStream, _request: bytes) -> None:
        nonlocal sent
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n")
        for _ in range(50):
            await stream.send(b"x" * 1_000_000)
            sent += 1_000_000

    async with serving(play) as server, Http().opened() as http:
        with await http.send(head("GET", server.url, {})) as response:
            before = -1
            while before != sent:
                before = sent
                await anyio.sleep(0.05)
            assert sent < 20_000_000
            assert len(await response.read_all(50_000_000)) == 50_000_000


async def test_cancelling_closes_the_connection_at_once() -> None:
    gone = anyio.Event()

    async def play(stream: ByteStream, _request: bytes) -> None:
        with pytest.raises(anyio.EndOfStream):
            await stream.receive()
        gone.set()
        raise anyio.EndOfStream

    async with serving(play) as server, Http().opened() as http:
        with anyio.move_on_after(0.05) as scope:
            await body_of(http, server.url)
        assert scope.cancelled_caught
        with anyio.fail_after(5):
            await gone.wait()


async def test_leaving_a_response_early_closes_its_connection() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi") as server, Http().opened() as http:
        for _ in range(2):
            with await http.send(head("GET", server.url, {})) as response:
                assert await response.read() == b"hi"
        assert server.connections == 2


async def test_more_requests_than_connections_wait_for_their_turn() -> None:
    busy, most = 0, 0

    async def play(stream: ByteStream, _request: bytes) -> None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await anyio.sleep(0.01)
        busy -= 1
        await stream.send(OK)

    async with serving(play) as server, Http(pool=Pool(open=3)).opened() as http:
        async with anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(body_of, http, server.url)
        assert (most, len(server.requests)) == (3, 12)


async def test_unused_connections_are_closed_after_a_while() -> None:
    async with serving(OK) as server, Http(pool=Pool(seconds=0.05)).opened() as http:
        await body_of(http, server.url)
        await anyio.sleep(0.2)
        await body_of(http, server.url)
        assert server.connections == 2


async def test_nobody_there_is_said_at_once() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    async with Http().opened() as http:
        with pytest.raises(Unavailable, match=f"127.0.0.1:{port}"):
            await body_of(http, f"http://127.0.0.1:{port}/")


async def test_https_to_a_server_without_tls_names_the_cause() -> None:
    async with serving(b"HTTP/1.1 400 Bad\r\n\r\n") as server, Http().opened() as http:
        with pytest.raises((Misconfigured, Unavailable)) as caught:
            await body_of(http, server.url.replace("http:", "https:"), Deadlines(connect=1))
        assert isinstance(caught.value.__cause__, ssl.SSLError | OSError)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=5))
def test_no_bytes_make_anything_but_an_answer_or_one_of_our_errors(noise: bytes, cuts: list[int]) -> None:
    """What a server sends after the first line of an answer, in any pieces."""
    from hermes.net.response import Response, Terms
    from hermes.net.target import target

    class Wire:
        def pause(self) -> None: ...
        def go_on(self) -> None: ...
        def release(self, *, is_reusable: bool) -> None: ...

    loop = asyncio.new_event_loop()
    try:
        terms = Terms(Deadlines(), Bounds(head=200, fields=3, body=250), loop.time() + 60)
        response = Response(target("http://localhost/"), Wire(), terms, loop)
        raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + noise
        for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(raw)], strict=True):
            response.feed(raw[begin:end])
        response.lose(None)
        with contextlib.suppress(HermesError):
            loop.run_until_complete(response.start())
            assert len(loop.run_until_complete(response.read_all(1000))) <= 250
    finally:
        loop.close()
