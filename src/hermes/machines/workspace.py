"""Which folder may be a workspace, and what in it commands may read but never change.

Invariant: what a person's own tools would run later (hooks, the configuration of git, editors and Hermes) is out of
the reach of commands.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hermes.domain.errors import Misconfigured
from hermes.domain.records import dataclass

_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var/run")
_TOO_WIDE = ("/home", "/mnt", "/media", "/opt", "/srv", "/tmp", "/var", "/var/tmp", "/Users")
KEPT_FOLDERS = (".hermes", ".vscode", ".idea", ".cursor", ".zed", ".devcontainer")
KEPT_FILES = (".envrc", ".pre-commit-config.yaml", ".gitmodules")
KEPT_OF_GIT = ("hooks", "config", "config.worktree", "modules")


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder that commands work in; `folder` is real. `read_only` lies in it, `beside` outside (a shared .git)."""

    folder: Path
    read_only: tuple[Path, ...] = ()
    pinned: tuple[Path, ...] = ()
    """Folders that must not be renamed, because something read-only is in them."""
    missing: tuple[Path, ...] = ()
    """Names that must not come into being."""
    beside: tuple[Path, ...] = ()


def checked(folder: Path, user_home: Path, hermes_home: Path) -> Path:
    """Return the real path of a folder that may be a workspace; raise Misconfigured for one that may not."""
    real = Path(os.path.realpath(folder))
    advice = "make a folder for the work, such as ~/projects/name, and start there"
    if not real.is_dir():
        raise Misconfigured(f"the workspace {str(folder)!r} is not a folder; {advice}")
    for place, what in ((user_home, "your whole home"), (hermes_home, "the home of Hermes")):
        kept = Path(os.path.realpath(place))
        if real == kept or kept.is_relative_to(real):
            raise Misconfigured(f"the workspace {str(folder)!r} would hold {what}; {advice}")
    own = Path(os.path.realpath(hermes_home))
    if real.is_relative_to(own) and not real.is_relative_to(own / "workspaces"):
        raise Misconfigured(f"the workspace {str(folder)!r} is inside the home of Hermes; {advice}")
    if any(real.is_relative_to(system) for system in _SYSTEM) or str(real) in _TOO_WIDE:
        raise Misconfigured(f"the workspace {str(folder)!r} belongs to the system; {advice}")
    return real


def inspect(folder: Path, known: Iterable[Path]) -> Workspace:
    """Find what is to be kept in a workspace. `known` are the repositories that were there when the session began:
    those that its commands have made since hold nothing that they could not have written.
    """
    read_only = [folder / name for name in (*KEPT_FOLDERS, *KEPT_FILES) if (folder / name).exists()]
    missing = [folder / name for name in KEPT_FOLDERS if not os.path.lexists(folder / name)]
    pinned: list[Path] = []
    beside: list[Path] = []
    for git in sorted(known):
        if git.is_symlink() or not git.exists():
            continue
        if git.is_dir():
            kept = [git / name for name in KEPT_OF_GIT if (git / name).exists()]
            pinned.append(git)
            read_only += [path for path in kept if not path.is_symlink()]
        else:
            read_only.append(git)
            beside += _shared(git)
    # A link is replaced like any name, and a mount would land on what it points to.
    kept_files = [path for path in read_only if not path.is_symlink()]
    return Workspace(folder, tuple(kept_files), tuple(pinned), tuple(missing), tuple(beside))


def _shared(git: Path) -> Iterator[Path]:
    """Find the repository that a linked worktree belongs to. Both must name each other, as a command can only write
    one of them.
    """
    try:
        said = git.read_text("utf-8", "surrogateescape")
        own = Path(said.removeprefix("gitdir:").strip())
        back = Path((own / "gitdir").read_text("utf-8", "surrogateescape").strip())
    except (OSError, ValueError):
        return
    is_linked = said.startswith("gitdir:") and own.is_absolute() and own.parent.name == "worktrees"
    if is_linked and own.parent.parent.name == ".git" and back == git and own == Path(os.path.realpath(own)):
        yield own.parent.parent
