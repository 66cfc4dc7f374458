"""A PostgreSQL server that is killed in mid-work, and two workers that share it."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import anyio
import campaign
import checker
import pytest
from faulty import Fault
from postgres import Server, fresh_database, running_server
from test_nth_word import opened, stored, write_together

from hermes.domain.clock import SystemClock
from hermes.domain.errors import Conflict, Unavailable
from hermes.domain.event import Event, EventId, Stream
from hermes.domain.job import JobState
from hermes.jobs.queue import Order, Queue
from hermes.store import event as events
from hermes.store.database import Place, open_database
from hermes.testing.crash import READY
from hermes.testing.world import SYSTEM

pytestmark = pytest.mark.slow
DEADLINE = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as started:
        yield started


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    with fresh_database(server, f"d{uuid.uuid4().hex[:12]}") as address:
        yield address


def event(number: int) -> Event:
    now = SystemClock().now()
    return Event(EventId(f"event-{number}"), Stream("s"), "test.happened", "test", SYSTEM.tenant, now)


@pytest.mark.anyio
async def test_writes_wait_for_a_server_that_is_killed_and_comes_back(server: Server, url: str) -> None:
    heard: dict[str, bool] = {}
    async with open_database(Place(url, seconds=20.0), SystemClock()) as store:

        async def write(number: int) -> None:
            one = event(number)
            try:
                await store.write(lambda tx: events.append(tx, SYSTEM, one))
            except Unavailable:
                heard[one.id] = False
            else:
                heard[one.id] = True

        async def write_many(first: int) -> None:
            for number in range(first, first + 60):
                await write(number)

        async with anyio.create_task_group() as group:
            for first in range(0, 800, 100):
                group.start_soon(write_many, first)
            for _ in range(3):
                await anyio.to_thread.run_sync(time.sleep, 0.15)
                server.kill()
                await anyio.to_thread.run_sync(server.start)
        found = await store.read(lambda tx: events.of_stream(tx, SYSTEM, Stream("s"), limit=10_000))

    acknowledged = {name for name, is_stored in heard.items() if is_stored}
    print(f"{len(acknowledged)} acknowledged, {len(heard) - len(acknowledged)} refused, 3 kills of the server")
    assert acknowledged <= {one.id for one in found}
    assert [one.seq for one in found] == list(range(1, len(found) + 1))
    assert len(heard) == 480
    assert acknowledged


@pytest.mark.anyio
async def test_a_server_that_stays_away_is_given_up_within_the_deadline(server: Server, url: str) -> None:
    async with open_database(Place(url, seconds=1.5), SystemClock()) as store:
        server.kill()
        began = time.monotonic()
        try:
            with pytest.raises(Unavailable):
                await store.write(lambda tx: events.append(tx, SYSTEM, event(1)))
            with pytest.raises(Unavailable):
                await store.read(lambda tx: events.last_position(tx, SYSTEM))
        finally:
            took = time.monotonic() - began
            server.start()
        stored = await store.write(lambda tx: events.append(tx, SYSTEM, event(2)))

    assert took < 10 * 1.5
    assert stored.seq == 1


@pytest.mark.anyio
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("writers", [1, 6])
async def test_a_connection_that_is_lost_at_any_word_loses_and_doubles_nothing(
    url: str, writers: int, is_after: bool
) -> None:
    import psycopg

    def lost() -> Exception:
        return psycopg.OperationalError("made up: the server closed the connection")

    fault = Fault(lost, is_after=is_after, is_cutting=True)
    fired = set()
    async with opened(Place(url, seconds=20.0), fault) as store:
        for nth in range(1, 6 * writers + 6):
            fault.arm(nth)
            heard = await write_together(store, range(nth * 100, nth * 100 + writers))
            fault.arm(0)
            fired.add(fault.fired_at)
            assert set(heard.values()) == {None}
        found = await stored(store)

    assert len(found) == writers * (6 * writers + 5)
    assert [one.seq for one in found] == list(range(1, len(found) + 1))
    assert {"begin", "insert", "commit"} <= fired


@pytest.mark.anyio
async def test_whoever_cannot_be_told_whether_it_was_done_hears_just_that(url: str) -> None:
    import psycopg

    def lost() -> Exception:
        return psycopg.OperationalError("made up: the server closed the connection")

    fault = Fault(lost, is_after=True, is_cutting=True)
    fault.only = "commit"
    async with opened(Place(url, seconds=20.0), fault) as store:
        queue = Queue(store, SystemClock())
        job = await queue.put(SYSTEM, Order("work"))
        fault.arm(1)
        # Done again it is a Conflict, since it is cancelled already: but it was this very call that cancelled it.
        with pytest.raises(Unavailable, match="lost"):
            await queue.cancel(SYSTEM, job.id)
        with pytest.raises(Conflict):
            await queue.cancel(SYSTEM, job.id)
        assert (await queue.get(SYSTEM, job.id)).state is JobState.CANCELLED


def start_victim(folder: Path, url: str) -> "subprocess.Popen[bytes]":
    words = [sys.executable, str(campaign.HERE / "victim.py"), "--folder", str(folder), "--url", url]
    process = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == READY.encode()
    return process


def end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate()


@pytest.mark.timeout(120)
def test_victims_and_their_server_are_killed_and_nothing_is_lost(server: Server, url: str, tmp_path: Path) -> None:
    campaign.crashes(tmp_path, "--url", url).kill_at("job.settled", 5)
    run = campaign.crashes(tmp_path, "--url", url, longest=0.8)
    slowest = 0.0
    for _ in range(3):
        run.kill_at_random()
        victim = start_victim(tmp_path, url)
        try:
            time.sleep(run.pause(0.5))
            server.kill()
            slowest = max(slowest, server.start())
            time.sleep(run.pause(1.5))
            assert victim.poll() is None, "the victim did not survive its server"
        finally:
            end(victim)
    print(f"3 kills of the server, slowest start {slowest:.2f} s")

    campaign.judge(run, tmp_path, url)


@pytest.mark.timeout(120)
def test_two_workers_share_a_database_and_neither_a_kill_nor_a_pause_doubles_work(url: str, tmp_path: Path) -> None:
    first, second = start_victim(tmp_path, url), start_victim(tmp_path, url)
    run = campaign.crashes(tmp_path, "--url", url)
    try:
        for _ in range(3):
            # Longer than the lease of one second: the other one takes over, and the paused one is fenced off.
            os.kill(first.pid, signal.SIGSTOP)
            time.sleep(1.6)
            os.kill(first.pid, signal.SIGCONT)
            time.sleep(run.pause(0.6))
            end(second)
            second = start_victim(tmp_path, url)
        assert first.poll() is None
    finally:
        end(first)
        end(second)
    run.rest()

    state = checker.look(tmp_path, url)
    # A handler that is stopped in the middle of its work goes on with it for a moment, before it hears that it lost the
    # lease: outside it may overlap with its successor, and only the key keeps the effect single.
    complaints = [
        one for rule in checker.RULES if rule is not checker.lanes_do_not_overlap_outside for one in rule(state)
    ]
    workers = {row["worker"] for row in state.attempts}
    print(f"{len(workers)} workers, {len(state.acknowledged)} acknowledged; {checker.figures(complaints)}")
    assert not complaints, complaints[:20]
    assert len(workers) > 1
    assert any(row["error"] == "its worker was lost" for row in state.attempts)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_a_server_survives_three_hundred_kills_of_its_victims_and_thirty_of_its_own(
    server: Server, url: str, tmp_path: Path
) -> None:
    run = campaign.crashes(tmp_path, "--url", url, longest=0.8)
    for number in range(300):
        if number % 10 == 9:
            server.kill()
            server.start()
        if number % 3:
            run.kill_at_random()
        else:
            run.kill_at(campaign.PLACES[number // 3 % len(campaign.PLACES)], nth=1 + number % 3)

    campaign.judge(run, tmp_path, url)
