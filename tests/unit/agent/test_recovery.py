"""What a crash has left in a session, and how the next run goes on from there."""

import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import anyio
import pytest
from tests.unit.agent.conftest import OWNER, Desk, Said

from hermes.agent.agent import Agent
from hermes.agent.beginning import Beginning
from hermes.agent.work import Work
from hermes.domain.errors import LeaseLost, Unavailable
from hermes.domain.model import Request
from hermes.domain.protocols import Store, Tx
from hermes.jobs.lane import Lane
from hermes.machines.local import LocalMachine
from hermes.store import run as runs
from hermes.store.job import PERSON

pytestmark = pytest.mark.anyio
T = TypeVar("T")


async def left_behind(desk: Desk, text: str, *says: Said) -> Work:
    """Begin a run as a process that is no more, and let the model say something in it; what it orders is not done."""
    gone = Lane(desk.world.store, f"{PERSON}{platform.node()}:999999999:1")
    work = await Beginning(desk.parts(gone)).begin(desk.turn(text), is_held=False)
    desk.is_new = False
    for said in says:
        desk.script.says.append(said)
        await work.keep(*(await work.ask()))
        await work.record.flush(work.talk)
    return work


async def test_a_run_that_its_process_did_not_survive_has_failed_and_the_session_goes_on(desk: Desk) -> None:
    await left_behind(desk, "hello")
    assert (await desk.say("again", "hi")).text == "hi"
    assert await desk.story() == ["user: hello", "user: again", "assistant: hi"]
    found = await desk.world.store.read(lambda tx: runs.of_session(tx, OWNER, desk.session.id))
    assert sorted(run.state for run in found) == ["done", "failed"]


async def test_what_only_reads_is_done_again_and_a_write_is_uncertain_and_not_repeated(desk: Desk) -> None:
    await left_behind(desk, "go", [("look", {"what": "a"}), ("do", {"what": "b"})])
    await desk.say("and?", "well")
    assert desk.done == ["look a"]
    assert [(m.status, r.text.partition(":")[0]) for m in await desk.path() for r in m.results] == [
        ("complete", "saw a"),
        ("uncertain", "uncertain"),
    ]
    assert any(e.data.get("state") == "uncertain" for e in desk.events)


async def test_results_that_were_there_stay(desk: Desk) -> None:
    work = await left_behind(desk, "go", [("do", {"what": "a"}), ("do", {"what": "b"})])
    await work.perform(work.talk.unanswered[:1])
    await desk.say("and?", "well")
    assert [r.text.partition(":")[0] for m in await desk.path() for r in m.results] == ["did a", "uncertain"]
    assert desk.done == ["do a"]


async def test_going_on_needs_no_new_words(desk: Desk) -> None:
    await left_behind(desk, "go", [("look", {"what": "a"})])
    assert (await desk.say("", "I looked")).text == "I looked"
    assert await desk.story() == ["user: go", "assistant:", "tool: saw a", "assistant: I looked"]


async def test_a_run_that_was_taken_over_stores_nothing_more(desk: Desk) -> None:
    work = await left_behind(desk, "go", [("do", {"what": "a"})])
    await desk.say("mine now", "yours")
    before = await desk.story()
    with pytest.raises(LeaseLost):
        await work.say("too late")
    assert await desk.story() == before


async def test_after_a_restart_the_same_bytes_are_sent(desk: Desk) -> None:
    work = await left_behind(desk, "go", [("look", {"what": "a"})])
    await work.perform(work.talk.unanswered)
    desk.script.says.append("x")
    await work.ask()
    await desk.say("", "y")
    assert desk.script.sent[-1] == desk.script.sent[-2]


async def test_a_run_that_cannot_begin_ends_and_leaves_its_lane(desk: Desk) -> None:
    await left_behind(desk, "go", [("look", {"what": "a"})])

    async def no_machine() -> LocalMachine:
        raise Unavailable("no machine today")

    without = Agent(replace(desk.parts(), machine=no_machine))
    with pytest.raises(Unavailable, match="today"):
        await without.run(desk.turn("and?"))
    found = await desk.world.store.read(lambda tx: runs.of_session(tx, OWNER, desk.session.id))
    assert {run.state for run in found} == {"failed"}
    assert (await desk.say("and?", "well")).text == "well"


async def test_a_run_that_is_stopped_before_it_begins_ends_and_leaves_its_lane(desk: Desk) -> None:
    await left_behind(desk, "go", [("look", {"what": "a"})])

    async def late() -> LocalMachine:
        desk.reached.set()
        await anyio.sleep_forever()
        return desk.machine

    slow = Agent(replace(desk.parts(), machine=late))
    async with anyio.create_task_group() as group:
        group.start_soon(slow.run, desk.turn("and?"))
        await desk.reached.wait()
        group.cancel_scope.cancel()
    found = await desk.world.store.read(lambda tx: runs.of_session(tx, OWNER, desk.session.id))
    assert sorted(run.state for run in found) == ["cancelled", "failed"]
    assert (await desk.say("and?", "well")).text == "well"


async def test_an_answer_that_comes_after_the_session_was_taken_over_is_not_called_stored(desk: Desk) -> None:
    async def late(_: Request) -> str:
        (mine,) = await desk.world.store.read(lambda tx: runs.unfinished(tx, OWNER, desk.session.id))
        await desk.world.store.write(lambda tx: runs.end(tx, OWNER, mine.id, "failed", "taken", steps=0))
        return "too late"

    with pytest.raises(LeaseLost):
        await desk.say("go", late)
    assert await desk.story() == ["user: go"]


@dataclass
class FullDisk:
    """A store that takes nothing more when it is full."""

    store: Store
    is_full: bool = False

    async def read(self, work: Callable[[Tx], T]) -> T:
        return await self.store.read(work)

    async def write(self, work: Callable[[Tx], T]) -> T:
        if self.is_full:
            raise Unavailable("the disk is full")
        return await self.store.write(work)


async def test_an_answer_that_cannot_be_stored_is_handed_over_and_says_so(desk: Desk) -> None:
    disk = FullDisk(desk.world.store)

    async def last(_: Request) -> str:
        disk.is_full = True
        return "the answer"

    desk.script.says.append(last)
    ended = await Agent(replace(desk.parts(), store=disk)).run(desk.turn("go"))
    assert (ended.text, ended.ending.state) == ("the answer", "failed")
    assert "the disk is full" in str(ended.error)


async def test_a_stop_stays_a_stop_when_its_end_cannot_be_stored(desk: Desk) -> None:
    disk = FullDisk(desk.world.store)

    async def slow(_: Request) -> str:
        disk.is_full = True
        desk.reached.set()
        await anyio.sleep_forever()
        return ""

    desk.script.says.append(slow)
    async with anyio.create_task_group() as group:
        group.start_soon(Agent(replace(desk.parts(), store=disk)).run, desk.turn("go"))
        await desk.reached.wait()
        group.cancel_scope.cancel()
    # A store that failed would have come out of the group.
    assert disk.is_full
