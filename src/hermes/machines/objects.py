"""The objects of git repositories, kept by links beside the checkpoints of a workspace: what is in one never changes.

Invariant: bounded in number, and in bytes where the disk knows no links; what did not fit is counted.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

MOST = 50_000
_MOST_COPIED = 200_000_000
_PRIVATE = 0o700
_OBJECTS = "objects"


class Objects:
    """The links of one workspace, in a folder of their own, by the object's name; with a list for each checkpoint."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, checkpoint: str, workspace: Path, repositories: Iterable[str]) -> int:
        """Keep what is there; return how many objects are not in it. Raises OSError when the disk is full."""
        names: list[str] = []
        left_out = copied = 0
        for name, path in _objects(workspace, repositories):
            if len(names) >= MOST:
                left_out += 1
                continue
            size = self._link(path, self._folder / _key(name), _MOST_COPIED - copied)
            copied += max(size, 0)
            if size < 0:
                # It is gone, or there is no room.
                left_out += 1
            else:
                names.append(name)
        if names:
            listed = self._folder / f"{checkpoint}.list"
            listed.write_text("\n".join(names), "utf-8")
        return left_out

    def _link(self, path: Path, kept: Path, room: int) -> int:
        """Return how many bytes it took; less than nothing when it could not be kept."""
        if kept.exists():
            return 0
        self._folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        try:
            os.link(path, kept, follow_symlinks=False)
        except FileNotFoundError:
            return -1
        except OSError:
            size = path.stat().st_size
            if size > room:
                return -1
            part = kept.with_suffix(".part")
            shutil.copyfile(path, part, follow_symlinks=False)
            part.rename(kept)
            return size
        return 0

    def bring_back(self, checkpoint: str, workspace: Path) -> tuple[int, int]:
        """Put back what is gone; return how many came back, and how many could not."""
        back = lost = 0
        for name in self._listed(checkpoint):
            path = workspace / name
            if os.path.lexists(path):
                continue
            if os.path.realpath(path.parent) != str(path.parent):
                # A link has come into its way.
                lost += 1
                continue
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self._folder / _key(name), path)
                back += 1
            except OSError:
                lost += 1
        return back, lost

    def forget(self, kept: Iterable[str]) -> None:
        """Remove what no checkpoint names any more."""
        still = set(kept)
        lists = list(self._folder.glob("*.list"))
        if all(one.stem in still for one in lists):
            return
        used = {_key(name) for one in still for name in self._listed(one)}
        for one in lists:
            if one.stem not in still:
                one.unlink(missing_ok=True)
        for path in self._folder.iterdir():
            if path.suffix != ".list" and path.name not in used:
                path.unlink(missing_ok=True)

    def _listed(self, checkpoint: str) -> list[str]:
        with suppress(FileNotFoundError):
            return (self._folder / f"{checkpoint}.list").read_text("utf-8").split("\n")
        return []


def _objects(workspace: Path, repositories: Iterable[str]) -> Iterator[tuple[str, Path]]:
    for repository in repositories:
        root = workspace / repository / _OBJECTS
        for place, _, names in os.walk(root):
            for name in names:
                path = Path(place, name)
                # A file of another kind may change in place.
                if _is_object(path):
                    yield str(path.relative_to(workspace)), path


def _key(name: str) -> str:
    """Name the link: an object may have the same name in two repositories, and a pack other bytes."""
    repository, _, rest = name.rpartition(f"/{_OBJECTS}/")
    return f"{hashlib.sha256(repository.encode()).hexdigest()[:12]}-{rest.replace('/', '-')}"


def _is_object(path: Path) -> bool:
    bare = path.parent.name + path.name
    is_loose = len(path.parent.name) == 2 and len(bare) in (40, 64)
    return (is_loose or path.name.startswith("pack-")) and path.is_file() and not path.is_symlink()
