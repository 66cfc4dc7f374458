"""What names something on this machine or its networks is not reached, whatever it is called."""

import asyncio
from collections.abc import Sequence

import pytest
from tests.unit.net.conftest import serving

from hermes.domain.errors import Denied, HermesError, LimitReached, Misconfigured, Unavailable
from hermes.net.address import parse_listed
from hermes.net.checked import CheckedDial
from hermes.net.fetching import fetch
from hermes.net.http import Http
from hermes.net.target import target

pytestmark = pytest.mark.anyio


class Resolver:
    """Answers with the addresses it was given, one list for each time it is asked."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, _port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def dialled(egress: CheckedDial, host: str, port: int = 80) -> None:
    sock = await egress(host, port, asyncio.get_running_loop().time() + 2)
    sock.close()


INSIDE = [
    *("127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254"),
    *("168.63.129.16", "192.0.0.192", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fc00::1", "fd00::1"),
    *("fe80::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::a00:1"),
    *("2002:7f00:1::", "2002:a00:1::", "::7f00:1", "2001:db8::1", "2001:0:7f00:1::"),
]


@pytest.mark.parametrize("address", INSIDE)
async def test_a_name_that_leads_inside_is_refused(address: str) -> None:
    with pytest.raises(Denied, match="not on the internet"):
        await dialled(CheckedDial(resolve=Resolver([address])), "harmless.example")
    with pytest.raises(Denied):
        await dialled(CheckedDial(resolve=Resolver([address])), address)


async def test_one_answer_inside_spoils_all() -> None:
    with pytest.raises(Denied, match=r"'harmless\.example:80' leads to '10\.0\.0\.1'"):
        await dialled(CheckedDial(resolve=Resolver(["93.184.216.34", "10.0.0.1"])), "harmless.example")


@pytest.mark.parametrize(
    "host",
    ["0x7f.0.0.1", "0x7f000001", "2130706433", "127.1", "010.0.0.1", "127.0.0.1.", "1.2.3.4.5", "a..b", "-a.example",
     "a b", "a\0b", "a%00.example", "fe80::1%eth0", "", ".", "x" * 64 + ".example", "user@host", "[::1", "a/b", "a:b"],
)  # fmt: skip
async def test_a_host_that_two_readers_could_understand_differently_is_no_host(host: str) -> None:
    egress = CheckedDial(resolve=Resolver(["127.0.0.1"]))
    with pytest.raises((Misconfigured, Denied)):
        await dialled(egress, host)


@pytest.mark.parametrize(
    "url",
    ["ftp://x/", "file:///etc/passwd", "http://u:p@x/", "http://x:99999/", "http:///", "http://x\\@y/", "http://x y/",
     "http://x/\n", "javascript:1", "//x/", "http://[::1/", "http://127.1/", "http://0x7f.1/", "http://①.example:x/"],
)  # fmt: skip
def test_an_address_that_is_not_plainly_one_is_refused(url: str) -> None:
    with pytest.raises(Misconfigured):
        target(url)


def test_names_of_other_scripts_are_written_in_ascii() -> None:
    assert target("http://Bücher.Example./").host == "xn--bcher-kva.example"
    assert target("http://my_model:8080/v1").authority == "my_model:8080"
    assert str(target("HTTP://EXAMPLE.com/a?secret=1")) == "http://example.com/a"
    assert target("https://[2001:db8::1]:444/a b".replace(" ", "%20")).authority == "[2001:db8::1]:444"


@pytest.mark.parametrize(
    ("item", "host", "is_open"),
    [
        ("127.0.0.1:{port}", "127.0.0.1", True),
        ("127.0.0.0/8:*", "127.0.0.1", True),
        ("nas.lan:{port}", "nas.lan", True),
        ("nas.lan:1", "nas.lan", False),
        ("other.lan:*", "nas.lan", False),
        ("10.0.0.0/8:*", "127.0.0.1", False),
        ("127.0.0.1:1", "127.0.0.1", False),
    ],
)
async def test_only_what_the_owner_listed_is_reached(item: str, host: str, is_open: bool) -> None:
    async with serving(b"") as server:
        egress = CheckedDial(parse_listed((item.format(port=server.port),)), Resolver(["127.0.0.1"]))
        if is_open:
            await dialled(egress, host, server.port)
        else:
            with pytest.raises(Denied, match="only the owner"):
                await dialled(egress, host, server.port)


async def test_who_is_at_the_other_end_is_judged_again() -> None:
    """The address of nobody leads to this machine: what was dialled is listed, who answers is not."""
    async with serving(b"") as server:
        egress = CheckedDial(parse_listed((f"0.0.0.0:{server.port}",)), Resolver(["0.0.0.0"]))
        with pytest.raises(Denied, match=r"127\.0\.0\.1"):
            await dialled(egress, "nobody.example", server.port)


async def test_a_name_without_an_address_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="no address"):
        await dialled(CheckedDial(resolve=Resolver([])), "nowhere.example")


def moved(to: str) -> bytes:
    return b"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % to.encode()


@pytest.mark.parametrize(
    ("location", "kind"),
    [
        ("http://169.254.169.254/latest/meta-data", Denied),
        ("http://localhost:1/", Denied),
        ("file:///etc/passwd", Misconfigured),
        ("http://a@b/", Misconfigured),
        ("/x", LimitReached),
    ],
)
async def test_a_redirect_is_judged_like_an_address(location: str, kind: type[HermesError]) -> None:
    async with serving(moved(location)) as server:
        async with Http(CheckedDial(parse_listed((f"127.0.0.1:{server.port}",)))).opened() as http:
            with pytest.raises(kind):
                await fetch(http, server.url)
        assert len(server.requests) == (4 if kind is LimitReached else 1)


async def test_headers_stay_with_the_origin_they_were_meant_for() -> None:
    async with (
        serving(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello") as there,
        serving(moved(there.url)) as here,
    ):
        listed = parse_listed((f"127.0.0.1:{here.port}", f"127.0.0.1:{there.port}"))
        async with Http(CheckedDial(listed)).opened() as http:
            found = await fetch(http, here.url, headers={"Authorization": "Bearer k"}, most=3)
        assert (found.url, found.body, found.is_cut) == (there.url, b"hel", True)
        assert b"Bearer" in here.requests[0]
        assert b"Bearer" not in there.requests[0]
