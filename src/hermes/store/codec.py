"""Values of the domain as the database holds them. The only place of this layer that knows JSON."""

import math
from collections.abc import Mapping
from datetime import datetime

import msgspec

from hermes.domain.clock import Micros, from_micros, to_micros
from hermes.domain.errors import Damaged, Misconfigured
from hermes.domain.event import JSON, Data
from hermes.domain.principal import Principal, Tenant

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(dict[str, object])


class _StoredPrincipal(msgspec.Struct, omit_defaults=True):
    kind: str
    id: str
    scopes: list[str] = []
    reason: str = ""


_decode_principal = msgspec.json.Decoder(_StoredPrincipal).decode


def from_data(data: Data) -> str:
    """Write a mapping as JSON text. Raises Misconfigured for what JSON cannot say."""
    try:
        text = _encode(data).decode()
    except (TypeError, UnicodeEncodeError, OverflowError) as error:
        raise Misconfigured(f"data must be plain JSON: {error}") from error
    if "null" in text and not _is_finite(data):
        # The encoder writes null for them, and nobody would notice.
        raise Misconfigured("data must be plain JSON: it holds a number that is infinite or none at all")
    return text


def _is_finite(value: object) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case Mapping():
            return all(_is_finite(one) for one in value.values())
        case list() | tuple():
            return all(_is_finite(one) for one in value)
        case _:
            return True


def to_data(text: str) -> dict[str, JSON]:
    """Read a mapping back. Raises Damaged for what is none: only mappings were written."""
    try:
        return _decoder.decode(text)  # type: ignore[return-value] # what we wrote was JSON
    except msgspec.DecodeError as error:
        raise Damaged(
            f"the database is damaged ({text[:40]!r} is no JSON: {error}); nothing was changed. Stop Hermes, then "
            "`hermes db restore FILE` puts a backup in its place"
        ) from error


def to_optional_data(text: str | None) -> Mapping[str, JSON] | None:
    """Read a mapping back, or nothing."""
    return None if text is None else to_data(text)


def from_principal(principal: Principal) -> str:
    """Write who acts; the tenant stands in a column of its own."""
    stored = _StoredPrincipal(principal.kind, principal.id, sorted(principal.scopes), principal.reason)
    return _encode(stored).decode()


def to_principal(text: str, tenant: str) -> Principal:
    """Read back who acts."""
    stored = _decode_principal(text)
    return Principal(
        kind=stored.kind,  # type: ignore[arg-type] # written by from_principal only
        id=stored.id,
        tenant=Tenant(tenant),
        scopes=frozenset(stored.scopes),
        reason=stored.reason,
    )


def from_time(at: datetime | None) -> Micros | None:
    """Write a moment, or nothing."""
    return None if at is None else to_micros(at)


def to_time(micros: int | None) -> datetime | None:
    """Read a moment back, or nothing."""
    return None if micros is None else from_micros(micros)
