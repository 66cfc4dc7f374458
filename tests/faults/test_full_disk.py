"""A disk that is full: a clear refusal, nothing acknowledged lost, and work goes on when there is room again."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, sys
from pathlib import Path
import anyio
from hermes.domain.clock import SystemClock
from hermes.domain.errors import Unavailable
from hermes.domain.event import Event, EventId, Stream
from hermes.domain.principal import LOCAL, Principal
from hermes.store import event as events
from hermes.store.database import Place, open_database
disk, me, clock = Path(sys.argv[1]), Principal.system("fill a disk"), SystemClock()
def event():
    return Event(EventId(clock.new_id()), Stream("s"), "test.happened", "t", LOCAL, clock.now(), {"text": "x" * 2000})
async def main():
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(600_000))
    acknowledged, refusals = [], []
    async with open_database(Place(f"sqlite:///{disk}/state.db"), clock) as store:
        async def put(one):
            try:
                await store.write(lambda tx: events.append(tx, me, one))
                acknowledged.append(one.id)
            except Unavailable as error:
                refusals.append(error)
        for fill in range(int(sys.argv[2])):
            before = len(refusals)
            for _ in range(2000):
                async with anyio.create_task_group() as group:
                    for _ in range(1 + fill % 3):
                        group.start_soon(put, event())
                if len(refusals) > before:
                    break
            assert len(refusals) > before, "the disk was never full"
            assert "full" in str(refusals[-1]) and "state.db" in str(refusals[-1]), refusals[-1]
            there = await store.read(lambda tx: events.of_stream(tx, me, Stream("s"), limit=10_000))
            assert [one.id for one in there] == acknowledged
            os.truncate(ballast, ballast.stat().st_size - 200_000)
            one = event()
            await put(one)
            assert acknowledged[-1] == one.id, refusals[-1]
        assert await store.check(is_thorough=True) == []
    async with open_database(Place(f"sqlite:///{disk}/state.db"), clock) as store:
        there = await store.read(lambda tx: events.of_stream(tx, me, Stream("s"), limit=10_000))
    assert [one.id for one in there] == acknowledged
    assert [one.seq for one in there] == list(range(1, len(there) + 1))
    print(len(acknowledged), "acknowledged,", len(refusals), "refused, 0 lost")
anyio.run(main)
"""
MOUNT = 'mount -t tmpfs -o size=4m tmpfs "$1" && shift && exec "$@"'


def in_a_small_disk(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in namespaces of its own, in which `folder` is a disk of four megabytes."""
    words = ["unshare", "-Urm", "sh", "-c", MOUNT, "sh", str(folder), *command]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=50)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    if sys.platform != "linux" or in_a_small_disk(tmp_path, "true").returncode:
        pytest.skip("this system lets us mount no small disk")
    return tmp_path


def test_a_full_disk_refuses_writes_loses_nothing_and_recovers(disk: Path) -> None:
    done = in_a_small_disk(disk, sys.executable, "-c", PROGRAM, str(disk), "3")

    assert done.returncode == 0, done.stderr[-2000:]
    print(done.stdout.strip())
    assert "0 lost" in done.stdout
    assert not list(disk.iterdir())
