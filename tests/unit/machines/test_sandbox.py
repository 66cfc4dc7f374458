"""What the sandbox keeps from a command. The long list of attempts is in tests/faults."""

import socket

import pytest
from tests.unit.machines.conftest import Place

pytestmark = pytest.mark.anyio


async def test_a_command_reaches_nobody_on_this_machine(sandboxed: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        done = await sandboxed.sh(f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached")
        assert b"reached" not in done.output
        with pytest.raises(TimeoutError):
            server.accept()
