"""An assistant that is killed at any moment loses nothing that was finished and repeats nothing that was done."""

import sys
import time
from pathlib import Path

import agent_checker
import pytest

from hermes.testing.crash import Crashes

HERE = Path(__file__).parent
PLACES = ("writer.begun", "writer.worked", "writer.committed")


def crashes(folder: Path) -> Crashes:
    return Crashes([sys.executable, str(HERE / "agent_victim.py"), "--folder", str(folder)], longest=0.5)


def judge(run: Crashes, folder: Path) -> None:
    began = time.monotonic()
    run.rest(patience=60)
    left = agent_checker.look(folder)
    complaints = agent_checker.check(left)
    kills = run.count("killed") + run.count("probed")
    print(
        f"seed {run.seed}: {kills} kills ({run.count('probed')} at places), {len(left.runs)} runs, "
        f"{len(left.messages)} messages, {len(left.finished)} finished, {sum(left.done.values())} done, "
        f"{left.uncertain} uncertain; {len(complaints)} complaints; slowest restart {run.slowest_start:.2f} s, "
        f"rest after {time.monotonic() - began:.1f} s"
    )
    assert not complaints, (run.seed, complaints[:20])
    assert left.finished
    assert left.ended_runs


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_session_survives_thirty_kills(tmp_path: Path) -> None:
    run = crashes(tmp_path)
    for number in range(30):
        if number % 3:
            run.kill_at_random()
        else:
            run.kill_at(PLACES[number // 3 % 3], nth=1 + number % 7)
    judge(run, tmp_path)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_a_session_survives_two_hundred_kills(tmp_path: Path) -> None:
    run = crashes(tmp_path)
    for number in range(200):
        if number % 4:
            run.kill_at_random()
        else:
            run.kill_at(PLACES[number // 4 % 3], nth=1 + number % 11)
    judge(run, tmp_path)
