"""Work whose holder is gone, or only thought to be gone, goes on with somebody else, and with nobody twice."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from hermes.bus.filter import Filter
from hermes.bus.subscription import Subscriber, Subscription
from hermes.domain.event import Event
from hermes.domain.job import JobState
from hermes.domain.principal import Principal
from hermes.domain.protocols import Tx
from hermes.jobs.kind import Assignment, Done, JobKind, Result, Retry
from hermes.jobs.queue import Order
from hermes.jobs.worker import Terms
from hermes.testing.world import World, open_world

OWNER = Principal.owner()
LEASE = timedelta(seconds=30)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with open_world("memory://", tmp_path) as opened:
        yield opened


def subscriber(world: World, seen: list[str], *, is_alone: bool) -> Subscriber:
    def see(_tx: Tx, event: Event) -> None:
        seen.append(event.id)

    subscription = Subscription("witness", see, Filter(types=("test.happened",)))
    return Subscriber(subscription, world.store, world.doorbell, world.clock, lease=LEASE, is_alone=is_alone)


@pytest.mark.anyio
async def test_whoever_is_alone_with_a_file_reads_on_at_once_after_a_crash(world: World) -> None:
    first, second = world.event(), world.event()
    seen: list[str] = []
    await world.bus.publish(Principal.system("test"), first)
    killed = subscriber(world, seen, is_alone=True)
    assert await killed.deliver()

    await world.bus.publish(Principal.system("test"), second)
    assert await subscriber(world, seen, is_alone=True).deliver()

    assert seen == [first.id, second.id]


@pytest.mark.anyio
async def test_where_others_may_read_a_subscription_waits_for_the_lease(world: World) -> None:
    seen: list[str] = []
    await world.bus.publish(Principal.system("test"), world.event())
    assert await subscriber(world, [], is_alone=False).deliver()
    await world.bus.publish(Principal.system("test"), world.event())
    heir = subscriber(world, seen, is_alone=False)

    assert not await heir.deliver()
    world.clock.advance(LEASE.total_seconds() + 1)
    assert await heir.deliver()

    assert len(seen) == 1


@pytest.mark.anyio
async def test_a_subscriber_that_stops_in_order_leaves_its_place_to_the_next(world: World) -> None:
    seen: list[str] = []
    async with anyio.create_task_group() as group:
        running = subscriber(world, seen, is_alone=False)
        group.start_soon(running.run)
        await world.bus.publish(Principal.system("test"), world.event())
        with world.doorbell.listen("events") as bell, anyio.fail_after(5):
            while not seen:
                await bell.wait(0.01)
        group.cancel_scope.cancel()
    await world.bus.publish(Principal.system("test"), world.event())

    assert await subscriber(world, seen, is_alone=False).deliver()
    assert len(seen) == 2


@pytest.mark.anyio
async def test_a_worker_that_gets_a_job_it_had_lost_stops_the_old_try_first(world: World) -> None:
    at_work: list[int] = []
    most = 0
    release = anyio.Event()

    async def handle(assignment: Assignment) -> Result:
        nonlocal most
        at_work.append(assignment.job.fence)
        most = max(most, len(at_work))
        try:
            await release.wait()
        finally:
            at_work.remove(assignment.job.fence)
        return Done({"fence": assignment.job.fence})

    kind = JobKind("slow", handle, retry=Retry(first=timedelta(milliseconds=1)))
    slow = world.worker(kind, terms=Terms(lease=LEASE))
    quick = world.worker(JobKind("slow", handle, retry=kind.retry), terms=Terms(lease=LEASE))
    job = await world.queue.put(OWNER, Order("slow"))
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(slow.step)
            while not at_work:
                await anyio.lowlevel.checkpoint()
            world.clock.advance(LEASE.total_seconds() + 1)
            # The other one takes the job away, but the first one is again the one to get it.
            await quick._end_overdue()
            world.clock.advance(1)
            group.start_soon(slow.step)
            while at_work != [2]:
                assert len(at_work) < 2
                await anyio.lowlevel.checkpoint()
            release.set()

    done = await world.queue.get(OWNER, job.id)
    assert done.state is JobState.DONE
    assert done.result == {"fence": 2}
    assert most == 1
    assert not slow._held
