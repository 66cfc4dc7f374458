"""A clock that jumps under a running worker: no due time twice, none lost, nothing delayed for ever."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from hermes.domain.job import Job, JobState
from hermes.domain.principal import Principal
from hermes.domain.schedule import Missed
from hermes.jobs.kind import Again, Assignment, Done, JobKind, Result, Retry
from hermes.jobs.queue import Order
from hermes.jobs.worker import Worker
from hermes.testing.clock import FakeClock
from hermes.testing.world import World, open_world

OWNER = Principal.owner()
JUMPS = [
    sign * length
    for length in (timedelta(seconds=1), timedelta(hours=1), timedelta(days=1), timedelta(days=365))
    for sign in (1, -1)
]
YEAR = timedelta(days=365)
# To make up for each ten minutes of a year is fifty thousand jobs: right, but no test.
POLICIES: list[tuple[Missed, timedelta]] = [
    (missed, jump) for missed in ("skip", "once", "all") for jump in JUMPS if (missed, jump) != ("all", YEAR)
]
RULES = ["every 10m", "*/10 * * * *"]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world("memory://", tmp_path) as opened:
        yield opened


async def done(_assignment: Assignment) -> Result:
    return Done()


async def settle(worker: Worker) -> None:
    with anyio.fail_after(20):
        while await worker.step():
            pass


async def half_an_hour(world: World, worker: Worker) -> None:
    for _ in range(36):
        world.clock.advance(50)
        await settle(worker)


async def jobs(world: World, kind: str) -> list[Job]:
    return await world.queue.find(OWNER, kind=kind, limit=10_000)


def due_times(found: list[Job]) -> list[datetime]:
    return [datetime.fromisoformat((job.dedupe_key or "").partition("@")[2]) for job in found]


@pytest.mark.anyio
@pytest.mark.parametrize(("missed", "jump"), POLICIES, ids=str)
@pytest.mark.parametrize("rule", RULES)
async def test_a_schedule_makes_each_due_time_once_and_soon_goes_on(
    world: World, rule: str, missed: Missed, jump: timedelta
) -> None:
    worker = world.worker(JobKind("tick", done))
    await world.queue.add_schedule(OWNER, "often", rule, Order("tick"), missed=missed)
    await half_an_hour(world, worker)
    before = await jobs(world, "tick")

    world.clock.jump(jump.total_seconds())
    await settle(worker)
    at_jump = await jobs(world, "tick")
    await half_an_hour(world, worker)
    after = await jobs(world, "tick")

    assert len(before) == 3
    assert len(set(due_times(after))) == len(after)
    assert all(job.state is JobState.DONE for job in after)
    assert len(at_jump) - len(before) <= (1 if missed != "all" else abs(jump) / timedelta(minutes=10) + 1)
    # In half an hour it comes due three times; those of a jump forward that was wrong were made already.
    was_made_already = timedelta(0) > jump > timedelta(hours=-2) and rule != RULES[0]
    assert was_made_already or len(after) - len(at_jump) >= 2


@pytest.mark.anyio
@pytest.mark.parametrize("rule", RULES)
async def test_a_clock_that_was_wrong_for_a_while_silences_no_schedule(world: World, rule: str) -> None:
    worker = world.worker(JobKind("tick", done))
    await world.queue.add_schedule(OWNER, "often", rule, Order("tick"))
    world.clock.advance(minutes=10)
    await settle(worker)
    world.clock.jump(days=365)
    await settle(worker)
    wrong = await jobs(world, "tick")
    world.clock.jump(days=-365)
    await settle(worker)
    await half_an_hour(world, worker)

    assert len(await jobs(world, "tick")) - len(wrong) >= 2


@pytest.mark.anyio
async def test_a_schedule_wakes_up_also_when_the_clock_was_set_right_while_nobody_worked(tmp_path: Path) -> None:
    clock = FakeClock()
    async with open_world("memory://", tmp_path, clock=clock) as world:
        clock.jump(days=365)
        await world.queue.add_schedule(OWNER, "often", "every 10m", Order("tick"))
        await world.queue.put(OWNER, Order("tick"))
        clock.jump(days=-365)
        worker = world.worker(JobKind("tick", done))
        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(worker.run)
                with world.doorbell.listen("events") as bell:
                    while [job.state for job in await jobs(world, "tick")] != [JobState.DONE]:
                        await bell.wait(0.01)
                world.clock.advance(minutes=10)
                with world.doorbell.listen("events") as bell:
                    while len(await jobs(world, "tick")) < 2:
                        await bell.wait(0.01)
                group.cancel_scope.cancel()


@pytest.mark.anyio
@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_jobs_that_wait_are_done_soon_and_in_their_order_after_a_jump(world: World, jump: timedelta) -> None:
    order: list[object] = []

    async def handle(assignment: Assignment) -> Result:
        order.append(assignment.job.payload["number"])
        return Done()

    worker = world.worker(JobKind("work", handle))
    for number in range(3):
        await world.queue.put(OWNER, Order("work", {"number": number}, lane="one"))
    world.clock.jump(jump.total_seconds())
    for number in range(3, 6):
        await world.queue.put(OWNER, Order("work", {"number": number}, lane="one"))
    for _ in range(3):
        await settle(worker)
        world.clock.advance(2)
    await settle(worker)

    assert order == list(range(6))


@pytest.mark.anyio
@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_a_retry_is_not_delayed_for_ever(world: World, jump: timedelta) -> None:
    tries: list[int] = []

    async def handle(assignment: Assignment) -> Result:
        tries.append(assignment.job.attempt)
        return Done() if len(tries) > 1 else Again("not yet")

    longest = timedelta(minutes=10)
    worker = world.worker(JobKind("work", handle, retry=Retry(first=longest, longest=longest)))
    job = await world.queue.put(OWNER, Order("work"))
    await settle(worker)
    world.clock.jump(jump.total_seconds())
    for _ in range(8):
        await settle(worker)
        world.clock.advance(longest.total_seconds() / 2)

    assert tries == [1, 2]
    assert (await world.queue.get(OWNER, job.id)).state is JobState.DONE


@pytest.mark.anyio
@pytest.mark.parametrize("jump", JUMPS, ids=str)
async def test_a_running_job_is_neither_lost_nor_done_twice(world: World, jump: timedelta) -> None:
    tries: list[int] = []
    release = anyio.Event()

    async def handle(assignment: Assignment) -> Result:
        tries.append(assignment.job.attempt)
        await release.wait()
        return Done()

    worker = world.worker(JobKind("work", handle))
    job = await world.queue.put(OWNER, Order("work"))
    async with anyio.create_task_group() as group:
        group.start_soon(worker.step)
        with anyio.fail_after(5):
            while not tries:
                await anyio.lowlevel.checkpoint()
        world.clock.jump(jump.total_seconds())
        await worker.step()
        release.set()

    assert tries == [1]
    assert (await world.queue.get(OWNER, job.id)).state is JobState.DONE


@pytest.mark.anyio
async def test_a_job_for_later_keeps_its_time_when_the_clock_is_set_back(world: World) -> None:
    worker = world.worker(JobKind("work", done))
    at = world.clock.now() + timedelta(days=3)
    job = await world.queue.put(OWNER, Order("work", run_at=at))
    world.clock.jump(days=-1)
    await settle(worker)

    assert (await world.queue.get(OWNER, job.id)).run_at == at
    assert at.tzinfo is UTC
