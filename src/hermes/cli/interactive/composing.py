"""What is typed becomes what is said: folded pastes are unfolded, pictures and files that are named come along.

Invariant: nothing is read that was not named by the person in this very message.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from hermes.cli.turns import PICTURES, picture
from hermes.domain.errors import HermesError
from hermes.domain.message import Part, TextPart
from hermes.domain.records import dataclass

_FOLD_LINES, _FOLD_LENGTH = 6, 1_500
_LARGEST_FILE = 200_000
_MENTION = re.compile(r"(?<!\S)@(\"[^\"\n]+\"|\S+)")


@dataclass(frozen=True, slots=True)
class Composed:
    """What is said, and what should be known about it."""

    parts: tuple[Part, ...]
    text: str
    """With pastes unfolded, for the history."""
    shown: str
    notes: tuple[str, ...] = ()


class Composing:
    """Remembers what was pasted, by the mark that stands for it in the input."""

    def __init__(self, workspace: Callable[[], Path]) -> None:
        self._workspace = workspace
        self._pasted: dict[str, str] = {}
        self._pictures: dict[str, Path] = {}
        self._count = 0

    def paste(self, text: str) -> str:
        """Return what stands in the input for a pasted text: itself, or a mark when it is long or names a picture."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        path = self._picture_in(text)
        if path is not None:
            self._count += 1
            mark = f"[picture {self._count}: {path.name}]"
            self._pictures[mark] = path
            return mark
        lines = text.rstrip("\n").count("\n") + 1
        if lines <= _FOLD_LINES and len(text) <= _FOLD_LENGTH:
            return text
        self._count += 1
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        mark = f"[pasted {self._count}: {size}]"
        self._pasted[mark] = text
        return mark

    def compose(self, typed: str) -> Composed:
        """Return what a typed text says."""
        pictures = [path for mark, path in self._pictures.items() if mark in typed]
        text = _unfolded(typed, self._pasted).replace("\0", "").encode("utf-8", "replace").decode()
        notes: list[str] = []
        files: list[str] = []
        for word in _MENTION.findall(_unfolded(typed, dict.fromkeys(self._pasted, ""))):
            path = self._path(word.strip('"').rstrip(",.;:!?)"))
            if path is None:
                continue
            if path.suffix.lower() in PICTURES:
                pictures.append(path)
            else:
                said, note = _file(path)
                files += [said] if said else []
                notes += [note] if note else []
        parts: list[Part] = [TextPart("\n\n".join([text, *files]))] if text.strip() or files else []
        for path in dict.fromkeys(pictures):
            try:
                parts.append(picture(path))
            except (HermesError, OSError) as error:
                notes.append(f"{path.name} does not come along: {error}")
        return Composed(tuple(parts), text, typed, tuple(notes))

    def forget(self) -> None:
        """The message is said; its pastes are not needed any more."""
        self._pasted.clear()
        self._pictures.clear()

    def _picture_in(self, text: str) -> Path | None:
        """Return the picture whose path the text is, as terminals paste a file that is dropped on them."""
        plain = text.strip().strip("'\"").replace("\\ ", " ").removeprefix("file://")
        if "\n" in plain or Path(plain).suffix.lower() not in PICTURES:
            return None
        return self._path(plain)

    def _path(self, word: str) -> Path | None:
        path = Path(word).expanduser() if word.startswith("~/") else self._workspace() / word
        try:
            return path if path.is_file() else None
        except (OSError, ValueError):
            return None


def _unfolded(typed: str, pasted: Mapping[str, str]) -> str:
    for mark, text in pasted.items():
        typed = typed.replace(mark, text, 1)
    return typed


def _file(path: Path) -> tuple[str, str]:
    """Return a file as the model reads it, or why it does not come along."""
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        return "", f"{path.name} does not come along: {error.strerror}"
    if len(raw) > _LARGEST_FILE or b"\0" in raw:
        why = "is no text" if b"\0" in raw else f"is longer than {_LARGEST_FILE:,} bytes"
        return "", f"{path.name} {why}; only its name is said"
    return f'<file path="{path}">\n{raw.decode("utf-8", "replace")}\n</file>', ""
