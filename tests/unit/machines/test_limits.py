"""What a command may use, and how one that wants more ends."""

import os
import resource
import shutil
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.unit.machines.conftest import Place

from hermes.config import Settings
from hermes.config.sections import Sandbox
from hermes.domain.clock import SystemClock
from hermes.machines import cgroup
from hermes.machines.local import LocalMachine, open_local

pytestmark = pytest.mark.anyio

HOG = "x = []\nwhile len(x) < 40: x.append(bytearray(b'x' * 10_000_000))\nprint('all of it')"
BOMB = "f() { f | f & }; f; sleep 0.7; echo survived"
CROWD = """
import os, time
began = 0
try:
    while began < 200:
        if not os.fork():
            time.sleep(9)
        began += 1
except OSError:
    pass
time.sleep(0.8)
print(began)
"""


@pytest.fixture(params=["groups", "looking"])
async def bounded(request: pytest.FixtureRequest, tmp_path: Path, workspace: Path) -> AsyncIterator[Place]:
    """A machine with little room, by control groups and without them."""
    settings = Settings(home=tmp_path / "home", sandbox=Sandbox(memory=150_000_000, processes=60))
    async with open_local(settings, SystemClock()) as machine:
        if machine.protection != "sandbox":
            pytest.skip(machine.describe())
        if request.param == "looking":
            look_only(machine)
        elif "by looking" in machine.describe():
            pytest.skip("no control groups are ours")
        yield Place(machine, workspace, settings.home)


def look_only(machine: LocalMachine) -> None:
    machine._launcher = replace(machine._launcher, cgroups=None)


async def test_one_who_takes_too_much_memory_does_not_get_it(bounded: Place) -> None:
    done = await bounded.sh(f'python3 -c "{HOG}"')
    assert done.exit_code != 0
    assert b"all of it" not in done.output


async def test_many_who_together_take_too_much_memory_do_not_get_it(bounded: Place) -> None:
    one = "x = bytearray(b'x' * 30_000_000); import time; time.sleep(1); print('had' + ' it')"
    done = await bounded.sh(f'for n in $(seq 10); do python3 -c "{one}" & done; wait')
    assert done.output.count(b"had it") < 10


async def test_a_fork_bomb_is_held(bounded: Place) -> None:
    if os.getuid() == 0 and "by looking" in bounded.machine.describe():
        pytest.skip("the kernel does not count the processes of root, and looking is too slow for a bomb")
    began = time.monotonic()
    await bounded.sh(BOMB, seconds=2)
    assert time.monotonic() - began < 30
    assert (await bounded.sh("echo still here")).output == b"still here\n"


async def test_no_more_than_so_many_processes_run(bounded: Place) -> None:
    done = await bounded.sh(f"python3 -c '{CROWD}'")
    assert done.exit_code != 0 or int(done.output.split()[-1]) <= 60


async def test_the_groups_of_ended_commands_are_gone(bounded: Place) -> None:
    await bounded.sh("true")
    groups = bounded.machine._launcher.cgroups
    if groups is not None:
        await anyio.sleep(0.05)
        groups.clean()
        assert not groups._left


def test_another_hermes_leaves_fresh_groups_alone_and_removes_those_of_the_dead() -> None:
    groups = cgroup.find()
    if groups is None:
        pytest.skip("no control groups are ours")
    folder = groups.parents[0].folder
    left = folder / "hermes-1-1-left"
    left.mkdir()
    with groups.of("fresh", memory=1 << 30, processes=10) as words:
        assert cgroup.find() is not None
        assert all(Path(word).is_dir() for word in words if word.endswith("-fresh"))
    assert not left.exists()


def test_groups_that_cannot_be_made_are_not_offered(tmp_path: Path) -> None:
    groups = cgroup.Cgroups((cgroup._Parent(tmp_path / "none"),))
    with pytest.raises(OSError), groups.of("x", memory=1, processes=1):  # noqa: PT011 - whatever the system says
        pass


async def test_a_command_that_fills_the_disk_is_ended_and_told_why(tmp_path: Path, workspace: Path) -> None:
    free = shutil.disk_usage(workspace).free
    settings = Settings(home=tmp_path / "home", sandbox=Sandbox(free_bytes=max(0, free - 50_000_000)))
    async with open_local(settings, SystemClock()) as machine:
        place = Place(machine, workspace, settings.home)
        done = await place.sh("head -c 300000000 /dev/zero > big; sync big; sleep 15; echo finished")
        (workspace / "big").unlink()
        assert done.output.endswith(b"bytes are left on the disk it writes to\n")
        assert b"finished" not in done.output
        assert done.exit_code != 0


async def test_killing_everybody_reaches_only_oneself(sandboxed: Place) -> None:
    begun = await sandboxed.machine.spawn(sandboxed.command("sleep 66.25"))
    done = await sandboxed.sh("kill -9 -1; echo alive")
    assert done.exit_code in {0, 137}
    assert sandboxed.machine.processes("s")[0].exit_code is None
    await sandboxed.machine.kill(begun.id)


@pytest.mark.slow
async def test_one_who_ignores_the_request_to_end_is_killed(place: Place) -> None:
    done = await place.sh("trap '' TERM; echo deaf; while :; do sleep 0.05; done", seconds=0.2)
    assert (done.is_timed_out, done.output) == (True, b"deaf\n")
    assert 4 < done.seconds < 12


async def test_bytes_that_are_no_text_come_as_they_are(place: Place) -> None:
    assert (await place.sh(r"printf '\377\376\000\200ok'")).output == b"\xff\xfe\0\x80ok"


async def test_a_flood_of_output_costs_no_memory(place: Place) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = await place.sh("head -c 500000000 /dev/zero", seconds=50)
    assert done.total == 500_000_000
    assert len(done.output) == 50_000
    assert done.spilled is not None
    assert done.spilled.stat().st_size == 256_000_000
    done.spilled.unlink()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


async def test_read_only_means_the_workspace_too_and_leaves_a_place_for_temporary_files(sandboxed: Place) -> None:
    (sandboxed.workspace / "there").write_text("before")
    done = await sandboxed.sh("cat there; echo x > there; echo y > new; rm -f there; mktemp", mode="read-only")
    assert done.output.startswith(b"before")
    assert list(sandboxed.workspace.iterdir()) == [sandboxed.workspace / "there"]
    assert (sandboxed.workspace / "there").read_text() == "before"
    assert b"/tmp/tmp." in done.output


async def test_full_means_without_a_sandbox_with_the_person_s_own_home(place: Place, tmp_path: Path) -> None:
    done = await place.sh(f"echo $HOME; echo outside > {tmp_path}/outside", mode="full")
    assert done.output.decode().strip() == str(Path.home())
    assert (tmp_path / "outside").read_text() == "outside\n"
