"""What jobs and schedules promise, whatever is under them."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import anyio

from hermes.domain.clock import Micros, to_micros
from hermes.domain.errors import Conflict, LeaseLost, Misconfigured, NotFound, Unavailable
from hermes.domain.job import Job, JobId, JobState
from hermes.domain.principal import Principal
from hermes.domain.protocols import Tx
from hermes.jobs.kind import Assignment, Done, Failed, JobKind, Result, Retry
from hermes.jobs.queue import Order
from hermes.jobs.worker import Terms, Worker
from hermes.store import event as events
from hermes.store import job as jobs
from hermes.store.job import Settlement
from hermes.testing.contracts.asserting import raises
from hermes.testing.world import SYSTEM, World, tenants

OWNER = Principal.owner()
LEASE = 30_000_000
QUICK = Retry(attempts=3, first=timedelta(seconds=10), factor=2.0, jitter=0.0)


class QueueContract:
    """Putting, claiming and settling, step by step."""

    async def test_a_job_comes_back_as_it_was_put(self, world: World) -> None:
        """Nothing is lost on the way through the database."""
        run_at = world.clock.now() + timedelta(minutes=1)
        order = Order(
            "test",
            {"text": "ü☕", "n": [1, None]},
            dedupe_key="k",
            lane="l",
            priority=7,
            run_at=run_at,
            deadline=run_at + timedelta(hours=1),
            cause="c",
        )
        job = await world.queue.put(OWNER, order)
        assert await world.queue.get(OWNER, job.id) == job
        assert (job.payload, job.priority, job.run_at, job.principal) == (order.payload, 7, run_at, OWNER)

    async def test_a_known_dedupe_key_is_the_same_job(self, world: World) -> None:
        """For ever, also when it is done; other kinds and tenants have keys of their own."""
        first = await world.queue.put(OWNER, Order("test", dedupe_key="k"))
        (claimed,) = await claim(world)
        await settle(world, claimed, Settlement("done"))
        again = await world.queue.put(OWNER, Order("test", dedupe_key="k"))
        assert (again.id, again.state) == (first.id, JobState.DONE)
        other_kind = await world.queue.put(OWNER, Order("other", dedupe_key="k"))
        (stranger,) = tenants("elsewhere")
        other_tenant = await world.queue.put(stranger, Order("test", dedupe_key="k"))
        assert len({first.id, other_kind.id, other_tenant.id}) == 3

    async def test_only_what_is_due_is_claimed_the_most_urgent_first(self, world: World) -> None:
        """Then in the order of time."""
        later = world.clock.now() + timedelta(seconds=1)
        await world.queue.put(OWNER, Order("test", {"n": 1}))
        await world.queue.put(OWNER, Order("test", {"n": 2}, priority=5))
        await world.queue.put(OWNER, Order("test", {"n": 3}, run_at=later))
        await world.queue.put(OWNER, Order("unknown", {"n": 4}))
        assert [job.payload["n"] for job in await claim(world)] == [2, 1]
        world.clock.advance(2)
        assert [job.payload["n"] for job in await claim(world)] == [3]

    async def test_a_job_is_claimed_once(self, world: World) -> None:
        """However many ask at the same time."""
        for _ in range(20):
            await world.queue.put(OWNER, Order("test"))
        taken: list[JobId] = []

        async def worker(name: str) -> None:
            while got := await claim(world, worker=name, limit=3):
                taken.extend(job.id for job in got)

        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(worker, f"w{number}")
        assert len(taken) == len(set(taken)) == 20

    async def test_a_lane_runs_one_at_a_time_in_the_order_of_putting(self, world: World) -> None:
        """Priority orders lanes, not what is inside one."""
        for number in range(4):
            await world.queue.put(OWNER, Order("test", {"n": number}, lane="l", priority=number))
        await world.queue.put(OWNER, Order("test", {"n": 9}, lane="other"))
        order: list[object] = []
        while got := await claim(world):
            assert len({job.lane for job in got}) == len(got)
            for job in got:
                order.append(job.payload["n"])
                await settle(world, job, Settlement("done"))
        assert sorted(order) == [0, 1, 2, 3, 9]  # type: ignore[type-var] # numbers
        assert [n for n in order if n != 9] == [0, 1, 2, 3]

    async def test_a_job_that_waits_for_another_try_holds_its_lane(self, world: World) -> None:
        """Order is not given up for speed."""
        await world.queue.put(OWNER, Order("test", {"n": 0}, lane="l"))
        await world.queue.put(OWNER, Order("test", {"n": 1}, lane="l"))
        (first,) = await claim(world)
        await settle(world, first, Settlement("again", run_at=later(world, 60)))
        assert await claim(world) == []
        world.clock.advance(61)
        (again,) = await claim(world)
        assert again.payload["n"] == 0

    async def test_an_appointment_does_not_overtake_what_tries_again_in_its_lane(self, world: World) -> None:
        """It came due, but somebody of the lane is not done yet."""
        tomorrow = world.clock.now() + timedelta(days=1)
        await world.queue.put(OWNER, Order("test", {"n": 9}, lane="l", run_at=tomorrow))
        await world.queue.put(OWNER, Order("test", {"n": 0}, lane="l"))
        (first,) = await claim(world)
        await settle(world, first, Settlement("again", run_at=later(world, 2 * 86_400)))
        world.clock.advance(days=1, seconds=1)
        assert await claim(world) == []
        world.clock.advance(days=1)
        assert [job.payload["n"] for job in await claim(world)] == [0]

    async def test_what_is_put_into_a_lane_for_tomorrow_does_not_hold_up_today(self, world: World) -> None:
        """An appointment in a lane waits for its time, not in the way."""
        tomorrow = world.clock.now() + timedelta(days=1)
        await world.queue.put(OWNER, Order("test", {"n": 9}, lane="l", run_at=tomorrow))
        await world.queue.put(OWNER, Order("test", {"n": 1}, lane="l"))
        (today,) = await claim(world)
        await settle(world, today, Settlement("done"))
        assert today.payload["n"] == 1
        await world.queue.put(OWNER, Order("test", {"n": 2}, lane="l"))
        world.clock.advance(days=1, seconds=1)
        seen = []
        while got := await claim(world):
            assert len(got) == 1
            seen.append(got[0].payload["n"])
            await settle(world, got[0], Settlement("done"))
        assert sorted(seen) == [2, 9]  # type: ignore[type-var] # numbers

    async def test_cancelling_the_first_of_a_lane_lets_the_next_step_forward(self, world: World) -> None:
        """And cancelling a waiting one changes nothing for the others."""
        put = [await world.queue.put(OWNER, Order("test", {"n": n}, lane="l")) for n in range(3)]
        await world.queue.cancel(OWNER, put[1].id)
        await world.queue.cancel(OWNER, put[0].id)
        (next_one,) = await claim(world)
        assert next_one.id == put[2].id

    async def test_only_the_newest_fence_settles(self, world: World) -> None:
        """Whoever lost the lease changes nothing."""
        await world.queue.put(OWNER, Order("test"))
        (first,) = await claim(world, worker="slow")
        world.clock.advance(minutes=5)
        (late,) = await world.store.read(lambda tx: jobs.overdue(tx, SYSTEM, grace_micros=0, limit=9))
        await settle(world, late, Settlement("again", error="lost", run_at=later(world, 0)))
        (second,) = await claim(world, worker="quick")
        assert second.fence > first.fence
        await raises(LeaseLost, settle(world, first, Settlement("done", result={"by": "slow"})))
        await settle(world, second, Settlement("done", result={"by": "quick"}))
        assert (await world.queue.get(OWNER, second.id)).result == {"by": "quick"}

    async def test_settling_again_is_nothing(self, world: World) -> None:
        """As after a commit whose answer was lost."""
        await world.queue.put(OWNER, Order("test"))
        (job,) = await claim(world)
        assert await settle(world, job, Settlement("done"))
        assert not await settle(world, job, Settlement("done"))

    async def test_a_lease_is_prolonged_only_for_its_holder(self, world: World) -> None:
        """The others learn that they have lost it."""
        await world.queue.put(OWNER, Order("test"))
        (job,) = await claim(world)
        world.clock.advance(20)
        (kept,) = await world.store.write(lambda tx: jobs.renew(tx, SYSTEM, [job], lease_micros=LEASE))
        assert kept.lease_until is not None
        assert kept.lease_until > (job.lease_until or kept.lease_until)
        stale = replace(job, fence=job.fence - 1)
        assert await world.store.write(lambda tx: jobs.renew(tx, SYSTEM, [stale], lease_micros=LEASE)) == []

    async def test_dead_and_cancelled_jobs_can_be_retried_and_no_others(self, world: World) -> None:
        """With all their attempts before them again."""
        job = await world.queue.put(OWNER, Order("test"))
        await raises(Conflict, world.queue.retry(OWNER, job.id))
        (claimed,) = await claim(world)
        await settle(world, claimed, Settlement("dead", error="x"))
        again = await world.queue.retry(OWNER, job.id)
        assert (again.state, again.attempt, again.error) == (JobState.QUEUED, 0, None)
        (claimed,) = await claim(world)
        assert claimed.attempt == 1
        assert len(await world.queue.attempts(OWNER, job.id)) == 2

    async def test_finished_jobs_are_forgotten_and_dead_ones_are_not(self, world: World) -> None:
        """Somebody has to look at those first."""
        for outcome in ("done", "dead"):
            await world.queue.put(OWNER, Order("test", {"how": outcome}))
        for job in await claim(world):
            await settle(world, job, Settlement(str(job.payload["how"])))  # type: ignore[arg-type] # one of the two
        world.clock.advance(days=60)
        assert await world.store.write(lambda tx: jobs.prune(tx, SYSTEM, tx.now())) == 1
        assert [job.state for job in await world.queue.find(OWNER)] == [JobState.DEAD]

    async def test_a_job_of_another_tenant_looks_like_none(self, world: World) -> None:
        """Absent and foreign are the same."""
        job = await world.queue.put(OWNER, Order("test"))
        (stranger,) = tenants("elsewhere")
        for call in (world.queue.get, world.queue.cancel, world.queue.retry):
            foreign = await raises(NotFound, call(stranger, job.id))
            absent = await raises(NotFound, call(stranger, JobId("none")))
            assert str(foreign).replace(job.id, "") == str(absent).replace("none", "")


class WorkerContract:
    """What a worker does with handlers of every kind."""

    async def test_a_done_job_keeps_its_result_and_tells_everybody(self, world: World) -> None:
        """The work a handler hands over, the end and the fact that it ended are one transaction."""

        async def handle(assignment: Assignment) -> Result:
            event = world.event("test.made", data={"by": assignment.job.id})
            return Done({"n": 1}, work=lambda tx: events.append(tx, SYSTEM, event))

        job = await self.run_one(world, JobKind("test", handle))
        assert (job.state, job.result, job.attempt) == (JobState.DONE, {"n": 1}, 1)
        assert await types(world) == ["test.made", "job.done"]

    async def test_work_that_cannot_be_stored_is_a_failed_attempt(self, world: World) -> None:
        """Then nothing of it is there, and the job is tried again."""

        def work(tx: Tx) -> None:
            events.append(tx, SYSTEM, world.event("test.made"))
            raise Conflict("no")

        async def handle(_assignment: Assignment) -> Result:
            return Done({}, work=work)

        job = await self.run_one(world, JobKind("test", handle, retry=QUICK))
        assert (job.state, job.attempt) == (JobState.QUEUED, 1)
        assert "no" in (job.error or "")
        assert await types(world) == []

    async def test_a_failing_job_is_tried_again_with_growing_pauses_until_it_is_dead(self, world: World) -> None:
        """As often as its kind says."""
        tries: list[datetime] = []

        async def handle(_assignment: Assignment) -> Result:
            tries.append(world.clock.now())
            raise ValueError("broken")

        worker = world.worker(JobKind("test", handle, retry=QUICK))
        put = await world.queue.put(OWNER, Order("test"))
        for _ in range(100):
            await worker.step()
            world.clock.advance(1)
        job = await world.queue.get(OWNER, put.id)
        assert job.state is JobState.DEAD
        assert "broken" in (job.error or "")
        pauses = [b - a for a, b in pairwise(tries)]
        assert pauses == [timedelta(seconds=10), timedelta(seconds=20)]
        assert await types(world) == ["job.dead"]

    async def test_what_can_never_work_is_dead_at_once(self, world: World) -> None:
        """No attempts are wasted on it."""

        async def says(_assignment: Assignment) -> Result:
            return Failed("never")

        async def raises_it(_assignment: Assignment) -> Result:
            raise Misconfigured("never")

        for handle in (says, raises_it):
            job = await self.run_one(world, JobKind("test", handle))
            assert (job.state, job.attempt, job.error) == (JobState.DEAD, 1, "never")

    async def test_a_target_that_asks_for_time_gets_it(self, world: World) -> None:
        """`retry_after` is honoured when it is longer than the pause."""

        async def handle(_assignment: Assignment) -> Result:
            raise Unavailable("come back", retry_after=500)

        job = await self.run_one(world, JobKind("test", handle, retry=QUICK))
        assert job.run_at >= world.clock.now() + timedelta(seconds=500)

    async def test_a_job_that_takes_too_long_is_stopped_and_tried_again(self, world: World) -> None:
        """Every wait has a deadline."""

        async def handle(_assignment: Assignment) -> Result:
            await anyio.sleep(30)
            return Done()

        job = await self.run_one(world, JobKind("test", handle, retry=QUICK, timeout=timedelta(seconds=0.05)))
        assert (job.state, job.attempt) == (JobState.QUEUED, 1)

    async def test_a_job_past_its_deadline_is_dead_before_it_begins(self, world: World) -> None:
        """Nobody wants it any more."""

        async def handle(_assignment: Assignment) -> Result:
            return Done()

        worker = world.worker(JobKind("test", handle))
        put = await world.queue.put(OWNER, Order("test", deadline=world.clock.now() + timedelta(seconds=5)))
        world.clock.advance(6)
        await worker.step()
        assert (await world.queue.get(OWNER, put.id)).state is JobState.DEAD
        assert await types(world) == ["job.dead"]

    async def test_a_running_job_that_is_cancelled_stops(self, world: World) -> None:
        """Its handler is cancelled, and the job is, too."""
        started, ended = anyio.Event(), anyio.Event()

        async def handle(_assignment: Assignment) -> Result:
            started.set()
            try:
                await anyio.sleep(30)
            finally:
                ended.set()
            return Done()

        put = await world.queue.put(OWNER, Order("test"))
        async with anyio.create_task_group() as group:
            group.start_soon(world.worker(JobKind("test", handle)).run)
            with anyio.fail_after(10):
                await started.wait()
                await world.queue.cancel(OWNER, put.id)
                await ended.wait()
                await self.wait_for(world, put.id, JobState.CANCELLED)
            group.cancel_scope.cancel()
        assert await types(world) == ["job.cancelled"]

    async def test_a_worker_that_is_shut_down_gives_its_job_back(self, world: World) -> None:
        """The next one need not wait for the lease."""
        started = anyio.Event()

        async def handle(_assignment: Assignment) -> Result:
            started.set()
            await anyio.sleep(30)
            return Done()

        put = await world.queue.put(OWNER, Order("test"))
        async with anyio.create_task_group() as group:
            group.start_soon(world.worker(JobKind("test", handle)).run)
            with anyio.fail_after(10):
                await started.wait()
            group.cancel_scope.cancel()
        assert (await world.queue.get(OWNER, put.id)).state is JobState.QUEUED

    async def test_draining_ends_in_order(self, world: World) -> None:
        """What runs is finished, what waits stays."""
        started, go_on = anyio.Event(), anyio.Event()

        async def handle(_assignment: Assignment) -> Result:
            started.set()
            await go_on.wait()
            return Done()

        first = await world.queue.put(OWNER, Order("test"))
        second = await world.queue.put(OWNER, Order("test"))
        worker = world.worker(JobKind("test", handle), terms=Terms(slots=1))
        async with anyio.create_task_group() as group:
            group.start_soon(worker.run)
            with anyio.fail_after(10):
                await started.wait()
                worker.drain()
                go_on.set()
        assert (await world.queue.get(OWNER, first.id)).state is JobState.DONE
        assert (await world.queue.get(OWNER, second.id)).state is JobState.QUEUED

    async def test_a_lost_worker_s_job_is_taken_over(self, world: World) -> None:
        """After its lease, and not before."""

        async def handle(_assignment: Assignment) -> Result:
            return Done()

        worker = world.worker(JobKind("test", handle, retry=QUICK))
        put = await world.queue.put(OWNER, Order("test"))
        await claim(world, worker="gone")
        await worker.step()
        assert (await world.queue.get(OWNER, put.id)).state is JobState.RUNNING
        for _ in range(60):
            world.clock.advance(1)
            await worker.step()
        job = await world.queue.get(OWNER, put.id)
        assert (job.state, job.attempt) == (JobState.DONE, 2)

    async def test_the_only_worker_of_a_file_takes_over_at_once(self, world: World) -> None:
        """Nobody else can be alive."""

        async def handle(_assignment: Assignment) -> Result:
            return Done()

        put = await world.queue.put(OWNER, Order("test"))
        await claim(world, worker="dead before")
        quick = Retry(attempts=3, first=timedelta(0))
        async with anyio.create_task_group() as group:
            group.start_soon(world.worker(JobKind("test", handle, retry=quick), terms=Terms(is_alone=True)).run)
            with anyio.fail_after(10):
                await self.wait_for(world, put.id, JobState.DONE)
            group.cancel_scope.cancel()

    async def test_no_more_run_at_once_than_there_are_slots(self, world: World) -> None:
        """A bound."""
        running, most = 0, 0

        async def handle(_assignment: Assignment) -> Result:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await anyio.sleep(0.001)
            running -= 1
            return Done()

        put = [await world.queue.put(OWNER, Order("test")) for _ in range(12)]
        async with anyio.create_task_group() as group:
            group.start_soon(world.worker(JobKind("test", handle), terms=Terms(slots=3)).run)
            with anyio.fail_after(20):
                for job in put:
                    await self.wait_for(world, job.id, JobState.DONE)
            group.cancel_scope.cancel()
        assert most == 3

    async def run_one(self, world: World, kind: JobKind) -> Job:
        """Put one job of a kind, let a worker do it, and return how it stands."""
        worker: Worker = world.worker(kind)
        put = await world.queue.put(OWNER, Order(kind.name))
        assert await worker.step()
        return await world.queue.get(OWNER, put.id)

    async def wait_for(self, world: World, job_id: JobId, state: JobState) -> None:
        """Wait until a job is in a state; the caller sets the deadline."""
        with world.doorbell.listen("jobs") as bell:
            while (await world.queue.get(OWNER, job_id)).state is not state:
                await bell.wait(0.05)


async def claim(world: World, *, worker: str = "w", limit: int = 10) -> list[Job]:
    """Claim jobs of the kind `test`."""
    return await world.store.write(
        lambda tx: jobs.claim(tx, SYSTEM, worker=worker, kinds=["test"], limit=limit, lease_micros=LEASE)
    )


async def settle(world: World, job: Job, settlement: Settlement) -> bool:
    """Settle an attempt."""
    return await world.store.write(lambda tx: jobs.settle(tx, SYSTEM, job, settlement))


def later(world: World, seconds: float) -> Micros:
    """Return the moment so many seconds from now, as the database writes it."""
    return to_micros(world.clock.now() + timedelta(seconds=seconds))


async def types(world: World) -> list[str]:
    """Return the types of all events in their order."""
    return [event.type for event in await world.store.read(lambda tx: events.after(tx, SYSTEM, 0, limit=1000))]
