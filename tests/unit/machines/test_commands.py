"""Commands on this machine: what they leave behind, and how they end."""

import os
import time
from datetime import timedelta
from pathlib import Path

import anyio
import pytest
from tests.unit.machines.conftest import Place

from hermes.config import Settings
from hermes.config.sections import Terminal
from hermes.domain.clock import SystemClock
from hermes.domain.errors import LimitReached, Misconfigured, NotFound
from hermes.domain.machine import Command
from hermes.machines.local import open_local

pytestmark = pytest.mark.anyio
HOME = Path.home()


async def test_both_outputs_come_in_order_with_the_exit_code(place: Place) -> None:
    done = await place.sh("echo one; echo two >&2; echo three; exit 7")
    assert (done.exit_code, done.output) == (7, b"one\ntwo\nthree\n")


async def test_a_session_keeps_its_directory_and_what_it_exported(place: Place) -> None:
    await place.sh("mkdir -p below; cd below; export COLOUR='a b\nc'; hidden=1; false")
    done = await place.sh('echo "$COLOUR|$hidden"; pwd')
    assert done.output.decode() == f"a b\nc|\n{place.workspace / 'below'}\n"
    assert done.cwd == place.workspace / "below"
    assert (await place.sh("pwd; echo $COLOUR", session="other")).output.decode() == f"{place.workspace}\n\n"


async def test_a_command_that_names_another_directory_starts_there(place: Place) -> None:
    await place.sh("mkdir -p here there; cd here")
    there = Command("pwd", place.workspace / "there", "s", place.workspace)
    assert (await place.machine.run(there, lambda _: None)).cwd == place.workspace / "there"


async def test_a_directory_that_is_gone_is_told_of_and_the_workspace_is_used(place: Place) -> None:
    await place.sh("mkdir gone; cd gone; rmdir ../gone")
    done = await place.sh("pwd")
    assert done.output.endswith(f"{place.workspace}\n".encode())


async def test_a_command_that_takes_too_long_is_asked_to_end_and_says_its_last_words(place: Place) -> None:
    done = await place.sh("trap 'echo bye; exit 3' TERM; sleep 60 & wait", seconds=0.5)
    assert (done.is_timed_out, done.exit_code, done.output) == (True, 3, b"bye\n")
    assert done.seconds < 4


async def test_what_a_command_left_running_does_not_hold_it_up_and_is_ended(place: Place) -> None:
    began = time.monotonic()
    done = await place.sh("sleep 61.25 & echo done")
    assert done.output == b"done\n"
    assert time.monotonic() - began < 3
    assert not running("61.25")


async def test_cancelling_ends_what_was_started(place: Place) -> None:
    with anyio.move_on_after(0.4):
        await place.sh("sleep 62.25; echo never > never")
    assert not running("62.25")
    assert not (place.workspace / "never").exists()


async def test_much_output_is_kept_whole_in_a_file_and_its_end_at_hand(place: Place) -> None:
    done = await place.sh("seq 100000")
    whole = "".join(f"{n}\n" for n in range(1, 100_001)).encode()
    assert (done.total, len(done.output)) == (len(whole), 50_000)
    assert whole.endswith(done.output)
    assert done.spilled is not None
    assert done.spilled.read_bytes() == whole


async def test_input_is_read_and_a_terminal_is_there_on_request(place: Place) -> None:
    big = b"x" * 300_000
    assert (await place.sh("wc -c", stdin=big)).output.strip() == b"300000"
    assert (await place.sh("true", stdin=big)).exit_code == 0
    assert (await place.sh("test -t 0 && test -t 1 && echo yes", is_pty=True)).output == b"yes\r\n"
    assert (await place.sh("test -t 0 || test -t 1 || echo no")).output == b"no\n"


async def test_a_background_process_is_heard_fed_and_waited_for(place: Place) -> None:
    begun = await place.machine.spawn(place.command("read word; echo got $word; exit 5"))
    assert begun.exit_code is None
    await place.machine.write(begun.id, b"hello\n")
    ended = await place.machine.wait(begun.id, timedelta(seconds=10))
    assert ended.exit_code == 5
    assert await place.machine.output(begun.id, offset=0, limit=100) == b"got hello\n"
    assert await place.machine.output(begun.id, offset=4, limit=5) == b"hello"
    with pytest.raises(NotFound):
        await place.machine.output("none", offset=0, limit=1)


async def test_background_processes_end_when_told_with_their_session_and_with_the_machine(place: Place) -> None:
    first = await place.machine.spawn(place.command("sleep 63.25"))
    await place.machine.spawn(place.command("sleep 64.25"))
    await place.machine.spawn(place.command("sleep 65.25", session="other"))
    assert (await place.machine.kill(first.id)).exit_code not in {None, 0}
    assert not running("63.25")
    assert await place.machine.end_session("s") == 1
    assert not running("64.25")
    assert len(place.machine.processes("other")) == 1
    assert place.machine.processes("s") == []


@pytest.mark.parametrize("wide", [Path(p) for p in ("/", "/etc", "/tmp", "/proc/self")] + [HOME, HOME.parent], ids=str)
async def test_a_workspace_that_would_give_too_much_away_is_refused(place: Place, wide: Path) -> None:
    with pytest.raises(Misconfigured, match="make a folder for the work"):
        await place.machine.run(Command("true", wide, "s", wide), lambda _: None)


async def test_the_home_of_hermes_is_no_workspace_either(place: Place) -> None:
    for wide in (place.home, place.home.parent, place.home / "machines"):
        with pytest.raises(Misconfigured):
            await place.machine.run(Command("true", wide, "s", wide), lambda _: None)


async def test_a_text_too_long_for_the_system_is_refused_with_a_way_out(place: Place) -> None:
    with pytest.raises(LimitReached, match="write it to a file"):
        await place.sh("#" * 200_000)


async def test_nothing_is_left_in_the_workspace(place: Place) -> None:
    await place.sh("true")
    assert list(place.workspace.iterdir()) == []


def running(word: str) -> list[str]:
    """Return the command lines that are alive and hold a word of this test's own."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if f"sleep {word}" in line and "hermes_text" not in line:
                found.append(line)
    return found


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "SSH_AUTH_SOCK", "my_secret"])
async def test_a_secret_is_passed_on_only_where_it_is_said_twice(tmp_path: Path, workspace: Path, name: str) -> None:
    outer = {"HOME": str(tmp_path), "PATH": os.defpath, name: "canary", "PIP_INDEX_URL": "there"}

    async def seen(terminal: Terminal) -> str:
        settings = Settings(home=tmp_path / "home", terminal=terminal)
        async with open_local(settings, SystemClock(), environment=outer) as machine:
            done = await machine.run(Command("env", workspace, "s", workspace), lambda _: None)
            return done.output.decode()

    with pytest.raises(Misconfigured, match=f"{name}.*looks like a secret"):
        await seen(Terminal(env_passthrough=("PIP_INDEX_URL", name)))
    assert "canary" not in await seen(Terminal(env_passthrough=("PIP_INDEX_URL",)))
    assert "PIP_INDEX_URL=there" in await seen(Terminal(env_passthrough=("PIP_INDEX_URL",)))
    assert "canary" in await seen(Terminal(env_secrets=(name,)))
