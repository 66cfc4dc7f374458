"""Variables: those of the process, which only this module reads, and those of the home's `.env`."""

import io
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path

from hermes.config.schema import Schema, nearest
from hermes.domain.records import dataclass

OTHERS = frozenset({"HERMES_HOME", "HERMES_HOST", "HERMES_PORT", "HERMES_API_KEY"})
"""Variables that begin like ours and are read elsewhere."""


@dataclass(frozen=True, slots=True)
class Line:
    """One assignment in `.env`."""

    name: str
    value: str
    number: int


def process_environment() -> Mapping[str, str]:
    """Return the variables of this process."""
    return os.environ  # noqa: TID251  # this is the place that the rule leads to


def home_of(home: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the home: the flag, else HERMES_HOME, else `.hermes` in the user's folder."""
    if home is not None:
        return home.expanduser().absolute()
    if environ.get("HERMES_HOME"):
        return Path(environ["HERMES_HOME"]).expanduser().absolute()
    user = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    return (user / ".hermes").absolute()


def parse_dotenv(path: Path, text: str, mistakes: list[str]) -> list[Line]:
    """Return the assignments of a `.env`. Values are taken as they stand: `$NAME` is not replaced."""
    from dotenv.parser import parse_stream

    lines = []
    for binding in parse_stream(io.StringIO(text, newline="")):
        written = binding.original.string
        blank = written[: len(written) - len(written.lstrip())]
        number = binding.original.line + len(blank.splitlines())
        if binding.error or (binding.key is not None and binding.value is None):
            mistakes.append(f"{path}:{number}: expected NAME=value")
        elif binding.key is not None and binding.value is not None:
            lines.append(Line(binding.key, binding.value, number))
    return lines


def is_open_to_others(path: Path) -> bool:
    """Whether somebody else on this machine may read or write the file. Windows has no such bits."""
    return os.name == "posix" and bool(stat.S_IMODE(path.stat().st_mode) & 0o077)


def unknown(names: Iterable[str], schema: Schema) -> list[str]:
    """Return a notice for every HERMES_ variable that means nothing here."""
    known = {name for one in schema.settings.values() for name in one.names} | OTHERS
    notices = []
    for name in sorted(names):
        if name.startswith("HERMES_") and name not in known:
            near = nearest(name, tuple(sorted(known)))
            hint = f"; did you mean {near}?" if near else ""
            notices.append(f"the variable {name} means nothing to Hermes{hint}")
    return notices
