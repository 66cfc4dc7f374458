"""Values that are used but never shown: `repr`, `str` and format strings give the mask, `reveal()` the text."""

import re
from dataclasses import field
from urllib.parse import parse_qsl, unquote, urlsplit

from hermes.domain.records import dataclass

MASK = "[secret]"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_AFTER_COLON_TO_LAST_AT = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://[^:/?#@]*):(.*)@", re.DOTALL)
_SECRET_PARAMETER = re.compile(r"([?&][^=&#]*(?:key|token|secret|password)=)([^&#]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """A text such as a key or a password. Only `reveal()` gives it away, so a search for that word finds every use."""

    _text: str = field(repr=False)

    def reveal(self) -> str:
        """Return the text itself."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({MASK!r})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


@dataclass(frozen=True, slots=True, repr=False)
class Url:
    """An address that may hold a password. `str` shows it without; `reveal()` is what a driver is given."""

    _text: str = field(repr=False)

    def __post_init__(self) -> None:
        if not _SCHEME.match(self._text) or re.search(r"\s", self._text):
            raise ValueError("expected a URL such as scheme://user:password@host/name")
        urlsplit(self._text)

    def reveal(self) -> str:
        """Return the whole address."""
        return self._text

    @property
    def scheme(self) -> str:
        """What stands before the first colon, in lower case."""
        return self._text.partition(":")[0].lower()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every secret in it, as it is written and as it is meant (percent-decoded)."""
        found = [match[2] for match in [_AFTER_COLON_TO_LAST_AT.match(self._text)] if match]
        found += [match[2] for match in _SECRET_PARAMETER.finditer(self._text)]
        query = parse_qsl(urlsplit(self._text).query)
        found += [value for name, value in query if _SECRET_PARAMETER.match(f"?{name}=")]
        return tuple(dict.fromkeys(text for raw in found for text in (raw, unquote(raw)) if text))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __str__(self) -> str:
        # A password with a bare "/" or "@" ends the host too early for a parser; masking to the last "@" is safe.
        masked = _AFTER_COLON_TO_LAST_AT.sub(rf"\1:{MASK}@", self._text)
        return _SECRET_PARAMETER.sub(rf"\1{MASK}", masked)
