"""Who descends from a process, by /proc; and signals that reach exactly the process that was meant.

Invariant: a process is named by its id and the moment it began, so that none that was given an old id later is hit.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hermes.domain.records import dataclass

MARK = "HERMES_COMMAND"
"""The variable by which what a command left behind is found."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One process for good. `began` is in clock ticks since the system started."""

    pid: int
    began: int


def identify(pid: int) -> Identity | None:
    """Return who has this id now; None when nobody has, or only a corpse."""
    fields = _fields(pid)
    return Identity(pid, int(fields[19])) if fields and fields[0] != "Z" else None


def send(who: Identity, number: signal.Signals) -> bool:
    """Send a signal; say whether there was somebody to get it."""
    if not hasattr(os, "pidfd_open"):
        return False
    with suppress(ProcessLookupError, PermissionError):
        handle = os.pidfd_open(who.pid)
        try:
            # Asked after the handle was taken: it now holds the process that is compared.
            if identify(who.pid) == who:
                signal.pidfd_send_signal(handle, number)
                return True
        finally:
            os.close(handle)
    return False


def descendants(pid: int) -> list[Identity]:
    """Return what descends from a process, the process itself last."""
    children: dict[int, list[int]] = {}
    for one in _pids():
        fields = _fields(one)
        if fields:
            children.setdefault(int(fields[1]), []).append(one)
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        todo += children.get(one, [])
    return [who for who in map(identify, reversed(found)) if who is not None]


def children(pid: int) -> list[Identity]:
    """Return who was started by a process itself and still is."""
    with suppress(OSError, ValueError):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        return [who for who in map(identify, map(int, found)) if who is not None]
    return []


def members(pid: int, *, is_sandboxed: bool) -> list[Identity]:
    """Return who is asked to end. The keepers of a sandbox are left out: without them the rest would be killed."""
    family = descendants(pid)
    if not is_sandboxed:
        return family
    return [who for who in family if who.pid != pid and _name(who.pid) != "bwrap"]


def marked(mark: str) -> list[Identity]:
    """Return the processes of ours that carry a mark in their environment."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for pid in _pids():
        with suppress(OSError):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(identify(pid))
    return [who for who in found if who is not None]


def _pids() -> Iterator[int]:
    with suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                yield int(entry.name)


def _fields(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return []
    # The name stands in brackets and may hold anything, brackets too.
    return text.rpartition(")")[2].split()


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    return ""
