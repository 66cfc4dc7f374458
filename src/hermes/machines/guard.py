"""Looks at a running command now and then: whether it fills the disk, or takes more than it may.

Invariant: a command that is ended for this is told why, as the last line of its output.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio

from hermes.domain.records import dataclass
from hermes.machines import family
from hermes.machines.child import Child

_EVERY, _TIMES = 0.05, 5
"""The number of processes is looked at each time, as it can double in a moment; the rest every fifth time."""
_SLACK = 1 << 20
"""Others write to the disk as well; so little is not held against a command."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What to look at. `memory` and `processes` are None where the kernel sees to them."""

    places: Sequence[Path]
    free_bytes: int
    memory: int | None = None
    processes: int | None = None

    async def watch(self, child: Child) -> str:
        """Return why the command must end, as soon as it must."""
        free = {place: _free(place) for place in self.places}
        usual = _threads()
        while True:
            for _ in range(_TIMES):
                await anyio.sleep(_EVERY)
                # How many there are on the whole machine costs nothing to know; only then it is worth to count ours.
                if self.processes is not None and _threads() - usual > self.processes:
                    if len(family.descendants(child.pid)) > self.processes:
                        return f"ended: it has more than {self.processes:,} processes"
                    usual = _threads()
            for place, before in free.items():
                now = _free(place)
                if now < self.free_bytes and now < before - _SLACK:
                    return f"ended: less than {self.free_bytes:,} bytes are left on the disk it writes to"
            if self.memory is not None and sum(_memory(who.pid) for who in family.descendants(child.pid)) > self.memory:
                return f"ended: it uses more than {self.memory:,} bytes of memory"


def _threads() -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[2])
    return 0


def _free(place: Path) -> int:
    with suppress(OSError):
        found = os.statvfs(place)
        return found.f_bavail * found.f_frsize
    # What is gone cannot be filled.
    return 1 << 62


def _memory(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        resident, shared = Path(f"/proc/{pid}/statm").read_text("ascii").split()[1:3]
        return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
    return 0
