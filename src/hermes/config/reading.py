"""One reading of every place that can give a value: default < config.yaml < .env < environment < flag.

Invariant: either every place is in order, or one Misconfigured names all that is wrong. Nothing is written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.config.files import Mistake, read_text
from hermes.config.migrations import MIGRATIONS, Migrations, came_from, migrate, newest
from hermes.config.origin import Given, InDotenv, InEnvironment, InFlag, Origin
from hermes.config.schema import Schema, nearest
from hermes.config.secret import Secret
from hermes.config.settings import SCHEMA, Settings
from hermes.config.variables import home_of, is_open_to_others, parse_dotenv, process_environment, unknown
from hermes.domain.errors import Misconfigured

if TYPE_CHECKING:
    from hermes.config.document import Document

CONFIG = "config.yaml"
DOTENV = ".env"


@dataclass
class Reading:
    """What has been found so far. Places are read from the weakest to the strongest, so the last value given wins."""

    schema: Schema
    home: Path
    given: dict[str, list[Given]] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    variables: dict[str, Secret] = field(default_factory=dict)

    def file(self, text: str, migrations: Migrations = MIGRATIONS) -> None:
        """Read the text of config.yaml as if it were of the newest version."""
        from hermes.config.document import Document

        document = Document(self.home / CONFIG, text)
        try:
            version = document.version(newest(migrations))
            if version < newest(migrations) and document.root is not None:
                new = _migrated(document, version, migrations)
                document = Document(document.path, new, came_from(text, new))
                self.notices.append(
                    f"{document.path} is of version {version} and read as version {newest(migrations)}; "
                    "`hermes config check --fix` writes it so"
                )
            entries = document.entries(self.schema, self.mistakes)
        except Mistake as mistake:
            self.mistakes.append(str(mistake))
            return
        for key, entry in sorted(entries.items(), key=lambda item: item[1].node.start_mark.line):
            try:
                text = document.text_of(entry.node, self.schema.settings[key])
            except Mistake as mistake:
                self.mistakes.append(str(mistake))
            else:
                self._give(key, text, document.at(entry.node))

    def dotenv(self, text: str) -> None:
        """Read the text of the home's .env."""
        path = self.home / DOTENV
        numbers: dict[str, int] = {}
        values: dict[str, str] = {}
        for line in parse_dotenv(path, text, self.mistakes):
            if values.get(line.name, line.value) != line.value:
                self.notices.append(
                    f"{path}:{numbers[line.name]}: {line.name} is given again in line {line.number}, which wins"
                )
            numbers[line.name], values[line.name] = line.number, line.value
        self.variables = {name: Secret(value) for name, value in values.items()}
        self._named(values, lambda name: InDotenv(path, numbers[name], name))

    def environment(self, environ: Mapping[str, str]) -> None:
        """Read the variables of the process."""
        self._named(environ, InEnvironment)

    def flags(self, flags: Mapping[str, str]) -> None:
        """Read what the command line says."""
        for key, text in flags.items():
            if key in self.schema.settings:
                self._give(key, text, InFlag(key))
            else:
                self.mistakes.append(f"{InFlag(key)}: unknown key {key!r}; {hint(key, self.schema)}")

    def sections(self) -> dict[str, Any]:
        """Return the sections, or raise one Misconfigured with a line for every mistake."""
        if self.mistakes:
            raise Misconfigured("\n".join(self.mistakes))
        values: dict[str, dict[str, object]] = {name: {} for name in self.schema.sections}
        for key, given in self.given.items():
            one = self.schema.settings[key]
            values[one.section][one.name] = given[-1].value
        return {name: section(**values[name]) for name, section in self.schema.sections.items()}

    def disagreements(self) -> list[str]:
        """Return a notice for each value of .env, and each alias, that another explicit value contradicts."""
        notices = []
        for key, given in self.given.items():
            kind = self.schema.settings[key].kind
            winner = given[-1]
            for first, second in pairwise(given):
                is_alias = type(first.origin) is type(second.origin)
                is_expected = not is_alias and InDotenv not in {type(first.origin), type(second.origin)}
                if first.value == second.value or is_expected or isinstance(second.origin, InFlag):
                    continue
                said = " and ".join(f"{one.origin} says {kind.show(one.value)!r}" for one in (first, second))
                notices.append(f"{key!r}: {said}; {winner.origin} wins")
        return notices

    def _named(self, values: Mapping[str, str], origin: Callable[[str], Origin]) -> None:
        for one in self.schema.settings.values():
            for name in reversed(one.names):
                # `NAME=` is how a shell or a container says that there is none.
                if values.get(name):
                    self._give(one.key, values[name], origin(name))
        self.notices += [n for n in unknown(values, self.schema) if n not in self.notices]

    def _give(self, key: str, text: str, origin: Origin) -> None:
        try:
            value = self.schema.settings[key].parse(text, self.home)
        except ValueError as error:
            about = "" if isinstance(origin, InFlag) else f"{key!r}: "
            self.mistakes.append(f"{origin}: {about}{error}")
        else:
            self.given.setdefault(key, []).append(Given(value, origin))


def _migrated(document: "Document", version: int, migrations: Migrations) -> str:
    try:
        return migrate(document.text, version, migrations)
    except Mistake as mistake:
        raise Mistake(f"{document.path}: {mistake}") from None


def hint(key: str, schema: Schema) -> str:
    """Return what to write instead of an unknown key."""
    near = nearest(key, tuple(schema.settings))
    return f"did you mean {near!r}?" if near else "`hermes config show` lists them all"


def load(
    *,
    home: Path | None = None,
    flags: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    migrations: Migrations = MIGRATIONS,
) -> Settings:
    """Read every place and return the settings.

    `flags` maps keys such as `jobs.workers` to text. `environ` is the process's own unless given. Raises one
    Misconfigured with a line for every mistake in any place.
    """
    variables = process_environment() if environ is None else environ
    place = home_of(home, variables)
    reading = read(place, flags=flags or {}, environ=variables, migrations=migrations)
    sections = reading.sections()
    return Settings(
        home=place,
        given={key: tuple(given) for key, given in reading.given.items()},
        notices=(*reading.notices, *reading.disagreements()),
        variables=reading.variables,
        **sections,
    )


def read(
    home: Path,
    *,
    flags: Mapping[str, str],
    environ: Mapping[str, str],
    migrations: Migrations = MIGRATIONS,
    schema: Schema = SCHEMA,
) -> Reading:
    """Read every place and keep what is wrong for the caller to judge."""
    reading = Reading(schema, home)
    for name, take in ((CONFIG, lambda text: reading.file(text, migrations)), (DOTENV, reading.dotenv)):
        try:
            text = read_text(home / name)
        except Mistake as mistake:
            reading.mistakes.append(str(mistake))
        else:
            if text is not None:
                take(text)
    if (home / DOTENV).is_file() and is_open_to_others(home / DOTENV):
        mode = (home / DOTENV).stat().st_mode & 0o777
        reading.notices.append(
            f"{home / DOTENV} holds secrets and others may read it (mode {mode:04o}); "
            "`hermes config check --fix` makes it 0600"
        )
    reading.environment(environ)
    reading.flags(flags)
    return reading
