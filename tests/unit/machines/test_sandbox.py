"""What the sandbox keeps from a command. The long list of attempts is in tests/faults."""

import socket
import tempfile
from pathlib import Path

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
