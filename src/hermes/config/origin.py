"""Where a value comes from, written the way an editor or a person finds the place again."""

from pathlib import Path
from typing import TypeAlias

from hermes.domain.records import dataclass


@dataclass(frozen=True, slots=True)
class Default:
    """Nobody gave a value."""

    def __str__(self) -> str:
        return "default"


@dataclass(frozen=True, slots=True)
class InFile:
    """A line of `config.yaml`; line and column count from 1."""

    path: Path
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class InDotenv:
    """A line of the home's `.env`."""

    path: Path
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} ({self.name})"


@dataclass(frozen=True, slots=True)
class InEnvironment:
    """A variable of the process environment."""

    name: str

    def __str__(self) -> str:
        return f"environment variable {self.name}"


@dataclass(frozen=True, slots=True)
class InFlag:
    """A flag on the command line."""

    key: str

    def __str__(self) -> str:
        return f"--set {self.key}"


Origin: TypeAlias = Default | InFile | InDotenv | InEnvironment | InFlag


@dataclass(frozen=True, slots=True)
class Given:
    """One value that somebody gave, whether it won or not."""

    value: object
    origin: Origin
