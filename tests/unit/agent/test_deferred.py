"""A tool whose answer comes later: the run is suspended, and the answer opens a new one."""

from dataclasses import dataclass

import pytest
from tests.unit.agent.conftest import Desk

from hermes.domain.tool import Deferred
from hermes.effects.approving import Gate, OwnMemory
from hermes.effects.executor import Executor, Surroundings
from hermes.effects.places import Grounds
from hermes.effects.spill import Spill
from hermes.effects.tool import tool
from hermes.effects.toolset import Tools

pytestmark = pytest.mark.anyio


@dataclass
class Later(Desk):
    def hands(self) -> Executor:
        @tool(toolset="test", access="external", effects=lambda _arguments, _context: ())
        async def order(what: str) -> Deferred:
            """Order something."""
            return Deferred(f"order-{what}")

        around = Surroundings(
            Grounds(home=self.home, user_home=self.home),
            Gate(OwnMemory(), None, self.world.clock),
            Spill(self.home, self.world.clock),
        )
        return Executor(Tools("test", (order,)), around)


async def test_a_run_waits_suspended_and_the_answer_goes_on_in_a_new_one(desk: Desk) -> None:
    later = Later(desk.world, desk.machine, desk.home, desk.workspace)
    ended = await later.say("order a book", [("order", {"what": "book"})])
    assert (ended.ending.state, ended.ending.reason) == ("suspended", "waits for order-book")
    assert "order-book" in (await later.path())[-1].results[0].text
    after = await later.say("[the answer to deferred 'order-book']\nit is here", "your book is here")
    assert (after.text, after.ending.state) == ("your book is here", "done")
