"""What a tool is about to do to the world outside the process, resolved so far that it can be judged and shown.

Invariant: what is judged is what is done: paths are real, commands are the text that runs.
"""

import hashlib
from dataclasses import fields
from pathlib import Path
from typing import TypeAlias

from hermes.domain.records import dataclass


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A command in a shell. `is_full` asks to run it outside the sandbox."""

    command: str
    cwd: Path
    is_background: bool = False
    is_full: bool = False


@dataclass(frozen=True, slots=True)
class ReadPath:
    """A file or a folder is read; `path` is real. `is_deep` reads everything below it."""

    path: Path
    is_deep: bool = False


@dataclass(frozen=True, slots=True)
class WritePath:
    """A file is made, changed or removed; `path` is real. `summary` is what a person is shown of the change."""

    path: Path
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Connect:
    """A host outside is talked to."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class CallTool:
    """A tool is called that nobody here can see into: another server's, another agent's. `arguments` is for people."""

    tool: str
    arguments: str


Effect: TypeAlias = RunCommand | ReadPath | WritePath | Connect | CallTool


def fingerprint(effect: Effect) -> str:
    """Name exactly this effect; an approval is bound to it."""
    said = [type(effect).__name__, *(f"{field.name}={getattr(effect, field.name)!r}" for field in fields(effect))]
    return hashlib.sha256("\n".join(said).encode("utf-8", "surrogatepass")).hexdigest()
