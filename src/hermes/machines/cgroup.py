"""Limits on a command as a whole, where the kernel's control groups are ours to divide; version 2 and version 1.

Invariant: what is started with the words of a group is in it before its first instruction, with all it starts.
"""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path

from hermes.domain.records import dataclass
from hermes.machines import family
from hermes.machines.family import Identity

_SECONDS = 10.0
_JOIN = (
    'until [ "$1" = -- ]; do echo 0 > "$1/cgroup.procs" || exit 125; shift; done\n'
    'shift\nexec "$@"\n'  # nothing of this shell is left in what it becomes
)
_PREFIX = "hermes-"


@dataclass(frozen=True, slots=True)
class _Parent:
    """A folder of groups that we may add to, with what is written into each new one: name of a file to its limit."""

    folder: Path
    memory: tuple[str, ...] = ()
    none: tuple[str, ...] = ()
    processes: tuple[str, ...] = ()

    def make(self, name: str, memory: int, processes: int) -> Path:
        group = self.folder / name
        group.mkdir()
        values = [(self.memory, memory), (self.none, 0), (self.processes, processes)]
        for names, value in values:
            for file in names:
                if (group / file).exists():
                    (group / file).write_text(str(value), "ascii")
        return group


@dataclass(slots=True)
class Cgroups:
    """The groups of the commands of one machine."""

    parents: tuple[_Parent, ...]
    _left: set[Path] = field(default_factory=set)

    @contextmanager
    def of(self, name: str, *, memory: int, processes: int) -> Iterator[tuple[str, ...]]:
        """Make a group; give the words that start something in it. Raises OSError."""
        self.clean()
        groups: list[Path] = []
        try:
            groups.extend(parent.make(_named(name), memory, processes) for parent in self.parents)
            yield ("/bin/sh", "-c", _JOIN, "hermes", *map(str, groups), "--")
        finally:
            self._left.update(groups)
            self.clean()

    def clean(self) -> None:
        """Remove the groups that nobody is in any more; the last of a command may take a moment to be gone."""
        for group in list(self._left):
            with suppress(OSError):
                group.rmdir()
                self._left.discard(group)


def find() -> Cgroups | None:
    """Return the groups that may be used here, after one was made and joined; None when there are none."""
    for parents in _candidates():
        found = Cgroups(parents)
        for parent in parents:
            _clear(parent.folder)
        with suppress(OSError, subprocess.SubprocessError):
            with found.of(f"trial-{os.getpid()}", memory=1 << 30, processes=100) as words:
                done = subprocess.run(
                    [*words, "/bin/sh", "-c", ":"], timeout=_SECONDS, capture_output=True, check=False
                )
            if done.returncode == 0:
                return found
    return None


def _named(name: str) -> str:
    """Name a group by its owner, so that another Hermes leaves it alone while there is nobody in it yet."""
    owner = family.identify(os.getpid())
    return f"{_PREFIX}{os.getpid()}-{owner.began if owner else 0}-{name}"


def _clear(folder: Path) -> None:
    """Remove what a Hermes that is no more has left; a group with somebody in it stays."""
    for group in folder.glob(_PREFIX + "*"):
        pid, _, rest = group.name.removeprefix(_PREFIX).partition("-")
        began = rest.partition("-")[0]
        is_named = pid.isdigit() and began.isdigit()
        if not is_named or family.identify(int(pid)) != Identity(int(pid), int(began)):
            with suppress(OSError):
                group.rmdir()


def _candidates() -> Iterator[tuple[_Parent, ...]]:
    own, mounted = _own(), _mounted()
    unified = _below(mounted.get("2"), own.get(""))
    # A group that has processes of its own is not divided, so ours is looked over.
    for folder in unified.parents if unified else ():
        if not (folder / "cgroup.subtree_control").exists():
            break
        with suppress(OSError):
            if {"memory", "pids"} <= set((folder / "cgroup.subtree_control").read_text("ascii").split()):
                yield (_Parent(folder, ("memory.max",), ("memory.swap.max",), ("pids.max",)),)
    memory, pids = (_below(mounted.get(name), own.get(name)) for name in ("memory", "pids"))
    if memory and pids:
        limits = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
        yield (_Parent(memory, memory=limits), _Parent(pids, processes=("pids.max",)))


def _below(mount: Path | None, name: str | None) -> Path | None:
    return mount / name.lstrip("/") if mount is not None and name is not None else None


def _own() -> Mapping[str, str]:
    """Return our place by controller; the empty name is version 2."""
    found: dict[str, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text("utf-8", "replace").splitlines():
            _, controllers, place = line.split(":", 2)
            found |= dict.fromkeys(controllers.split(","), place)
    return found


def _mounted() -> Mapping[str, Path]:
    found: dict[str, Path] = {}
    with suppress(OSError):
        for line in Path("/proc/self/mounts").read_text("utf-8", "replace").splitlines():
            _, place, kind, options, *_ = line.split(" ")
            if kind == "cgroup2":
                found["2"] = Path(place)
            elif kind == "cgroup":
                found |= {name: Path(place) for name in ("memory", "pids") if name in options.split(",")}
    return found
