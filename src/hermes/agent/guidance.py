"""What people leave in files for an assistant to know: who it is (SOUL.md), and how a project wants to be treated.

Invariants: a file gives advice, never rights. One that is too long is cut in the middle, one that looks like an attack
is left out, and both are said.
"""

import os
from pathlib import Path

from hermes.agent.injection import suspect
from hermes.domain.records import dataclass

SOUL = "SOUL.md"
NAMES = (".hermes.md", "HERMES.md", "AGENTS.md", "CLAUDE.md", ".cursorrules")
"""What is looked for in a folder; the first that is there counts."""
MOST = 20_000
_HEAD_SHARE = 0.7
_DEEPEST = 40


@dataclass(frozen=True, slots=True)
class Guidance:
    """What was read. `notices` are for the person: what was cut or left out, and why."""

    soul: str | None = None
    project: str | None = None
    project_file: Path | None = None
    notices: tuple[str, ...] = ()


def gather(home: Path, workspace: Path | None) -> Guidance:
    """Read SOUL.md of the home and the nearest context file of the workspace. Blocks for a moment."""
    notices: list[str] = []
    soul = _read(home / SOUL, notices)
    if workspace is None:
        return Guidance(soul, notices=tuple(notices))
    folders = _folders(workspace)
    for path in (folder / name for folder in folders for name in NAMES):
        text = _read(path, notices) if _is_inside(path, folders[-1]) else None
        if text is not None:
            return Guidance(soul, text, path, tuple(notices))
    return Guidance(soul, notices=tuple(notices))


def _is_inside(path: Path, root: Path) -> bool:
    """Whether there is a file that lies in the project: a link in it must not show the model what is elsewhere."""
    return path.is_file() and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _folders(workspace: Path) -> list[Path]:
    """The workspace and the folders around it, up to the root of its repository; without one, itself alone."""
    around = [workspace, *workspace.parents][:_DEEPEST]
    root = next((number for number, folder in enumerate(around) if (folder / ".git").exists()), 0)
    return around[: root + 1]


def _read(path: Path, notices: list[str]) -> str | None:
    try:
        # A pipe would hold us up for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        notices.append(f"{path} was left out: {error.strerror}")
        return None
    with os.fdopen(handle, "rb") as file:
        try:
            raw = file.read(MOST * 8)
        except OSError as error:
            notices.append(f"{path} was left out: {error.strerror}")
            return None
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff").strip()
    found = suspect(text)
    if found is not None:
        notices.append(f"{path} was left out: line {found.line} {found.why}; read it, and mend or delete it")
        return None
    return _cut(path, text, notices) or None


def _cut(path: Path, text: str, notices: list[str]) -> str:
    if len(text) <= MOST:
        return text
    notices.append(f"{path} is longer than {MOST:,} characters; its middle was left out")
    head = int(MOST * _HEAD_SHARE)
    return (
        f"{text[:head]}\n\n[… cut: {len(text) - MOST:,} characters; read the file for them …]\n\n{text[head - MOST :]}"
    )
