"""The schema, derived from the dataclasses of the sections; there is no second list of keys to keep in step."""

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from hermes.config.kinds import Kind, kind_of
from hermes.domain.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class About:
    """What a field's metadata says of a setting. `check` raises ValueError with what was expected.

    `is_whole` lets a file give the setting as the section itself: `model: NAME` for `model: {default: NAME}`.
    """

    doc: str
    names: tuple[str, ...] = ()
    at_least: Any = None
    at_most: Any = None
    check: Callable[[Any], None] | None = None
    is_whole: bool = False


def setting(default: T, about: About) -> T:
    """Declare one setting as the field of a section."""
    return dataclasses.field(default=default, metadata={"about": about})


@dataclass(frozen=True, slots=True)
class Setting:
    """One key. `names` are its environment variables, the strongest first."""

    key: str
    kind: Kind
    default: object
    about: About
    names: tuple[str, ...]

    @property
    def section(self) -> str:
        """What stands before the dot."""
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        """What stands after the dot."""
        return self.key.partition(".")[2]

    @property
    def expects(self) -> str:
        """Say what a person may write here."""
        low, high = (self.kind.show(b) if b is not None else None for b in (self.about.at_least, self.about.at_most))
        bounds = [f"at least {low}"] if low is not None else []
        bounds += [f"at most {high}"] if high is not None else []
        return ", ".join([self.kind.name, *bounds])

    def parse(self, text: str, home: Path) -> object:
        """Turn text into a value within bounds, or raise ValueError that says what was expected and never a secret."""
        try:
            value = self.kind.parse(text, home)
            self._check(value)
        except ValueError as error:
            got = "" if self.kind.is_secret else f", got {text!r}"
            raise ValueError(f"{error}{got}") from None
        return value

    def _check(self, value: object) -> None:
        low, high, check = self.about.at_least, self.about.at_most, self.about.check
        if value is None:
            return
        if low is not None and value < low:
            raise ValueError(f"expected at least {self.kind.show(low)}")
        if high is not None and value > high:
            raise ValueError(f"expected at most {self.kind.show(high)}")
        if check is not None:
            check(value)


@dataclass(frozen=True, slots=True)
class Schema:
    """Every setting by its key, and the sections in their order."""

    sections: Mapping[str, type[Any]]
    settings: Mapping[str, Setting]

    def whole(self, section: str) -> str | None:
        """Return the key that a section written as one value gives, if it may be written so."""
        return next((s.key for s in self.settings.values() if s.section == section and s.about.is_whole), None)

    def in_section(self, section: str) -> tuple[str, ...]:
        """Return the names of one section."""
        return tuple(s.name for s in self.settings.values() if s.section == section)


def schema_of(whole: type[Any]) -> Schema:
    """Read the sections off a dataclass: its fields whose types are dataclasses."""
    hints = get_type_hints(whole)
    fields = [f.name for f in dataclasses.fields(whole) if f.name in hints]
    sections = {name: hints[name] for name in fields if dataclasses.is_dataclass(hints[name])}
    return Schema(sections, {s.key: s for name, kind in sections.items() for s in _settings_of(name, kind)})


def _settings_of(section: str, kind: type[Any]) -> list[Setting]:
    hints = get_type_hints(kind)
    found = []
    for one in dataclasses.fields(kind):
        about: About = one.metadata["about"]
        names = (f"HERMES_{section}_{one.name}".upper(), *about.names)
        found.append(Setting(f"{section}.{one.name}", kind_of(hints[one.name]), one.default, about, names))
    return found


def nearest(word: str, known: tuple[str, ...]) -> str | None:
    """Return the known word that was probably meant."""
    import difflib

    return next(iter(difflib.get_close_matches(word, known, n=1)), None)
