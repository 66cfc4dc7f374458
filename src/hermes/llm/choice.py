"""Which model is asked, at which vendor, with which key: read off the settings.

Invariant: a choice is complete; what is missing is said in one line that names what to set.
"""

from collections.abc import Sequence
from dataclasses import replace

from hermes.config.secret import Secret
from hermes.config.settings import Settings
from hermes.domain.errors import Misconfigured, NotFound
from hermes.domain.records import dataclass
from hermes.llm.catalogue.models import facts
from hermes.llm.catalogue.vendors import VENDORS, vendor
from hermes.llm.catalogue.weights import weights
from hermes.llm.vendor import Vendor

UNKNOWN_WINDOW = 128_000
UNKNOWN_LOCAL_WINDOW = 32_768
_CUSTOM = next(one for one in VENDORS if one.name == "custom")
_EMBEDDED = next(one for one in VENDORS if one.name == "local")
_VARIABLES = {one.key: f"{one.name.upper()}_API_KEY" for one in VENDORS if one.key}


@dataclass(frozen=True, slots=True)
class Choice:
    """One model at one vendor. `key_from` names, for a person, where the key is set."""

    vendor: Vendor
    model: str
    base_url: str
    key: Secret
    key_from: str
    window: int

    @property
    def name(self) -> str:
        """Vendor and model, as people write it."""
        return f"{self.vendor.name}/{self.model}"

    @property
    def wire(self) -> str:
        """The wire format."""
        return self.vendor.wire


def choose(settings: Settings, name: str | None = None) -> Choice:
    """Return the model that `name` means, or the one of the settings, or that of the first vendor with a key.

    `name` is a model, or a vendor and a model with a slash between. Raises Misconfigured with what to set, NotFound for
    a vendor that is not known.
    """
    wanted = (name or settings.model.default).strip()
    row, model = _vendor(settings, wanted)
    if row is _EMBEDDED:
        return _embedded(settings, model)
    is_own = _is_own(settings, row)
    url = (settings.model.base_url if is_own else None) or _given(settings, row.url) or row.base_url
    if not url:
        raise Misconfigured(
            f"the provider {row.name!r} needs a base URL: `hermes config set model.base_url http://127.0.0.1:8080/v1`"
        )
    if row.name == "openai" and url != row.base_url and not _provider(settings):
        # OPENAI_BASE_URL is how people name anybody who speaks alike, with habits of their own.
        row = replace(row, quirks=_CUSTOM.quirks)
    key, key_from = _key(settings, row, is_own=is_own)
    if not key and row.needs_key and url == row.base_url:
        raise Misconfigured(
            f"the provider {row.name!r} needs a key: set {_VARIABLES[row.key]}, "
            f"or model.api_key together with model.provider {row.name!r}"
        )
    model = model or row.model
    if not model:
        raise Misconfigured(
            f"no model is named for {row.name!r} at {url!r}: `hermes model list {row.name}` shows what it offers, "
            f"`hermes model set {row.name}/NAME` sets one"
        )
    return Choice(row, model, url.rstrip("/"), key, key_from, _window(settings, row, model, wanted))


def _embedded(settings: Settings, model: str) -> Choice:
    """Return the model in a process of our own: it has no address and takes no key."""
    return Choice(_EMBEDDED, model or _EMBEDDED.model, "", Secret(""), "", settings.local.window)


def vendor_choice(settings: Settings, name: str) -> Choice:
    """Return a choice of a vendor whose model does not matter, to ask it for what it offers."""
    if vendor(name) is None:
        known = ", ".join(one.name for one in VENDORS)
        raise NotFound(f"there is no provider {name!r}; known: {known}")
    return choose(settings, f"{name}/any")


def configured(settings: Settings) -> tuple[Vendor, ...]:
    """Return the vendors that could be asked: those with a key, and those with an address of their own."""
    return tuple(one for one in VENDORS if _given(settings, one.key) or _given(settings, one.url))


def _vendor(settings: Settings, wanted: str) -> tuple[Vendor, str]:
    """Find the vendor, and what is left of the name for the model."""
    first, slash, rest = wanted.partition("/")
    named = vendor(first) if slash else None
    if provider := _provider(settings):
        row = vendor(provider)
        if row is None:
            known = ", ".join(one.name for one in VENDORS)
            raise NotFound(
                f"there is no provider {provider!r}; known: {known}. For any other server: custom, with model.base_url"
            )
        if wanted == settings.model.default.strip():
            return row, rest if named is row else wanted
    if named is not None and _usable(settings, named):
        return named, rest
    if settings.model.base_url:
        return _at(settings.model.base_url), wanted
    # A broker takes names with a maker in them; a maker takes only its own.
    brokers = [one for one in configured(settings) if one.name == "openrouter" or _given(settings, one.url)]
    if slash and brokers:
        return _first(settings, brokers), wanted
    if named is not None:
        return named, rest
    if rows := configured(settings):
        return _first(settings, rows), wanted
    if not wanted and weights(_EMBEDDED.model).is_there(settings.home):
        return _EMBEDDED, ""
    raise Misconfigured(
        "no model is configured: set OPENROUTER_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY, "
        "or for a server of your own `hermes config set model.base_url http://127.0.0.1:11434/v1` "
        "and `hermes model set NAME`; or `hermes model pull` brings a small model that needs neither key nor network"
    )


def _first(settings: Settings, known: Sequence[Vendor]) -> Vendor:
    """Of several vendors prefer one that somebody gave an address: that is no leftover."""
    return next((one for one in known if _given(settings, one.url)), known[0])


def _usable(settings: Settings, row: Vendor) -> bool:
    own = row.name.startswith("custom") or _is_own(settings, row)
    return not row.needs_key or own or bool(_given(settings, row.key) or _given(settings, row.url))


def _is_own(settings: Settings, row: Vendor) -> bool:
    """Whether `model.base_url` and `model.api_key` are meant for this vendor."""
    if provider := _provider(settings):
        return vendor(provider) is row
    if settings.model.base_url:
        return row.name.startswith("custom") or _at(settings.model.base_url) is row
    # A key alone says not whose it is, and the default may change: it would go to a stranger.
    return row.name.startswith("custom")


def _provider(settings: Settings) -> str:
    """Return the provider that is named; `auto` names none."""
    name = settings.model.provider.strip()
    return "" if name.lower() == "auto" else name


def _at(url: str) -> Vendor:
    """Return the vendor that lives at an address; any other is custom."""
    bare = url.rstrip("/")
    found = next((one for one in VENDORS if one.base_url and bare == one.base_url), None)
    return found or _CUSTOM


def _given(settings: Settings, name: str) -> str:
    value = getattr(settings.vendors, name) if name else None
    return value.reveal() if isinstance(value, Secret) else value or ""


def _key(settings: Settings, row: Vendor, *, is_own: bool) -> tuple[Secret, str]:
    if is_own and settings.model.api_key:
        return settings.model.api_key, "model.api_key"
    # A vendor's key goes to that vendor and to nobody else.
    return Secret(_given(settings, row.key)), _VARIABLES.get(row.key, "model.api_key")


def _window(settings: Settings, row: Vendor, model: str, wanted: str) -> int:
    if settings.model.context_length and wanted == settings.model.default.strip():
        return settings.model.context_length
    known = facts(row.name, model)
    if known is not None and known.window and not row.is_local:
        return known.window
    return UNKNOWN_LOCAL_WINDOW if row.is_local else UNKNOWN_WINDOW
