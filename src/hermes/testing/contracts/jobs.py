"""What the queue promises, step by step, whatever is under it."""

from dataclasses import replace
from datetime import timedelta

import anyio

from hermes.domain.clock import Micros, to_micros
from hermes.domain.errors import Conflict, LeaseLost, Misconfigured, NotFound
from hermes.domain.job import Job, JobId, JobState
from hermes.domain.principal import Principal
from hermes.jobs.kind import Retry
from hermes.jobs.queue import Order
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

    async def test_a_name_that_one_engine_could_not_keep_is_refused_by_all(self, world: World) -> None:
        """So that everything can be moved from one to the other."""
        long = "".join(chr(0x4E00 + n * 7 % 20_000) for n in range(2000))
        for order in (
            Order("test", dedupe_key=long),
            Order("test", lane=long),
            Order(long),
            Order("test", lane="a\x00b"),
            Order("test", lane="\ud800"),
        ):
            await raises(Misconfigured, world.queue.put(OWNER, order))
        await world.queue.put(OWNER, Order("k" * 512, lane="l" * 512, dedupe_key="d" * 512))

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

    async def test_one_job_can_be_taken_by_name_when_its_lane_is_free(self, world: World) -> None:
        """What is due before it in other lanes waits; what is in its own lane goes first."""
        await world.queue.put(OWNER, Order("test", {"n": 0}))
        first = await world.queue.put(OWNER, Order("test", {"n": 1}, lane="l"))
        second = await world.queue.put(OWNER, Order("test", {"n": 2}, lane="l"))
        taken = await take(world, first)
        assert taken is not None
        assert (taken.id, taken.state, taken.attempt) == (first.id, JobState.RUNNING, 1)
        assert await take(world, first) is None
        assert await take(world, second) is None
        busy = await world.store.read(lambda tx: jobs.in_lane(tx, OWNER, "l"))
        assert busy is not None
        assert (busy[0].id, busy[1]) == (first.id, "by name")
        await settle(world, taken, Settlement("done"))
        assert await world.store.read(lambda tx: jobs.in_lane(tx, OWNER, "l")) is None
        assert await take(world, second) is not None

    async def test_a_clock_that_lags_a_little_does_not_turn_a_lane_around(self, world: World) -> None:
        """As when two processes read it before it was their turn."""
        for number in range(4):
            await world.queue.put(OWNER, Order("test", {"n": number}, lane="l"))
            world.clock.jump(-0.001)
        world.clock.advance(1)
        order = []
        while got := await claim(world):
            (job,) = got
            order.append(job.payload["n"])
            await settle(world, job, Settlement("done"))
        assert order == [0, 1, 2, 3]

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
        (late,) = await world.store.read(lambda tx: jobs.overdue(tx, SYSTEM, kinds=["test"], limit=9))
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


async def claim(world: World, *, worker: str = "w", limit: int = 10) -> list[Job]:
    """Claim jobs of the kind `test`."""
    return await world.store.write(
        lambda tx: jobs.claim(tx, SYSTEM, worker=worker, kinds=["test"], limit=limit, lease_micros=LEASE)
    )


async def settle(world: World, job: Job, settlement: Settlement) -> Settlement | None:
    """Settle an attempt."""
    return await world.store.write(lambda tx: jobs.settle(tx, SYSTEM, job, settlement))


def later(world: World, seconds: float) -> Micros:
    """Return the moment so many seconds from now, as the database writes it."""
    return to_micros(world.clock.now() + timedelta(seconds=seconds))


async def take(world: World, job: Job) -> Job | None:
    """Take one job by name."""
    return await world.store.write(lambda tx: jobs.take(tx, SYSTEM, job, worker="by name", lease_micros=LEASE))
