"""Which hosts may be named and which addresses dialled."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.errors import Denied, Misconfigured
from hermes.net import address
from hermes.net.address import Listed, is_global, parse_authority, parse_host, parse_listed, parse_port, permit

FORBIDDEN_WORDS = """
0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24
192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4
240.0.0.0/4 ::/128 ::1/128 ::/96 ::ffff:0:0/96 64:ff9b:1::/48 64:ff9b::7f00:0/104 64:ff9b::a9fe:0/112
64:ff9b::a00:0/104 100::/64 2001::/32 2001:db8::/32 2001:10::/28 2002::/16 3fff::/20 5f00::/16 fc00::/7
fe80::/10 fec0::/10 ff00::/8 4000::/2
"""
FORBIDDEN = FORBIDDEN_WORDS.split()


@pytest.mark.parametrize("network", FORBIDDEN)
@given(data=st.data())
def test_no_address_of_a_forbidden_range_is_global(network: str, data: st.DataObject) -> None:
    whole = ip_network(network)
    number = data.draw(st.integers(int(whole[0]), int(whole[-1])))
    ip = type(whole[0])(number)
    assert not is_global(ip)
    with pytest.raises(Denied, match="only the owner"):
        permit("name.example", 443, ["8.8.8.8", str(ip)], ())


@pytest.mark.parametrize("text", ["8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1"])
def test_the_neighbours_of_the_forbidden_ranges_are_global(text: str) -> None:
    assert is_global(IPv4Address(text))
    assert is_global(IPv6Address(f"64:ff9b::{text}"))
    assert not is_global(IPv6Address(f"::ffff:{text}"))


def test_the_internet_s_own_ipv6_is_global_and_one_with_a_scope_is_not() -> None:
    assert is_global(IPv6Address("2606:4700::1111"))
    assert not is_global(IPv6Address("2606:4700::1111%eth0"))


@given(st.ip_addresses(v=6))
def test_whatever_the_standard_library_calls_private_is_refused_too(ip: IPv6Address) -> None:
    if ip.is_private and ip not in IPv6Network("64:ff9b::/96"):
        assert not is_global(ip)


ODD_WORDS = """
0177.0.0.1 0x7f.0.0.1 0x7f000001 2130706433 127.1 127.0.1 1.2.3.4.5 256.0.0.1 01.2.3.4 1.2.3.0x4 1.2.3.
1.2.3.4. a.0x a.1 127。0。0。1 ⑧.8.8.8 example.com. .example.com example..com -a.com a-.com a_b.com a%00.com
a%2e.com user@host user:pw@host host/path host?x host#x http://a [::1 ::1] [::1] fe80::1%eth0 ::1%25lo
::ffff:0x7f.1 1::2::3 12345:: bücher.example xn--ß ﬀ.com *.com a,b a;b a|b $(x) `x` 'a' "a" <a>
a\\b
"""
ODD = ODD_WORDS.split()
SPACED = ["", " ", "a b", "a\n", "a\0.b", "a\n.b", "a\tb", "a\rb", "a ", " a", "a\u200b.com", "a\u202eb.com"]


@pytest.mark.parametrize("text", [*ODD, *SPACED])
def test_a_host_that_two_programs_could_read_differently_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured):
        parse_host(text)


@given(st.text(max_size=80))
def test_a_host_has_one_spelling(text: str) -> None:
    try:
        host = parse_host(text)
    except Misconfigured:
        return
    assert parse_host(host) == host == host.lower()
    assert host.isascii()
    assert not set(host) & set("\0\r\n\t %@/?#[]\\_")
    if ":" in host or host.replace(".", "").isdigit():
        assert str(ip_address(host)) == host


@given(st.text(st.sampled_from("0123456789.xabcdef:[]%@ \0"), max_size=24))
def test_what_could_be_a_number_is_an_address_or_refused(text: str) -> None:
    try:
        host = parse_host(text)
    except Misconfigured:
        return
    last = host.rpartition(".")[2]
    if last[0].isdigit() and (last.isdigit() or last.startswith("0x")):
        assert IPv4Address(host)


NOT_PLAIN = """
example.com example.com: example.com:0 example.com:065 example.com:65536 example.com:+1 :443 a:b:c ::1:443 [::1]443
[::1]x:443 [a]:443 [1.2.3.4]:1 []:1 a@b:443 a:443@b:443 [::1%25lo]:80 [::1]:
"""


def test_an_authority_is_a_host_and_a_port() -> None:
    assert parse_authority("Example.COM:443") == ("example.com", 443)
    assert parse_authority("[2606:4700:0::1111]:8443") == ("2606:4700::1111", 8443)
    assert parse_authority("example.com", default=80) == ("example.com", 80)
    assert parse_authority("[::1]", default=80) == ("::1", 80)


@pytest.mark.parametrize(
    "text",
    [
        *[
            "example.com",
            "example.com:",
            "example.com:0",
            "example.com:065",
            "example.com:65536",
            "example.com:+1",
            ":443",
            "a:b:c",
        ],
        *[
            "::1:443",
            "[::1]443",
            "[::1]x:443",
            "[a]:443",
            "[1.2.3.4]:1",
            "[]:1",
            "a@b:443",
            "a:443@b:443",
            "[::1%25lo]:80",
            "[::1]:",
        ],
        *("", "a: 1", "a:1 ", "a:4\uff143", "a:443\0", "a\0.b:443"),
    ],
)
def test_an_authority_that_is_not_plain_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured):
        parse_authority(text)


@pytest.mark.parametrize("text", ["", "0", "00", "-1", "1.0", "1e3", "٣", "65536", "999999", " 1", "1 "])
def test_a_port_is_a_plain_number(text: str) -> None:
    with pytest.raises(Misconfigured):
        parse_port(text)


def test_what_a_person_listed_is_let_through_and_nothing_beside_it() -> None:
    listed = parse_listed(["10.1.2.0/24:443", "db.internal:5432", "[fd00::/8]:*", "127.0.0.1:8080"])
    assert listed[1] == Listed("db.internal", 5432)
    ten = ip_address("10.1.2.3")
    assert permit("any.example", 443, ["10.1.2.3", "8.8.8.8"], listed) == (ten, ip_address("8.8.8.8"))
    assert permit("db.internal", 5432, ["192.168.0.9"], listed)
    assert permit("six.example", 1, ["fd00::1"], listed)
    for host, port, answer in (
        ("any.example", 80, "10.1.2.3"),
        ("any.example", 443, "10.1.3.3"),
        ("other.internal", 5432, "192.168.0.9"),
        ("db.internal", 5433, "192.168.0.9"),
        ("x.example", 8080, "127.0.0.2"),
        ("x.example", 443, "::ffff:10.1.2.3"),
    ):
        with pytest.raises(Denied):
            permit(host, port, [answer], listed)


def test_an_answer_that_is_no_address_is_denied() -> None:
    with pytest.raises(Denied, match="no address"):
        permit("a.example", 80, ["nonsense"], ())
    assert address.permit("a.example", 80, [], ()) == ()
