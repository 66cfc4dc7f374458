"""Colours and words of the screen, as data: those that come along, and those of skins/ in the home.

Invariant: a skin cannot do anything; every field has its type and a bound, and what is missing is as in `default`.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from hermes.cli.progress import harmless
from hermes.domain.errors import Misconfigured, NotFound
from hermes.domain.records import dataclass

_OWN = Path(__file__).with_name("skins")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}|[a-z_]{1,30}|")
_NAME = re.compile(r"[\w-]{1,40}")
_COLOURS = ("accent", "words", "quiet", "good", "bad")
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Skin:
    """How the screen looks. A colour is a name or #rrggbb; none is the terminal's own."""

    name: str = "default"
    faces: tuple[str, ...] = ("...",)
    verbs: tuple[str, ...] = ("working",)
    accent: str = ""
    words: str = ""
    quiet: str = ""
    good: str = ""
    bad: str = ""
    code: str = "monokai"
    prompt: str = ">"
    working: str = "* >"
    known: tuple[str, ...] = field(default=(), repr=False)

    def style(self, kind: str) -> str:
        """Return the colour of a kind of words, as both drawing libraries read it."""
        return str(getattr(self, kind)) if kind in _COLOURS else ""


def names(home: Path) -> tuple[str, ...]:
    """Return the names of the skins there are."""
    return tuple(sorted({path.stem for folder in (_OWN, home / "skins") for path in folder.glob("*.toml")}))


def load(home: Path, name: str) -> Skin:
    """Read a skin. Raises NotFound, or Misconfigured for a file that is none."""
    basis = _read(_OWN / "default.toml", Skin())
    path = next((p for f in (home / "skins", _OWN) if (p := f / f"{name}.toml").is_file()), None)
    if not _NAME.fullmatch(name) or path is None:
        raise NotFound(f"there is no skin {name[:40]!r}; there is {', '.join(names(home))}")
    return replace(_read(path, basis), name=name, known=names(home))


def _read(path: Path, basis: Skin) -> Skin:
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise Misconfigured(
            f"{str(path)!r} is no skin: {error}; expected TOML as in the skins that come along"
        ) from error
    fields: dict[str, Any] = {key: _value(path, key, value) for key, value in _known(path, given).items()}
    return replace(basis, **fields)


def _known(path: Path, given: Mapping[str, object]) -> Mapping[str, object]:
    strange = given.keys() - {"faces", "verbs", "code", "prompt", "working", *_COLOURS}
    if strange:
        raise Misconfigured(f"{str(path)!r} has {sorted(strange)}, which no skin has; look at a skin that comes along")
    return given


def _value(path: Path, key: str, value: object) -> str | tuple[str, ...]:
    if key in {"faces", "verbs"}:
        if isinstance(value, list) and value and all(isinstance(one, str) and len(one) <= _LONGEST for one in value):
            return tuple(harmless(one) for one in value)
        raise Misconfigured(f"{str(path)!r}: {key!r} is a list of short texts, such as ['(o_o)']")
    if not isinstance(value, str) or len(value) > _LONGEST or (key in _COLOURS and not _COLOUR.fullmatch(value)):
        raise Misconfigured(
            f"{str(path)!r}: {key!r} is {value!r}; expected a short text, for colours #rrggbb or a name"
        )
    return harmless(value)
