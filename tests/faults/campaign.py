"""What every campaign does: start victims until enough of them were killed, let the last one rest, and judge."""

import sys
import time
from pathlib import Path

import checker
import target

from hermes.testing.crash import Crashes

HERE = Path(__file__).parent
PLACES = (
    "writer.begun",
    "writer.worked",
    "writer.committed",
    "job.claimed",
    "job.handled",
    "job.settled",
    "schedule.fired",
    "subscription.handled",
)
READY_SECONDS = 5.0
LOOSELY = 10
REST_SECONDS = 300.0
"""What a thousand lives left undone takes its time."""


def crashes(folder: Path, *arguments: str, seed: int | None = None, longest: float = 0.4) -> Crashes:
    command = [sys.executable, str(HERE / "victim.py"), "--folder", str(folder), *arguments]
    return Crashes(command, seed=seed, longest=longest)


def judge(run: Crashes, folder: Path, url: str = "") -> checker.State:
    """Let the victim rest, print the figures, and fail on any complaint."""
    began = time.monotonic()
    run.rest(patience=REST_SECONDS)
    state = checker.look(folder, url)
    complaints = checker.check(state)
    kills = run.count("killed") + run.count("probed")
    print(
        f"seed {run.seed}: {kills} kills ({run.count('probed')} at places), {len(state.acknowledged)} acknowledged, "
        f"{len(state.jobs)} jobs, {len(state.events)} events; {checker.figures(complaints)}; "
        f"slowest restart {run.slowest_start:.2f} s, rest after {time.monotonic() - began:.1f} s"
    )
    assert not complaints, (run.seed, complaints[:20])
    assert run.slowest_start < READY_SECONDS * LOOSELY
    assert len(state.acknowledged) == len(target.acknowledged(folder / "acknowledged.log")) > 0
    return state
