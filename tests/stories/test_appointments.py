"""Appointments: a schedule makes a job, its handler publishes an event, a durable subscriber sees it once."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio
import pytest

from hermes.bus.filter import Filter
from hermes.bus.subscription import REDELIVER, Subscription
from hermes.domain.event import Event
from hermes.domain.job import JobState
from hermes.domain.protocols import Tx
from hermes.domain.schedule import Missed
from hermes.jobs.kind import Again, Assignment, Done, JobKind, Result, Retry
from hermes.jobs.queue import Order
from hermes.testing.clock import FakeClock
from hermes.testing.story import OWNER, Story, story

BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = datetime(2027, 3, 27, 12, tzinfo=UTC), datetime(2027, 10, 30, 12, tzinfo=UTC)
RANG = Order("event.publish", {"type": "bell.rang"})


class Witness:
    """Remembers what it saw; fails at the first `failures` tries."""

    def __init__(self, failures: int = 0) -> None:
        self.seen: list[str] = []
        self.failures = failures

    def see(self, _tx: Tx, event: Event) -> None:
        if self.failures > 0:
            self.failures -= 1
            raise ValueError("not yet")
        self.seen.append(event.id)

    def subscription(self, attempts: int = 5) -> Subscription:
        return Subscription("witness", self.see, Filter(types=("bell.rang",), streams=("hub:>",)), attempts=attempts)


async def done(_assignment: Assignment) -> Result:
    return Done()


@pytest.mark.anyio
async def test_a_subscriber_sees_what_each_appointment_published_once(tmp_path: Path) -> None:
    witness = Witness()
    async with story(tmp_path, subscriptions=[witness.subscription()]) as told:
        await told.app.queue.add_schedule(OWNER, "bell", "0 * * * *", RANG)
        for _ in range(8):
            await told.advance(minutes=30)
        rung = await told.events("bell.rang")

        assert [event.at.minute for event in rung] == [0] * 4
        assert witness.seen == [event.id for event in rung]


@pytest.mark.anyio
@pytest.mark.parametrize("night", [SPRING, AUTUMN], ids=["spring", "autumn"])
@pytest.mark.parametrize("missed", ["skip", "once", "all"])
async def test_a_daily_appointment_is_kept_once_in_a_night_that_changes_the_clock(
    tmp_path: Path, night: datetime, missed: Missed
) -> None:
    async with story(tmp_path, clock=FakeClock(night)) as told:
        await told.app.queue.add_schedule(OWNER, "nightly", "30 2 * * *", RANG, zone="Europe/Berlin", missed=missed)
        for _ in range(144):
            await told.advance(minutes=30)
        days = [job.run_at.astimezone(BERLIN).date() for job in await told.jobs("event.publish")]

        assert [later - day for day, later in pairwise(days)] == [timedelta(days=1)] * 2


@pytest.mark.anyio
@pytest.mark.parametrize("night", [SPRING, AUTUMN], ids=["spring", "autumn"])
async def test_an_hourly_appointment_follows_the_real_hours_of_such_a_night(tmp_path: Path, night: datetime) -> None:
    async with story(tmp_path, clock=FakeClock(night)) as told:
        await told.app.queue.add_schedule(OWNER, "hourly", "0 * * * *", RANG, zone="Europe/Berlin", missed="all")
        for _ in range(24):
            await told.advance(hours=1)
        times = [job.run_at for job in await told.jobs("event.publish")]

        assert {second - first for first, second in pairwise(times)} == {timedelta(hours=1)}
        assert len(times) == 24


@pytest.mark.anyio
@pytest.mark.parametrize(("missed", "made"), [("skip", 0), ("once", 1), ("all", 5)])
async def test_what_was_missed_is_made_up_for_as_the_schedule_says(tmp_path: Path, missed: Missed, made: int) -> None:
    async with story(tmp_path) as told:
        await told.app.queue.add_schedule(OWNER, "bell", "0 * * * *", RANG, missed=missed)
        await told.advance(hours=5, minutes=30)
        assert len(await told.events("bell.rang")) == made

        await told.advance(minutes=30)
        assert len(await told.events("bell.rang")) == made + 1


@pytest.mark.anyio
async def test_an_event_nobody_can_handle_becomes_a_dead_job_that_can_be_retried(tmp_path: Path) -> None:
    witness = Witness(failures=2)
    async with story(tmp_path, subscriptions=[witness.subscription(attempts=1)]) as told:
        for _ in range(3):
            await told.app.queue.put(OWNER, RANG)
        await told.settle()
        rung = [event.id for event in await told.events("bell.rang")]
        dead = await told.jobs(REDELIVER)
        assert {job.state for job in dead} == {JobState.DEAD}
        assert [job.payload["event"] for job in dead] + witness.seen == rung

        for job in dead:
            await told.app.queue.retry(OWNER, job.id)
        await told.settle()

        assert sorted(witness.seen) == sorted(rung)
        assert {job.state for job in await told.jobs(REDELIVER)} == {JobState.DONE}


@pytest.mark.anyio
async def test_a_job_is_cancelled_while_it_runs(tmp_path: Path) -> None:
    started = anyio.Event()

    async def wait(_assignment: Assignment) -> Result:
        started.set()
        await anyio.sleep_forever()
        return Done()

    async with story(tmp_path, kinds=[JobKind("wait", wait)]) as told:
        job = await told.app.queue.put(OWNER, Order("wait"))
        async with anyio.create_task_group() as group:
            group.start_soon(told.app.worker.run)
            await started.wait()
            await told.app.queue.cancel(OWNER, job.id)
            await until_over(told, job.id)
            group.cancel_scope.cancel()

        assert (await told.app.queue.get(OWNER, job.id)).state is JobState.CANCELLED
        assert [event.subject for event in await told.events("job.cancelled")] == [job.id]


@pytest.mark.anyio
async def test_a_deadline_ends_a_job_that_waits_and_one_that_runs(tmp_path: Path) -> None:
    async def wait(_assignment: Assignment) -> Result:
        await anyio.sleep_forever()
        return Done()

    async with story(tmp_path, kinds=[JobKind("wait", wait), JobKind("quick", done)]) as told:
        now = told.clock.now()
        runs = await told.app.queue.put(OWNER, Order("wait", deadline=now + timedelta(seconds=0.05)))
        waits = await told.app.queue.put(
            OWNER, Order("quick", run_at=now + timedelta(hours=2), deadline=now + timedelta(hours=1))
        )
        await told.settle()
        assert (await told.app.queue.get(OWNER, runs.id)).state is JobState.DEAD

        await told.advance(hours=3)
        assert (await told.app.queue.get(OWNER, waits.id)).state is JobState.DEAD
        assert {event.subject for event in await told.events("job.dead")} == {runs.id, waits.id}


@pytest.mark.anyio
async def test_a_lane_keeps_its_order_over_retries_and_does_not_hold_up_another(tmp_path: Path) -> None:
    finished: list[tuple[str | None, object]] = []

    async def handle(assignment: Assignment) -> Result:
        job = assignment.job
        if job.payload["number"] == 1 and job.attempt < 3 and job.lane == "one":
            return Again("not yet")
        finished.append((job.lane, job.payload["number"]))
        return Done()

    retry = Retry(first=timedelta(minutes=1), jitter=0)
    async with story(tmp_path, kinds=[JobKind("work", handle, retry=retry)]) as told:
        for number in range(4):
            for lane in ("one", "two"):
                await told.app.queue.put(OWNER, Order("work", {"number": number}, lane=lane))
        await told.settle()
        assert [number for lane, number in finished if lane == "one"] == [0]
        assert [number for lane, number in finished if lane == "two"] == [0, 1, 2, 3]

        for _ in range(4):
            await told.advance(minutes=1)
        assert [number for lane, number in finished if lane == "one"] == [0, 1, 2, 3]


async def until_over(told: Story, job_id: str) -> None:
    with anyio.fail_after(5), told.app.doorbell.listen("events") as bell:
        while not any(job.state.is_over for job in await told.jobs() if job.id == job_id):
            await bell.wait(0.01)
