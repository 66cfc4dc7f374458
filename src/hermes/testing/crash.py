"""The crash harness: a program is killed at random times and at named places, and started again each time.

Invariant: every run is bounded in time and can be repeated from its seed; the harness itself judges nothing, a checker
looks at what the program left behind.
"""

import os
import random
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

READY = "ready"
"""What a victim prints on a line of its own once it works."""


class Probe:
    """Kills its own process, without a last word, when a place is reached for the `nth` time.

    Pass it to `open_app` or `open_database`; a victim makes it of its `--die-at` by `Probe.parse`.
    """

    def __init__(self, place: str, nth: int = 1) -> None:
        self._place = place
        self._nth = nth
        self._seen: Counter[str] = Counter()

    @classmethod
    def parse(cls, text: str) -> "Probe":
        """Read `PLACE` or `PLACE:NTH`; the empty text is a probe that never fires."""
        place, _, nth = text.partition(":")
        return cls(place, int(nth or 1))

    def __call__(self, place: str) -> None:
        """Note that a place is reached, and die there if it is the one."""
        self._seen[place] += 1
        if place == self._place and self._seen[place] == self._nth:
            os.kill(os.getpid(), signal.SIGKILL)


End = Literal["killed", "probed", "ended", "late"]
"""How a life ended: killed by the harness, by its probe, by itself, or by the harness because it took too long."""


@dataclass(frozen=True, slots=True)
class Life:
    """One start of the victim and its end."""

    number: int
    end: End
    place: str
    """Where the probe was to fire, or nothing."""
    ready_after: float | None
    """Seconds until it said that it works; None when it died before."""
    seconds: float
    code: int | None


class Crashes:
    """Starts a victim again and again; belongs to one thread.

    `command` is what to run. It prints `ready` when it works, and understands `--die-at PLACE:NTH` and `--rest`, upon
    which it does what is left and ends with 0. It is killed within `longest` seconds after it is ready.
    """

    def __init__(
        self, command: Sequence[str], *, seed: int | None = None, longest: float = 0.5, patience: float = 30.0
    ) -> None:
        self.seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
        self.history: list[Life] = []
        self._command = list(command)
        self._random = random.Random(self.seed)
        self._longest = longest
        self._patience = patience
        print(f"crash seed {self.seed}")

    def kill_at_random(self) -> Life:
        """Start the victim and kill it, one time in five before it is ready."""
        is_early = self._random.random() < 0.2
        typical = max((life.ready_after or 0.0 for life in self.history[-5:]), default=0.0) or 0.3
        pause = self._random.uniform(0, typical if is_early else self._longest)
        return self._live([], kill_after=pause, is_early=is_early)

    def kill_at(self, place: str, nth: int = 1) -> Life:
        """Start the victim and let it die at a place; `late` when it never gets there."""
        return self._live(["--die-at", f"{place}:{nth}"], place=place)

    def rest(self, *, patience: float | None = None) -> Life:
        """Start the victim once more and let it finish, which may take longer; raises when it does not."""
        life = self._live(["--rest"], patience=patience)
        if life.end != "ended" or life.code != 0:
            raise AssertionError(f"the victim did not come to rest: {life} (seed {self.seed})")
        return life

    def pause(self, longest: float) -> float:
        """Return a time of up to `longest` seconds from the seed, for what a test does between lives."""
        return self._random.uniform(0, longest)

    @property
    def slowest_start(self) -> float:
        """The longest time from a start to `ready`."""
        return max((life.ready_after for life in self.history if life.ready_after is not None), default=0.0)

    def count(self, end: End) -> int:
        """How many lives ended so."""
        return sum(life.end == end for life in self.history)

    def _live(
        self,
        arguments: list[str],
        *,
        place: str = "",
        kill_after: float | None = None,
        is_early: bool = False,
        patience: float | None = None,
    ) -> Life:
        began = time.monotonic()
        with subprocess.Popen(  # noqa: S603 - the test says what to run
            [*self._command, *arguments], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, bufsize=0
        ) as process:
            try:
                ready_after = None if is_early else self._wait_until_ready(process, began)
                end = self._wait_for_end(process, kill_after, patience or self._patience)
            finally:
                process.kill()
        if end == "ended" and process.returncode == -signal.SIGKILL:
            end = "probed"
        life = Life(len(self.history) + 1, end, place, ready_after, time.monotonic() - began, process.returncode)
        self.history.append(life)
        return life

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]", began: float) -> float | None:
        """Read lines until one says `ready`, the victim ends, or patience does."""
        assert process.stdout is not None
        said = b""
        while (left := began + self._patience - time.monotonic()) > 0:
            if not select.select([process.stdout], [], [], left)[0]:
                break
            piece = os.read(process.stdout.fileno(), 4096)
            if not piece:
                return None
            said += piece
            if READY.encode() in said.split():
                return time.monotonic() - began
        return None

    def _wait_for_end(self, process: "subprocess.Popen[bytes]", kill_after: float | None, patience: float) -> End:
        try:
            process.wait(patience if kill_after is None else kill_after)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(self._patience)
            return "late" if kill_after is None else "killed"
        return "ended"
