"""Which processes are alive, on disk: one small file each, written before anybody is told, removed after the end.

Invariant: what is ended by the journal began at the noted moment of this boot and carries the noted mark.
"""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from hermes.domain.records import dataclass
from hermes.machines import family
from hermes.machines.family import Identity

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_GRACE = 5.0
_LOOK_AGAIN = 0.02


@dataclass(frozen=True, slots=True)
class Leftover:
    """One process as it was noted. `owner` is the Hermes that started it."""

    boot: str
    pid: int
    began: int
    owner: int
    owner_began: int
    mark: str
    session: str
    command: str


class Journal:
    """A folder of notes. Several Hermes may share it; each ends only what an owner that is gone has left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def note(self, name: str, pid: int, mark: str, session: str, command: str) -> None:
        """Note a process that was just started."""
        who, owner = family.identify(pid), family.identify(os.getpid())
        if who is None or owner is None:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        noted = Leftover(_boot(), pid, who.began, owner.pid, owner.began, mark, session, command)
        whole, part = self._folder / f"{name}.json", self._folder / f"{name}.part"
        part.write_text(json.dumps(asdict(noted)), encoding="utf-8")
        part.rename(whole)

    def forget(self, name: str) -> None:
        """Forget a process that has ended."""
        with suppress(FileNotFoundError):
            (self._folder / f"{name}.json").unlink()

    def end_leftovers(self) -> list[Leftover]:
        """End what a Hermes that is no more has left; return what was still alive. Blocks for seconds at worst."""
        found = []
        for path in sorted(self._folder.glob("*.json")):
            left = _read(path)
            if left is not None and _is_alive(left.owner, left.owner_began, left.boot):
                continue
            if left is not None and _end(left):
                found.append(left)
            path.unlink(missing_ok=True)
        return found


def _end(left: Leftover) -> bool:
    members = list(_members(left))
    for who in reversed(members):
        family.send(who, signal.SIGTERM)
    until = time.monotonic() + _GRACE
    while any(family.identify(who.pid) == who for who in members) and time.monotonic() < until:
        time.sleep(_LOOK_AGAIN)
    for who in {*members, *_members(left)}:
        family.send(who, signal.SIGKILL)
    return bool(members)


def _members(left: Leftover) -> Iterator[Identity]:
    if left.boot != _boot():
        return
    if _is_alive(left.pid, left.began, left.boot):
        yield from family.descendants(left.pid)
    # Its children may outlive it; they carry its mark, which nobody else was given.
    yield from family.marked(left.mark)


def _is_alive(pid: int, began: int, boot: str) -> bool:
    return boot == _boot() and family.identify(pid) == Identity(pid, began)


def _read(path: Path) -> Leftover | None:
    try:
        return Leftover(**json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _boot() -> str:
    with suppress(OSError):
        return _BOOT.read_text("ascii").strip()
    return ""
