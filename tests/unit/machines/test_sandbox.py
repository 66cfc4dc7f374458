"""What the sandbox keeps from a command. The long list of attempts is in tests/faults."""

import os
import socket
import sys
import tempfile
from pathlib import Path

import anyio
import pytest
from tests.unit.machines.conftest import Place

from hermes.config import Settings
from hermes.domain.clock import SystemClock
from hermes.domain.errors import Unavailable
from hermes.domain.machine import Command
from hermes.machines.local import open_local

pytestmark = pytest.mark.anyio


async def test_a_command_reaches_nobody_on_this_machine(sandboxed: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        done = await sandboxed.sh(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")
        assert b"reached" not in done.output
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize("parent", ["/var/tmp", "/tmp"])
async def test_a_workspace_may_lie_where_temporary_files_do(sandboxed: Place, parent: str) -> None:
    with tempfile.TemporaryDirectory(dir=parent) as made:
        there = Path(made)
        done = await sandboxed.machine.run(Command("pwd; echo x > new", there, "s", there), lambda _: None)
        assert done.output.decode().strip() == made
        assert (there / "new").read_text() == "x\n"


async def test_a_sandbox_that_cannot_be_made_is_no_answer_of_the_command(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    async with open_local(Settings(home=tmp_path / "home"), SystemClock()) as machine:
        await machine.run(Command("true", work, "s", work), lambda _: None)
        machine._sessions["s"].folders.temporary.rename(tmp_path / "away")
        if machine.protection == "sandbox":
            with pytest.raises(Unavailable, match="could not be started"):
                await machine.run(Command("true", work, "s", work), lambda _: None)


async def test_a_repository_that_a_session_made_can_be_set_up_and_one_that_was_there_cannot(sandboxed: Place) -> None:
    await sandboxed.sh("git init -q before; git init -q here", session="first")
    assert (await sandboxed.sh("git -C before config user.name X", session="first")).exit_code == 0
    done = await sandboxed.sh("git -C before config user.name Y", session="second")
    assert done.exit_code != 0
    await sandboxed.sh("git init -q after", session="second")
    text = "git -C after config user.name X && echo x > after/.git/hooks/a"
    assert (await sandboxed.sh(text, session="second")).exit_code == 0


async def test_git_knows_the_person_and_nothing_of_their_secrets(tmp_path: Path, workspace: Path) -> None:
    person = tmp_path / "person"
    person.mkdir()
    (person / ".gitconfig").write_text(
        '[user]\n\tname = "A \\"B\\" C"\n\temail = a@example.com\n'
        "[core]\n\tsshCommand = evil\n[http]\n\textraHeader = token\n"
    )
    outer = {"HOME": str(person), "PATH": os.defpath}
    async with open_local(Settings(home=tmp_path / "home"), SystemClock(), environment=outer) as machine:
        if machine.protection != "sandbox":
            pytest.skip(machine.describe())
        command = Command("git config --list --global", workspace, "s", workspace)
        done = await machine.run(command, lambda _: None)
    assert done.output.decode().splitlines() == ['user.name=A "B" C', "user.email=a@example.com"]


async def test_the_directory_before_is_known_to_the_next_command(place: Place) -> None:
    await place.sh("mkdir -p one two; cd one; cd ../two")
    assert (await place.sh("cd - >/dev/null; basename $PWD")).output == b"one\n"
    assert (await place.sh("cd -", session="fresh")).exit_code != 0


KILLED = """
import anyio, os, sys
from pathlib import Path
from hermes.config import Settings
from hermes.domain.clock import SystemClock
from hermes.domain.machine import Command
from hermes.machines.local import open_local

async def main(home, work):
    async with open_local(Settings(home=Path(home)), SystemClock()) as machine:
        def show(data):
            os.kill(os.getpid(), 9)
        await machine.run(Command("echo begun; sleep 20", Path(work), "s", Path(work)), show)

anyio.run(main, *sys.argv[1:])
"""


async def test_what_a_killed_hermes_held_free_is_gone_after_the_next_start(sandboxed: Place) -> None:
    work = sandboxed.workspace
    (work / ".idea").mkdir(mode=0o755)
    words = [sys.executable, "-c", KILLED, str(sandboxed.home), str(work)]
    done = await anyio.run_process(words, check=False)
    assert done.returncode == -9, done.stderr
    assert (work / ".vscode").is_dir()
    async with open_local(Settings(home=sandboxed.home), SystemClock()):
        assert [path.name for path in work.iterdir()] == [".idea"]
        assert list((sandboxed.home / "machines/local/placeholders").iterdir()) == []


async def test_another_start_leaves_alone_what_is_in_use(sandboxed: Place) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(sandboxed.sh, "echo x > begun; sleep 1; mkdir .vscode; echo $? > ended")
        while not (sandboxed.workspace / "begun").exists():  # noqa: ASYNC110 - a file has no bell
            await anyio.sleep(0.01)
        async with open_local(Settings(home=sandboxed.home), SystemClock()):
            assert (sandboxed.workspace / ".vscode").is_dir()
    assert (sandboxed.workspace / "ended").read_text() == "1\n"
    assert not (sandboxed.workspace / ".vscode").exists()
