"""What a worker promises about handlers of every kind, whatever is under it."""

from datetime import datetime, timedelta
from itertools import pairwise

import anyio

from hermes.domain.errors import Conflict, LimitReached, Misconfigured, Unavailable
from hermes.domain.job import Job, JobId, JobState
from hermes.domain.principal import Principal
from hermes.domain.protocols import Tx
from hermes.jobs.kind import Again, Assignment, Done, Failed, JobKind, Result, Retry
from hermes.jobs.queue import Order
from hermes.jobs.worker import Terms, Worker
from hermes.store import event as events
from hermes.store import job as jobs
from hermes.testing.contracts.jobs import claim
from hermes.testing.world import SYSTEM, World, tenants

OWNER = Principal.owner()
QUICK = Retry(attempts=3, first=timedelta(seconds=10), factor=2.0, jitter=0.0)


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
        assert job.run_at is not None
        assert job.run_at >= world.clock.now() + timedelta(seconds=500)

    async def test_whatever_a_handler_does_its_worker_goes_on(self, world: World) -> None:
        """One odd job is that job's failure, and no other's."""
        odd = "half a character \udcff and a NUL \x00"
        answers: list[object] = [
            Done({"x": object()}),  # type: ignore[dict-item] # that is the point
            Done({"x": odd}),
            Failed(odd),
            Again(odd),
            Again("later", timedelta.max),
            None,
            ValueError(odd),
            Unavailable(odd, retry_after=float("inf")),
            Unavailable("odd", retry_after=float("nan")),
            TimeoutError("the target's own"),
            Done({}, work=lambda _tx: (_ for _ in ()).throw(LimitReached("quota"))),
        ]

        async def handle(assignment: Assignment) -> Result:
            answer = answers[int(str(assignment.job.payload["n"]))]
            if isinstance(answer, Exception):
                raise answer
            return answer  # type: ignore[return-value] # that is the point

        worker = world.worker(JobKind("test", handle, retry=Retry(attempts=1)), terms=Terms(slots=100))
        for number in range(len(answers)):
            await world.queue.put(OWNER, Order("test", {"n": number}))
        with anyio.fail_after(20):
            await worker.step()
        found = await world.queue.find(OWNER)
        assert {job.state for job in found} == {JobState.DEAD}
        assert all(job.error for job in found)
        assert any("the target's own" in (job.error or "") for job in found)

    async def test_a_cancellation_that_was_answered_holds_also_when_the_job_fails_by_itself(self, world: World) -> None:
        """It is not tried again, and everybody hears that it was cancelled."""
        put = await world.queue.put(OWNER, Order("test"))

        async def handle(_assignment: Assignment) -> Result:
            await world.queue.cancel(OWNER, put.id)
            raise ValueError("broken")

        worker = world.worker(JobKind("test", handle, retry=QUICK))
        await worker.step()
        assert (await world.queue.get(OWNER, put.id)).state is JobState.CANCELLED
        assert await types(world) == ["job.cancelled"]

    async def test_two_tenants_may_call_a_job_the_same(self, world: World) -> None:
        """Neither stops the other's."""
        owners = tenants("one", "two")
        both, seen = anyio.Event(), []

        async def handle(assignment: Assignment) -> Result:
            seen.append(assignment.job.principal.tenant)
            if len(seen) == 2:
                both.set()
            await both.wait()
            return Done()

        for owner in owners:
            same = Job(JobId("same"), "test", owner)
            await world.store.write(lambda tx, o=owner, j=same: jobs.put(tx, o, j))  # type: ignore[misc]
        with anyio.fail_after(10):
            await world.worker(JobKind("test", handle)).step()
        assert {(await world.queue.get(owner, JobId("same"))).state for owner in owners} == {JobState.DONE}

    async def test_being_stopped_by_a_shutdown_is_no_attempt(self, world: World) -> None:
        """However often it happens."""

        async def handle(_assignment: Assignment) -> Result:
            started.set()
            await anyio.sleep(30)
            return Done()

        put = await world.queue.put(OWNER, Order("test"))
        for _ in range(4):
            started = anyio.Event()
            async with anyio.create_task_group() as group:
                group.start_soon(world.worker(JobKind("test", handle, retry=QUICK)).run)
                with anyio.fail_after(10):
                    await started.wait()
                group.cancel_scope.cancel()
        job = await world.queue.get(OWNER, put.id)
        assert (job.state, job.attempt) == (JobState.QUEUED, 0)

    async def test_a_long_wait_survives_a_new_worker(self, world: World) -> None:
        """Only what the rows prove to be left by a wrong clock is brought near."""

        async def handle(_assignment: Assignment) -> Result:
            return Again("tomorrow", timedelta(hours=12))

        job = await self.run_one(world, JobKind("test", handle, retry=QUICK))
        async with anyio.create_task_group() as group:
            group.start_soon(world.worker(JobKind("test", handle, retry=QUICK)).run)
            with world.doorbell.listen("jobs") as bell:
                await bell.wait(0.3)
            group.cancel_scope.cancel()
        assert (await world.queue.get(OWNER, job.id)).run_at == job.run_at

    async def test_jobs_of_an_unknown_kind_do_not_keep_others_from_being_taken_over(self, world: World) -> None:
        """However many there are."""
        for _ in range(120):
            await world.queue.put(OWNER, Order("gone"))
        await world.store.write(
            lambda tx: jobs.claim(tx, SYSTEM, worker="dead", kinds=["gone"], limit=200, lease_micros=1)
        )
        put = await world.queue.put(OWNER, Order("test"))
        world.clock.advance(1)
        await claim(world, worker="dead")

        async def handle(_assignment: Assignment) -> Result:
            return Done()

        world.clock.advance(minutes=5)
        worker = world.worker(JobKind("test", handle, retry=Retry(first=timedelta(0))))
        await worker.step()
        await worker.step()
        assert (await world.queue.get(OWNER, put.id)).state is JobState.DONE

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


async def types(world: World) -> list[str]:
    """Return the types of all events in their order."""
    return [event.type for event in await world.store.read(lambda tx: events.after(tx, SYSTEM, 0, limit=1000))]
