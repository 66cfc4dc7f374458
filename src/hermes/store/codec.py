"""Values of the domain as the database holds them. The only place of this layer that knows JSON."""

import math
from collections.abc import Mapping
from datetime import datetime

import msgspec

from hermes.domain.clock import Micros, from_micros, to_micros
from hermes.domain.errors import Damaged, Misconfigured
from hermes.domain.event import JSON, Data
from hermes.domain.principal import Principal, Tenant

LONGEST_NAME = 512
"""Bytes. PostgreSQL keeps 2,700 in a row of an index, and ours have three names at most."""

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
    # The encoder would write null for an infinite number, and text for bytes and dates, and nobody would notice.
    odd = _not_json(data)
    if odd is not None:
        raise Misconfigured(f"data must be plain JSON, and it holds {odd}")
    try:
        return _encode(data).decode()
    except (TypeError, UnicodeEncodeError, OverflowError, RecursionError) as error:
        raise Misconfigured(f"data must be plain JSON: {error}") from error


def require_names(**names: str | None) -> None:
    """Raise Misconfigured for a name that one of the engines could not keep in an index."""
    for what, text in names.items():
        if text is None or (len(text) <= LONGEST_NAME // 4 and text.isprintable()):
            continue
        try:
            length = len(text.encode())
        except UnicodeEncodeError:
            length = LONGEST_NAME + 1
        if length > LONGEST_NAME or "\x00" in text:
            raise Misconfigured(
                f"the {what} {text[:40]!r}… is no name: it has at most {LONGEST_NAME} bytes and no NUL; shorten it"
            )


def from_text(text: str | None) -> str | None:
    """Write a text that came from anywhere, such as an error's: half characters and NULs are escaped."""
    if text is None:
        return None
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")


def _not_json(value: object) -> str | None:
    """Name the first thing in a value that is no JSON; None when all of it is."""
    if value is None or isinstance(value, str | bool | int):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"the number {value}"
    if isinstance(value, Mapping):
        keys = (f"the key {key!r}" for key in value if not isinstance(key, str))
        return next(keys, None) or next(filter(None, map(_not_json, value.values())), None)
    if isinstance(value, list | tuple):
        return next(filter(None, map(_not_json, value)), None)
    return f"a {type(value).__name__}"


def to_data(text: str) -> dict[str, JSON]:
    """Read a mapping back. Raises Damaged for what is none: only mappings were written."""
    try:
        return _decoder.decode(text)  # type: ignore[return-value] # what we wrote was JSON
    except msgspec.DecodeError as error:
        raise _damaged(text, error) from error


def _damaged(text: str, error: Exception) -> Damaged:
    return Damaged(
        f"the database is damaged ({text[:40]!r} is no JSON of ours: {error}); nothing was changed. Stop Hermes, then "
        "`hermes db restore FILE` puts a backup in its place"
    )


def to_optional_data(text: str | None) -> Mapping[str, JSON] | None:
    """Read a mapping back, or nothing."""
    return None if text is None else to_data(text)


def from_principal(principal: Principal) -> str:
    """Write who acts; the tenant stands in a column of its own."""
    stored = _StoredPrincipal(principal.kind, principal.id, sorted(principal.scopes), principal.reason)
    return _encode(stored).decode()


def to_principal(text: str, tenant: str) -> Principal:
    """Read back who acts."""
    try:
        stored = _decode_principal(text)
    except msgspec.DecodeError as error:
        raise _damaged(text, error) from error
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
