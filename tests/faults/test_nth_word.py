"""The database fails at the n-th word, for every n: survivors are stored once, and each caller hears the truth."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import children
import pytest
from faulty import Fault, FaultyEngine

from hermes.domain.clock import SystemClock
from hermes.domain.errors import HermesError, LimitReached, Unavailable
from hermes.domain.event import Event, EventId, Stream
from hermes.domain.protocols import Tx, no_probe
from hermes.store import event as events
from hermes.store import evolution
from hermes.store.database import Database, Place, engine_for
from hermes.store.sqlite import driver
from hermes.testing.world import SYSTEM

FULL, IOERR, BUSY, INTERRUPT = 13, 10, 5, 9
WRITERS = 6


def failing(code: int) -> Callable[[], Exception]:
    def make() -> Exception:
        error: Exception = driver.OperationalError(f"made up, with code {code}")
        error.sqlite_errorcode = code  # type: ignore[attr-defined]
        return error

    return make


@asynccontextmanager
async def opened(place: Place, fault: Fault) -> AsyncIterator[Database]:
    engine = FaultyEngine(engine_for(place, SystemClock()), fault)
    connection = evolution.open_current(engine, place.path, no_probe, lambda _connection: None)
    store = Database(place, engine, connection)
    try:
        yield store
    finally:
        await store.aclose()


def event(number: int) -> Event:
    now = SystemClock().now()
    return Event(EventId(f"event-{number}"), Stream("s"), "test.happened", "test", SYSTEM.tenant, now)


async def write_together(store: Database, numbers: range) -> dict[str, HermesError | None]:
    """Hand over some events in one turn, so that they make one batch; return what each caller heard."""
    heard: dict[str, HermesError | None] = {}

    async def write(one: Event) -> None:
        try:
            await store.write(lambda tx: events.append(tx, SYSTEM, one))
        except HermesError as error:
            heard[one.id] = error
        else:
            heard[one.id] = None

    async with anyio.create_task_group() as group:
        for number in numbers:
            group.start_soon(write, event(number))
    return heard


async def stored(store: Database) -> list[Event]:
    return await store.read(lambda tx: events.of_stream(tx, SYSTEM, Stream("s"), limit=1000))


@pytest.mark.anyio
@pytest.mark.parametrize("writers", [1, WRITERS])
@pytest.mark.parametrize("is_tearing", [False, True], ids=["standing", "torn"])
@pytest.mark.parametrize("code", [FULL, IOERR, BUSY, INTERRUPT])
async def test_whoever_heard_of_success_is_stored_once_and_nobody_else(
    tmp_path: Path, code: int, is_tearing: bool, writers: int
) -> None:
    place = Place(children.url_of(tmp_path / "state.db"), synchronous="normal")
    fault = Fault(failing(code), is_tearing=is_tearing)
    fired = set()
    async with opened(place, fault) as store:
        for nth in range(1, 5 * writers + 4):
            fault.fired_at = None
            fault.arm(nth)
            heard = await write_together(store, range(nth * 100, nth * 100 + writers))
            fault.arm(0)
            fired.add(fault.fired_at)
            found = [one.id for one in await stored(store)]

            assert set(found) & heard.keys() == {name for name, error in heard.items() if error is None}
            assert all(isinstance(error, Unavailable) for error in heard.values() if error)
            assert sum(error is not None for error in heard.values()) <= (0 if code == BUSY else 1)
        everything = await stored(store)

    assert [one.seq for one in everything] == list(range(1, len(everything) + 1))
    assert {"begin", "commit", "insert"} <= fired


@pytest.mark.anyio
@pytest.mark.parametrize("writers", [1, WRITERS])
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_a_commit_whose_answer_is_lost_is_found_out_by_doing_it_again(
    tmp_path: Path, is_after: bool, writers: int
) -> None:
    place = Place(children.url_of(tmp_path / "state.db"), synchronous="normal")
    fault = Fault(failing(BUSY), is_after=is_after)
    fault.only = "commit"
    async with opened(place, fault) as store:
        fault.arm(1)
        heard = await write_together(store, range(writers))
        found = await stored(store)

    assert fault.fired_at == "commit"
    assert set(heard.values()) == {None}
    assert [one.seq for one in found] == list(range(1, writers + 1))


@pytest.mark.anyio
async def test_too_many_writers_are_refused_and_the_others_stored(tmp_path: Path) -> None:
    place = Place(children.url_of(tmp_path / "state.db"), queue_limit=20)
    async with opened(place, Fault(failing(BUSY))) as store:
        heard = await write_together(store, range(50))
        refused = {name for name, error in heard.items() if error is not None}
        found = {one.id for one in await stored(store)}
        again = await write_together(store, range(50, 60))

    assert refused
    assert all(isinstance(heard[name], LimitReached) for name in refused)
    assert found == heard.keys() - refused
    assert set(again.values()) == {None}


@pytest.mark.anyio
async def test_work_that_ends_the_program_ends_only_itself(tmp_path: Path) -> None:
    def leave(_tx: Tx) -> None:
        raise SystemExit(1)

    place = replace(Place(children.url_of(tmp_path / "state.db")), seconds=2.0)
    async with opened(place, Fault(failing(BUSY))) as store:
        with pytest.raises(RuntimeError, match="SystemExit"):
            await store.write(leave)
        assert set((await write_together(store, range(2))).values()) == {None}


@pytest.mark.anyio
async def test_a_file_that_another_process_holds_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    place = Place(children.url_of(tmp_path / "state.db"), busy_seconds=0.1, seconds=0.6)
    async with opened(place, Fault(failing(BUSY))) as store:
        await write_together(store, range(1))
        other = driver.connect(str(place.path), isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        heard = await write_together(store, range(1, 30))
        waited = time.monotonic() - began
        other.execute("ROLLBACK")
        other.close()
        freed = time.monotonic()
        later = await write_together(store, range(30, 32))
        lag = time.monotonic() - freed
        found = {one.id for one in await stored(store)}

    assert all(isinstance(error, Unavailable) for error in heard.values())
    assert waited < 10 * place.seconds
    assert set(later.values()) == {None}
    # The others had given up long ago; nobody waits for them.
    assert lag < 10 * place.seconds
    assert found == {"event-0", "event-30", "event-31"}
