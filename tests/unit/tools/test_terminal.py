"""The tools `terminal` and `process`, on this machine."""

import pytest
from tests.unit.tools.conftest import Hand

pytestmark = pytest.mark.anyio


async def test_a_command_runs_and_a_file_is_read(hand: Hand) -> None:
    assert await hand("terminal", command="echo one > a.txt; echo two >&2; exit 3") == {
        "output": "two\n",
        "exit_code": 3,
    }
    assert (await hand("read_file", path="a.txt"))["content"] == "1|one"
