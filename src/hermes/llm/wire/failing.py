"""Sorts what vendors say has failed by what the caller can do about it.

Invariant: a vendor's code decides where there is one; words decide only where no code says that the context is too long
or the money gone. No message holds the key.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import TypeGuard

import msgspec

from hermes.domain.errors import Denied, HermesError, LimitReached, Misconfigured, NotFound, Unavailable
from hermes.domain.model import ContextOverflow
from hermes.domain.records import dataclass

LONGEST_PAUSE = 3600.0

_OVERFLOW = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "model_context_window_exceeded",
        "request_too_large",
        "string_above_max_length",
    }
)
_SPENT = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached", "insufficient_balance"})
_REFUSED = frozenset({"authentication_error", "permission_error", "invalid_api_key", "permission_denied"})
_MISSING = frozenset({"not_found_error", "model_not_found"})
_BUSY = {"rate_limit_error": 429, "overloaded_error": 529, "api_error": 500, "timeout_error": 504, "server_error": 500}
_OVERFLOW_WORDS = re.compile(
    r"context (length|window|size|limit)|prompt is too long|maximum (context|input|prompt) length"
    r"|too many (input )?tokens|exceeds? the (available )?(context|model's)"
    r"|input is too long|larger than the .*context",
    re.IGNORECASE,
)
_SPENT_WORDS = re.compile(r"credit balance is too low|insufficient (balance|credits|funds)", re.IGNORECASE)
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Whom the errors are about: the vendor's name, the model, the address, and where its key is set."""

    vendor: str
    model: str
    url: str
    key: str = field(default="", repr=False)
    key_from: str = ""

    def told(self, words: str) -> str:
        """Return a vendor's words on one line, not too long and without the key."""
        line = _BLANKS.sub(" ", words).strip()
        if self.key:
            line = line.replace(self.key, "[secret]")
        return line if len(line) <= 400 else f"{line[:400]}…"


@dataclass(frozen=True, slots=True)
class Complaint:
    """What an error body says: its codes, from the most telling, and its words."""

    codes: tuple[str, ...] = ()
    words: str = ""
    status: int | None = None


def failure(place: Place, status: int, headers: Mapping[str, str], body: bytes, now: datetime) -> HermesError:
    """Return the error for an answer that is no success."""
    if 300 <= status < 400:
        there = place.told(headers.get("location", "nowhere"))
        return Misconfigured(
            f"{place.url!r} redirects to {there!r}; set the base URL of {place.vendor!r} to where it leads"
        )
    if is_page(headers, body):
        return _page(place, status, headers, now)
    return sort(place, status, complaint(body), retry_after(headers, now))


def is_page(headers: Mapping[str, str], body: bytes) -> bool:
    """Whether somebody answered with a web page."""
    return "html" in headers.get("content-type", "").lower() or body.lstrip()[:9].lower() in {b"<!doctype", b"<html>"}


def complaint(body: bytes) -> Complaint:
    """Read an error body of any of the shapes that are in use."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Complaint(words=body.decode("utf-8", "replace"))
    return complaint_in(value)


def complaint_in(value: object) -> Complaint:
    """Read what `complaint` reads, already decoded."""
    if isinstance(value, list) and value:
        return complaint_in(value[0])
    if not _is_object(value):
        return Complaint(words=str(value))
    inner = value.get("error", value)
    if not _is_object(inner):
        return Complaint(_codes(value), str(inner))
    words = inner.get("message") or inner.get("detail") or inner.get("error") or ""
    metadata = inner.get("metadata")
    if _is_object(metadata) and isinstance(raw := metadata.get("raw"), str):
        # A broker wraps what the vendor behind it said.
        words = f"{words}: {raw}"
    code = inner.get("code")
    status = code if isinstance(code, int) and 100 <= code < 600 else None
    return Complaint(_codes(inner), words if isinstance(words, str) else str(words), status)


def _codes(value: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(code for key in ("code", "type") if isinstance(code := value.get(key), str))


def sort(place: Place, status: int, said: Complaint, pause: float | None) -> HermesError:
    """Return the error that a status and a complaint stand for."""
    words = place.told(said.words) or "it gives no reason"
    codes = set(said.codes)
    about = f"{place.vendor!r} ({status})"
    is_request = status in {400, 413, 422}
    if codes & _OVERFLOW or status == 413 or (is_request and _OVERFLOW_WORDS.search(said.words)):
        return ContextOverflow(
            f"the request is too long for {place.model!r} at {about}: {words}; begin a new session, or ask with less"
        )
    if codes & _SPENT or status == 402 or (is_request and _SPENT_WORDS.search(said.words)):
        return LimitReached(
            f"the account at {about} has nothing left to spend: {words}; add credit, or use another key"
        )
    if codes & _REFUSED or status in {401, 403}:
        hint = f"check {place.key_from}" if place.key_from else "set its key"
        return Denied(f"{about} refuses the key or the model {place.model!r}: {words}; {hint}")
    if codes & _MISSING or status == 404:
        return NotFound(
            f"{about} has no model {place.model!r}, or nothing at {place.url!r}: {words}; "
            "`hermes model list` shows what there is"
        )
    busy = next((_BUSY[code] for code in said.codes if code in _BUSY), status)
    if busy in {408, 409, 425, 429} or busy >= 500:
        seconds = pause if pause is not None else 5.0 if busy == 429 else 1.0
        return Unavailable(f"{about} cannot answer now: {words}", retry_after=seconds)
    return Misconfigured(f"{about} refuses the request for {place.model!r}: {words}")


def _page(place: Place, status: int, headers: Mapping[str, str], now: datetime) -> HermesError:
    what = f"{place.url!r} answers with a web page ({status}) instead of JSON"
    if status >= 500 or status == 429:
        return Unavailable(f"{what}; try again later", retry_after=retry_after(headers, now) or 1.0)
    if status in {401, 403}:
        return Denied(f"{what}; something between here and {place.vendor!r} refuses you")
    return Misconfigured(f"{what}; check the base URL of {place.vendor!r} (it often ends with /v1)")


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return how many seconds a server wants us to wait, whatever form it says it in; at most an hour."""
    # Loaded when a vendor gives a date: it costs 4 ms, and most never do.
    from email.utils import parsedate_to_datetime

    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        try:
            seconds = float(text) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return min(seconds, LONGEST_PAUSE)
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError, OverflowError):
        return None
    aware = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return min(max((aware - now).total_seconds(), 0.0), LONGEST_PAUSE)


def _is_object(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, dict)
