"""How a `config.yaml` of an older Hermes is read by this one.

A migration is a pure function on the round-trip document: it turns version n into version n + 1 and touches nothing
else. It must bear a document that lacks what it would change. The number in the file is written here, not by it.
"""

import io
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from hermes.config.files import Mistake

VERSION_KEY = "_config_version"

Migration: TypeAlias = Callable[[Any], None]
Migrations: TypeAlias = Mapping[int, Migration]
"""From version n, which is the key, to version n + 1."""

MIGRATIONS: Migrations = {}


def newest(migrations: Migrations) -> int:
    """Return the version that this Hermes writes."""
    return max(migrations, default=0) + 1


def migrate(text: str, version: int, migrations: Migrations) -> str:
    """Return the text of the same document in the newest version; comments and order stay."""

    def change(document: Any) -> None:  # noqa: ANN401  # ruamel.yaml's documents have no types of use
        for step in range(version, newest(migrations)):
            migrations[step](document)
        if VERSION_KEY in document:
            document[VERSION_KEY] = newest(migrations)
        else:
            document.insert(0, VERSION_KEY, newest(migrations))

    return changed(text, change)


def changed(text: str, change: Callable[[Any], None]) -> str:
    """Return the text after `change` of its round-trip document; raise Mistake when it cannot be read so."""
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    reader, out = _round_trip(), io.StringIO()
    try:
        document = reader.load(text)
        change(document)
        reader.dump(document, out)
    except YAMLError as error:
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        reason = getattr(error, "problem", None) or str(error)
        raise Mistake(f"cannot be rewritten: {f'line {mark.line + 1}: ' if mark is not None else ''}{reason}") from None
    return out.getvalue()


def _round_trip() -> Any:  # noqa: ANN401  # ruamel.yaml's documents have no types of use
    """Return a YAML reader and writer that keeps comments, order and quotes."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt")
    yaml.preserve_quotes = True
    yaml.width = 1 << 30
    return yaml


def came_from(old: str, new: str) -> list[int]:
    """Return for each line of the new text the line of the old one it came from, both counted from 0."""
    import difflib

    before, after = old.splitlines(), new.splitlines()
    lines = [0] * len(after)
    for _, a, a_end, b, b_end in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        for offset in range(b_end - b):
            lines[b + offset] = max(0, min(a + offset, max(a, a_end - 1)))
    return lines
