"""What everybody else is given: every setting with its value, and where each came from."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from urllib.parse import quote

from hermes.config.origin import Default, Given, Origin
from hermes.config.schema import schema_of
from hermes.config.secret import Secret, Url
from hermes.config.sections import (
    Agent,
    Budget,
    Compression,
    Database,
    Display,
    Events,
    Jobs,
    Local,
    Logging,
    Model,
    Redis,
    Sandbox,
    Terminal,
    Time,
    Tools,
    User,
    Vendors,
)
from hermes.domain.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One reading of all places. It does not change; read again to see a changed file.

    `given` holds for each key what was given, the winner last. `notices` are for a person and are printed once.
    """

    home: Path
    database: Database = field(default_factory=Database)
    redis: Redis = field(default_factory=Redis)
    jobs: Jobs = field(default_factory=Jobs)
    events: Events = field(default_factory=Events)
    logging: Logging = field(default_factory=Logging)
    time: Time = field(default_factory=Time)
    agent: Agent = field(default_factory=Agent)
    budget: Budget = field(default_factory=Budget)
    compression: Compression = field(default_factory=Compression)
    display: Display = field(default_factory=Display)
    user: User = field(default_factory=User)
    terminal: Terminal = field(default_factory=Terminal)
    tools: Tools = field(default_factory=Tools)
    sandbox: Sandbox = field(default_factory=Sandbox)
    model: Model = field(default_factory=Model)
    local: Local = field(default_factory=Local)
    vendors: Vendors = field(default_factory=Vendors)
    given: Mapping[str, tuple[Given, ...]] = field(default_factory=dict, repr=False)
    notices: tuple[str, ...] = field(default=(), repr=False)
    variables: Mapping[str, Secret] = field(default_factory=dict, repr=False)

    @property
    def database_url(self) -> Url:
        """The database that is used: the one that is set, or `state.db` in the home."""
        return self.database.url or Url(f"sqlite:///{quote(self.home.as_posix(), safe='/:')}/state.db")

    def value(self, key: str) -> object:
        """Return the value of a key such as `jobs.workers`, which must be one of SCHEMA."""
        one = SCHEMA.settings[key]
        value: object = getattr(getattr(self, one.section), one.name)
        return value

    def origin(self, key: str) -> Origin:
        """Return the place whose value won."""
        given = self.given.get(key)
        return given[-1].origin if given else Default()


SCHEMA = schema_of(Settings)

_SECRET_ENDINGS = ("KEY", "TOKEN", "SECRET", "PASSWORD")


def secrets(settings: Settings) -> tuple[str, ...]:
    """Return every secret that any place holds, also those that lost, for a redactor to search for."""
    found = [text for given in settings.given.values() for one in given for text in _secrets_in(one.value)]
    found += [text for key in SCHEMA.settings for text in _secrets_in(settings.value(key))]
    found += [value.reveal() for name, value in settings.variables.items() if name.upper().endswith(_SECRET_ENDINGS)]
    return tuple(dict.fromkeys(text for text in found if text))


def _secrets_in(value: object) -> tuple[str, ...]:
    match value:
        case Secret():
            return (value.reveal(),)
        case Url():
            return value.secrets
        case _:
            return ()
