"""Changes of the home's files: checked first, then written whole, or refused with nothing written.

Invariant: after a change at most one of the files gives the key, and it gives what was asked for. What may be a secret
lives in `.env`, everything else in `config.yaml`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from hermes.config.files import PRIVATE_FILE, Mistake, alone, make_home, read_text, replace
from hermes.config.migrations import MIGRATIONS, VERSION_KEY, Migrations, migrate, newest
from hermes.config.reading import CONFIG, DOTENV, Reading, hint
from hermes.config.schema import Schema, Setting
from hermes.config.settings import SCHEMA
from hermes.config.variables import is_open_to_others
from hermes.domain.errors import Misconfigured, NotFound
from hermes.domain.records import dataclass


def named(key: str, schema: Schema = SCHEMA) -> Setting:
    """Return the setting of a key, or raise NotFound with the nearest."""
    if key not in schema.settings:
        raise NotFound(f"there is no setting {key!r}; {hint(key, schema)}")
    return schema.settings[key]


@dataclass(frozen=True, slots=True)
class Editor:
    """Changes the files of one home. Each method returns what it did, a line each, or raises with nothing written."""

    home: Path
    schema: Schema = SCHEMA
    migrations: Migrations = field(default_factory=lambda: MIGRATIONS)

    def put(self, key: str, text: str) -> list[str]:
        """Give a key a value, in the file it belongs in, and take it out of the other."""
        one = named(key, self.schema)
        try:
            value = one.parse(text, self.home)
        except ValueError as error:
            raise Misconfigured(f"{key!r}: {error}; nothing was written") from None
        if one.kind.is_secret and not text:
            raise Misconfigured(f"{key!r}: expected {one.expects}; to have none, `hermes config unset {key}`")
        make_home(self.home)
        with alone(self.home):
            config, dotenv = self._config(), self._text(DOTENV)
            if one.kind.is_secret:
                name = (*one.about.names, *one.names)[0]
                dotenv = self._with_variable(one, name, dotenv or "", text, value)
                config = self._without_key(one, config)
                return self._write(
                    (DOTENV, dotenv, f"{key} is set, as {name}, in"), (CONFIG, config, f"{key} is no longer in")
                )
            config = self._with_key(one, config or f"{VERSION_KEY}: {newest(self.migrations)}\n", text, value)
            dotenv = self._without_variable(one, dotenv)
            return self._write((CONFIG, config, f"{key} is set in"), (DOTENV, dotenv, f"{key} is no longer in"))

    def drop(self, key: str) -> list[str]:
        """Take a key out of both files."""
        one = named(key, self.schema)
        if not self.home.is_dir():
            return []
        with alone(self.home):
            config = self._without_key(one, self._config())
            dotenv = self._without_variable(one, self._text(DOTENV))
            gone = f"{key} is no longer in"
            return self._write((CONFIG, config, gone), (DOTENV, dotenv, gone))

    def fix(self) -> list[str]:
        """Write config.yaml in the newest version, and close .env to others."""
        if not self.home.is_dir():
            return []
        with alone(self.home):
            config = self._config()
            if config is not None and (mistakes := self._read(CONFIG, config).mistakes):
                raise Misconfigured("\n".join(mistakes))
            done = self._write((CONFIG, config, f"version {newest(self.migrations)} is written in"))
            dotenv = self.home / DOTENV
            if dotenv.is_file() and is_open_to_others(dotenv):
                dotenv.chmod(PRIVATE_FILE)
                done.append(f"only its owner may read {dotenv} now")
            return done

    def _with_key(self, one: Setting, config: str, text: str, value: object) -> str:
        from hermes.config import lines
        from hermes.config.document import Document

        wanted = self._values(self._read(CONFIG, config)) | {one.key: value}
        if whole := self.schema.whole(one.section):
            config = lines.spread(Document(self.home / CONFIG, config), whole)
        candidates = lines.put(Document(self.home / CONFIG, config), one.key, lines.scalar(one.kind, text))
        return self._choose(CONFIG, config, candidates, wanted)

    def _without_key(self, one: Setting, config: str | None) -> str | None:
        if config is None:
            return None
        from hermes.config import lines
        from hermes.config.document import Document

        wanted = self._values(self._read(CONFIG, config))
        wanted.pop(one.key, None)
        if one.about.is_whole:
            config = lines.spread(Document(self.home / CONFIG, config), one.key)
        return self._choose(CONFIG, config, lines.drop(Document(self.home / CONFIG, config), one.key), wanted)

    def _with_variable(self, one: Setting, name: str, dotenv: str, text: str, value: object) -> str:
        from hermes.config import lines

        wanted = self._values(self._read(DOTENV, dotenv)) | {one.key: value}
        return self._choose(DOTENV, dotenv, lines.put_variable(dotenv, one.names, name, text), wanted)

    def _without_variable(self, one: Setting, dotenv: str | None) -> str | None:
        if dotenv is None:
            return None
        from hermes.config import lines

        wanted = self._values(self._read(DOTENV, dotenv))
        wanted.pop(one.key, None)
        return self._choose(DOTENV, dotenv, [lines.drop_variables(dotenv, one.names)], wanted)

    def _choose(self, name: str, text: str, candidates: Iterable[str], wanted: Mapping[str, object]) -> str:
        """Return the first candidate that means what is wanted, no more and no less."""
        before, left = self._read(name, text).mistakes, None
        for candidate in candidates:
            after = self._read(name, candidate)
            if not after.mistakes and self._values(after) == wanted:
                return candidate
            if left is None:
                left = {_without_place(m) for m in after.mistakes}
        mistakes = [m for m in before if left is None or _without_place(m) in left]
        path = self.home / name
        if mistakes:
            raise Misconfigured("\n".join([*mistakes, "nothing was written; `hermes config edit` opens the file"]))
        raise Misconfigured(f"{path}: this cannot be changed by a command; `hermes config edit` opens the file")

    def _read(self, name: str, text: str) -> Reading:
        reading = Reading(self.schema, self.home)
        if name == CONFIG:
            reading.file(text, self.migrations)
        else:
            reading.dotenv(text)
        return reading

    def _values(self, reading: Reading) -> dict[str, object]:
        return {key: given[-1].value for key, given in reading.given.items()}

    def _text(self, name: str) -> str | None:
        try:
            return read_text(self.home / name)
        except Mistake as mistake:
            raise Misconfigured(f"{mistake}; nothing was written") from None

    def _config(self) -> str | None:
        """Return config.yaml in the newest version, whatever is wrong with it otherwise."""
        text, old = self._text(CONFIG), self._version()
        if text is None or old is None:
            return text
        try:
            return migrate(text, old, self.migrations)
        except Mistake as mistake:
            raise Misconfigured(f"{self.home / CONFIG}: {mistake}; nothing was written") from None

    def _version(self) -> int | None:
        """Return the version of config.yaml when it is an old one."""
        from hermes.config.document import Document

        text = self._text(CONFIG)
        if text is None or newest(self.migrations) == 1:
            return None
        document = Document(self.home / CONFIG, text)
        try:
            version = document.version(newest(self.migrations))
            return version if document.root is not None and version < newest(self.migrations) else None
        except Mistake:
            return None

    def _write(self, *files: tuple[str, str | None, str]) -> list[str]:
        """Write in this order what differs: a crash in between leaves a value twice rather than nowhere."""
        done = []
        for name, text, said in files:
            path, old = self.home / name, self._text(name)
            if text is None or text == old:
                continue
            if name == CONFIG and old is not None and (version := self._version()) is not None:
                copy = _free(self.home / f"{CONFIG}.v{version}")
                replace(copy, old)
                done.append(f"the file as it was is kept in {copy}")
            replace(path, text, PRIVATE_FILE if name == DOTENV else None)
            done.append(f"{said} {path}")
        return done


def _without_place(mistake: str) -> str:
    return mistake.partition(": ")[2]


def _free(path: Path) -> Path:
    """Return a name beside `path` that nothing has."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}.{number}")
    return free
