"""What schedules promise, whatever is under them."""

import anyio

from hermes.domain.errors import Conflict, Denied, NotFound
from hermes.domain.principal import Principal
from hermes.jobs.kind import Again, Assignment, JobKind, Result
from hermes.jobs.queue import Order
from hermes.store import event as events
from hermes.testing.contracts.asserting import raises
from hermes.testing.world import World, tenants

OWNER = Principal.owner()


class ScheduleContract:
    """Appointments."""

    async def test_a_due_time_makes_one_job(self, world: World) -> None:
        """Whoever looks, and however often."""
        await world.queue.add_schedule(OWNER, "tick", "every 10m", Order("nobody's", {"n": 1}))
        workers = [world.worker(JobKind("test", _nothing)) for _ in range(3)]
        for _ in range(3):
            world.clock.advance(minutes=10)
            async with anyio.create_task_group() as group:
                for worker in workers:
                    group.start_soon(worker.step)
        put = await world.queue.find(OWNER)
        assert len(put) == 3
        assert {job.payload["n"] for job in put} == {1}
        assert len({job.run_at for job in put}) == 3

    async def test_missed_times_are_made_up_for_as_the_policy_says(self, world: World) -> None:
        """Nobody looked for an hour: none, the last, or all of them."""
        for policy in ("skip", "once", "all"):
            await world.queue.add_schedule(OWNER, policy, "every 7m", Order(policy), missed=policy)
        world.clock.advance(hours=1)
        worker = world.worker(JobKind("test", _nothing))
        await worker.step()
        await worker.step()
        made = {policy: len(await world.queue.find(OWNER, kind=policy)) for policy in ("skip", "once", "all")}
        assert made == {"skip": 0, "once": 1, "all": 8}
        (schedule, *_) = await world.queue.find_schedules(OWNER)
        assert schedule.next_at is not None
        assert schedule.next_at > world.clock.now()

    async def test_once_is_once(self, world: World) -> None:
        """A moment comes due and the schedule has no next time."""
        await world.queue.add_schedule(OWNER, "alarm", "30m", Order("test"))
        worker = world.worker(JobKind("other", _nothing))
        for _ in range(8):
            world.clock.advance(minutes=10)
            await worker.step()
        assert len(await world.queue.find(OWNER)) == 1
        (schedule,) = await world.queue.find_schedules(OWNER)
        assert schedule.next_at is None

    async def test_a_paused_schedule_rests_and_nothing_is_made_up_for(self, world: World) -> None:
        """Resumed, it goes on from now."""
        await world.queue.add_schedule(OWNER, "tick", "every 10m", Order("test"), missed="all")
        await world.queue.pause_schedule(OWNER, "tick")
        worker = world.worker(JobKind("other", _nothing))
        world.clock.advance(hours=3)
        await worker.step()
        await world.queue.resume_schedule(OWNER, "tick")
        await worker.step()
        assert await world.queue.find(OWNER) == []
        world.clock.advance(minutes=10)
        await worker.step()
        assert len(await world.queue.find(OWNER)) == 1

    async def test_a_schedule_that_cannot_put_its_job_is_paused_and_keeps_no_other_up(self, world: World) -> None:
        """It says so by an event."""
        await world.queue.add_schedule(OWNER, "good", "every 10m", Order("test"))
        poison = await world.queue.add_schedule(OWNER, "poison", "every 5m", Order("test"))
        # As if it had been stored when longer names were allowed.
        await world.store.write(
            lambda tx: tx.execute("UPDATE schedules SET kind = ? WHERE id = ?", ("x" * 5000, poison.id))
        )
        worker = world.worker(JobKind("other", _nothing))
        for _ in range(3):
            world.clock.advance(minutes=10)
            await worker.step()
        assert len(await world.queue.find(OWNER, kind="test")) == 3
        paused = {s.name: s.is_paused for s in await world.queue.find_schedules(OWNER)}
        assert paused == {"good": False, "poison": True}
        told = await world.store.read(lambda tx: events.after(tx, OWNER, 0, limit=99))
        assert [event.data["name"] for event in told if event.type == "schedule.paused"] == ["poison"]

    async def test_what_is_over_cannot_be_resumed(self, world: World) -> None:
        """It would run a second time."""
        await world.queue.add_schedule(OWNER, "alarm", "30m", Order("test"))
        worker = world.worker(JobKind("other", _nothing))
        world.clock.advance(minutes=30)
        await worker.step()
        await raises(Conflict, world.queue.resume_schedule(OWNER, "alarm"))

    async def test_names_of_hermes_s_own_schedules_are_not_for_others(self, world: World) -> None:
        """Else nobody would keep house any more."""
        await raises(Denied, world.queue.add_schedule(OWNER, "hermes-housekeeping", "every 1h", Order("test")))

    async def test_a_name_is_taken_once_and_free_when_removed(self, world: World) -> None:
        """Names belong to a tenant."""
        (stranger,) = tenants("elsewhere")
        await world.queue.add_schedule(OWNER, "tick", "every 10m", Order("test"))
        await world.queue.add_schedule(stranger, "tick", "every 10m", Order("test"))
        await raises(Conflict, world.queue.add_schedule(OWNER, "tick", "every 5m", Order("test")))
        await world.queue.remove_schedule(OWNER, "tick")
        await world.queue.add_schedule(OWNER, "tick", "every 5m", Order("test"))
        await raises(NotFound, world.queue.remove_schedule(OWNER, "tock"))


async def _nothing(_assignment: Assignment) -> Result:
    return Again("nobody asked")
