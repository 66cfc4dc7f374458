"""The world outside that a victim acts upon: it knows keys, so it does each thing once, and it writes everything down.

Nothing here knows the product. `calls.log` has a line `begin|made|again|end KEY LANE LIFE NANOSECONDS` for each word.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Word:
    """One line of the log."""

    what: str
    key: str
    lane: str
    life: str
    at: int


class Target:
    """What a job's handler calls with its key. `life` names the process that calls."""

    def __init__(self, folder: Path, life: str) -> None:
        self._effects = folder / "effects"
        self._effects.mkdir(parents=True, exist_ok=True)
        self._life = life
        self._log = os.open(folder / "calls.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def begin(self, key: str, lane: str | None) -> None:
        """Make the effect of a key, once for ever."""
        self._say("begin", key, lane)
        try:
            os.close(os.open(self._effects / key, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            self._say("again", key, lane)
        else:
            self._say("made", key, lane)

    def end(self, key: str, lane: str | None) -> None:
        """Say that the caller is through with a key."""
        self._say("end", key, lane)

    def _say(self, what: str, key: str, lane: str | None) -> None:
        os.write(self._log, f"{what} {key} {lane or '-'} {self._life} {time.monotonic_ns()}\n".encode())


def effects(folder: Path) -> set[str]:
    """Return the keys whose effect was made."""
    return {path.name for path in (folder / "effects").iterdir()} if (folder / "effects").exists() else set()


def words(folder: Path) -> list[Word]:
    """Read the log; a line that the last crash cut short is left out."""
    log = folder / "calls.log"
    lines = log.read_text().split("\n")[:-1] if log.exists() else []
    return [Word(*line.split()[:4], at=int(line.split()[4])) for line in lines]


class Ledger:
    """Where a client writes down what was acknowledged to it, before it believes it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, kind: str, name: str) -> None:
        """Remember one acknowledged write for ever."""
        os.write(self._file, f"{kind} {name}\n".encode())
        os.fsync(self._file)


def acknowledged(path: Path) -> list[tuple[str, str]]:
    """Read what was acknowledged: pairs of `job` or `event` and an id."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [(line.split()[0], line.split()[1]) for line in lines]
