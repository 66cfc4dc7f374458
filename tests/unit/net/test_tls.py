"""Only a server that proves its name is talked to."""

import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute
from anyio.streams.tls import TLSListener
from tests.unit.net.conftest import RawServer, serving

from hermes.domain.errors import Misconfigured, Unavailable
from hermes.net.http import Http, head
from hermes.net.response import Deadlines
from hermes.net.tls import client_context

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate"),
]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder / "cert.pem"


@pytest.fixture
async def server(certificate: Path) -> AsyncIterator[RawServer]:
    async def play(stream: anyio.abc.ByteStream, _request: bytes) -> None:
        await stream.send(OK)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    raw = RawServer(play)
    raw.port = listener.extra(SocketAttribute.local_port)

    async def serve(stream: anyio.abc.ByteStream) -> None:
        try:
            await raw.serve(stream)
        except ssl.SSLError:
            return

    secure = TLSListener(listener, context, standard_compatible=False)
    async with secure, anyio.create_task_group() as group:
        group.start_soon(secure.serve, serve)
        yield raw
        group.cancel_scope.cancel()


async def test_a_name_that_is_proven_is_talked_to_and_kept(server: RawServer, certificate: Path) -> None:
    async with Http(authorities=certificate).opened() as http:
        for _ in range(3):
            with await http.send(head("GET", f"https://localhost:{server.port}/", {})) as response:
                assert await response.read_all(100) == b"hello"
        assert server.connections == 1


async def test_a_stranger_s_certificate_is_not_trusted(server: RawServer) -> None:
    async with Http().opened() as http:
        with pytest.raises(Misconfigured, match="'localhost' is not to be trusted"):
            await http.send(head("GET", f"https://localhost:{server.port}/", {}))
    assert server.requests == []


async def test_another_name_is_not_trusted(server: RawServer, certificate: Path) -> None:
    async with Http(authorities=certificate).opened() as http:
        with pytest.raises(Misconfigured, match=r"'127\.0\.0\.1' is not to be trusted"):
            await http.send(head("GET", f"https://127.0.0.1:{server.port}/", {}))
    assert server.requests == []


async def test_a_handshake_that_hangs_ends_at_the_deadline(certificate: Path) -> None:
    async def play(_stream: anyio.abc.ByteStream, _request: bytes) -> None:
        await anyio.sleep_forever()

    async with serving(play) as server, Http(authorities=certificate).opened() as http:
        with pytest.raises(Unavailable, match="TLS handshake"):
            await http.send(head("GET", f"https://127.0.0.1:{server.port}/", {}), deadlines=Deadlines(connect=0.3))


def test_certificates_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("nothing")
    for name in ("none.pem", "missing.pem"):
        with pytest.raises(Misconfigured, match=name):
            client_context(tmp_path / name)


def test_all_connections_share_one_context() -> None:
    assert client_context() is client_context()
