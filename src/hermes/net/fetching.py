"""Fetches a page that somebody named, across a few redirects.

Invariant: each redirect is dialled, and so judged, anew; no header of the caller goes to another origin.
"""

from collections.abc import Mapping
from urllib.parse import urljoin

from hermes.domain.errors import Denied, LimitReached
from hermes.domain.records import dataclass
from hermes.net.http import Http, head
from hermes.net.response import Deadlines

REDIRECTS = 3


@dataclass(frozen=True, slots=True)
class Page:
    """What was found, and where at last. A body longer than was asked for is cut, and says so."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool


async def fetch(
    http: Http,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    most: int = 5_000_000,
    deadlines: Deadlines | None = None,
) -> Page:
    """Get an address with a client that dials through egress. A refused redirect raises Denied."""
    sent, here = dict(headers or {}), url
    for _ in range(REDIRECTS + 1):
        prepared = head("GET", here, sent)
        with await http.send(prepared, deadlines=deadlines) as response:
            location = response.headers.get("location")
            if response.status not in {301, 302, 303, 307, 308} or location is None:
                body = await response.read_all(most + 1)
                return Page(here, response.status, response.headers, body[:most], is_cut=len(body) > most)
        there = urljoin(here, location)
        moved = head("GET", there, {})
        if prepared.target.scheme == "https" and moved.target.scheme == "http":
            raise Denied(
                f"'{prepared.target}' redirects to '{moved.target}', which is not encrypted; it was not followed"
            )
        if moved.target.origin != prepared.target.origin:
            sent = {}
        here = there
    raise LimitReached(f"{url!r} redirects more than {REDIRECTS} times; it was not followed further")
