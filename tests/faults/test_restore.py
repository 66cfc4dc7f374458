"""Backups and restores that are broken off, changed or cut short."""

import gzip
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import children
import pytest

from hermes.domain.clock import SystemClock
from hermes.domain.errors import HermesError, Misconfigured
from hermes.domain.event import Event, Stream
from hermes.store import backup as backups
from hermes.store import event as events
from hermes.store.database import Database, Place, engine_for, open_database
from hermes.testing.clock import FakeClock
from hermes.testing.world import SYSTEM

WRITE_UNTIL_KILLED = """
import sys, anyio
from hermes.domain.clock import SystemClock
from hermes.domain.event import Event, EventId, Stream
from hermes.domain.principal import LOCAL, Principal
from hermes.store import event as events
from hermes.store.database import Place, open_database
async def main():
    clock, me = SystemClock(), Principal.system("write")
    async with open_database(Place(sys.argv[1]), clock) as store:
        for number in range(int(sys.argv[2])):
            event = Event(EventId(clock.new_id()), Stream("s"), "test.happened", "t", LOCAL, clock.now(), {"n": number})
            await store.write(lambda tx: events.append(tx, me, event))
        print("written", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
anyio.run(main)
"""
RESTORE = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from hermes.domain.clock import SystemClock
from hermes.store import backup
from hermes.store.database import Place, engine_for
from hermes.testing.crash import Probe
place, clock = Place(sys.argv[1]), SystemClock()
backup.restore(engine_for(place, clock), Path(sys.argv[2]), place.path, clock.now(), probe=Probe(sys.argv[3]))
print("restored")
"""
BACK_UP = """
import sys, anyio
from pathlib import Path
from hermes.domain.clock import SystemClock
from hermes.store.database import Place, open_database
from hermes.testing.crash import Probe
async def main():
    async with open_database(Place(sys.argv[1]), SystemClock(), probe=Probe(sys.argv[3])) as store:
        await store.backup(Path(sys.argv[2]))
anyio.run(main)
"""


async def stored(place: Place) -> list[Event]:
    async with open_database(place, SystemClock()) as store:
        return await store.read(lambda tx: events.of_stream(tx, SYSTEM, Stream("s"), limit=10_000))


async def publish(store: Database, count: int) -> None:
    clock = FakeClock(seed=count)
    for _ in range(count):
        event = Event(clock.new_id(), Stream("s"), "test.happened", "t", SYSTEM.tenant, clock.now())  # type: ignore[arg-type]
        await store.write(lambda tx, e=event: events.append(tx, SYSTEM, e))  # type: ignore[misc]


@pytest.mark.anyio
@pytest.mark.parametrize("place_of_death", ["restore.filled", "restore.set_aside", "restore.placed"])
async def test_a_restore_that_is_killed_leaves_the_old_state_the_new_one_or_a_clear_error(
    tmp_path: Path, place_of_death: str
) -> None:
    path = tmp_path / "state.db"
    place = Place(children.url_of(path), home=tmp_path)
    async with open_database(place, SystemClock()) as store:
        await publish(store, 5)
        backup = (await store.backup()).path
    with children.running(WRITE_UNTIL_KILLED, place.url, "7", first_line="written"):
        pass  # Killed: what it wrote is in the write-ahead log only.

    assert children.run(RESTORE, place.url, str(backup), place_of_death).returncode == -9
    found = None
    with suppress(Misconfigured):
        found = len(await stored(place))
    assert found in {None, 5, 12}
    assert children.run(RESTORE, place.url, str(backup), "").stdout.strip() == "restored"

    assert len(await stored(place)) == 5
    assert 12 in [len(await stored(Place(children.url_of(one)))) for one in set_aside(path)]


def set_aside(path: Path) -> list[Path]:
    return [one for one in path.parent.glob(f"{path.name}.before-restore-*") if one.name.endswith("Z")]


@pytest.mark.anyio
async def test_a_backup_that_is_killed_leaves_no_backup(tmp_path: Path) -> None:
    place = Place(children.url_of(tmp_path / "state.db"))
    target = tmp_path / "one.hermes-backup"

    assert children.run(BACK_UP, place.url, str(target), "backup.written").returncode == -9
    assert not target.exists()
    assert children.run(BACK_UP, place.url, str(target), "").returncode == 0
    assert backups.inspect(target).rows >= 0


@pytest.mark.anyio
async def test_a_backup_made_under_load_restores_to_a_committed_state(tmp_path: Path) -> None:
    place = Place(children.url_of(tmp_path / "state.db"), home=tmp_path)
    with children.running(WRITE_UNTIL_KILLED, place.url, "1", first_line="written"):
        async with open_database(place, SystemClock()) as store:
            await publish(store, 300)
            report = await store.backup()
            await publish(store, 301)
    other = Place(children.url_of(tmp_path / "other" / "state.db"))
    backups.restore(engine_for(other, SystemClock()), report.path, other.path, datetime.now(UTC))

    found = await stored(other)

    assert [event.seq for event in found] == list(range(1, 302))
    assert found == (await stored(place))[:301]


def flipped(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))]


def changed_inside(data: bytes, chance: random.Random) -> bytes:
    return gzip.compress(flipped(gzip.decompress(data), chance))


@pytest.mark.anyio
@pytest.mark.parametrize("damage", [flipped, cut, changed_inside])
async def test_a_damaged_backup_is_refused_and_nothing_is_changed(
    tmp_path: Path, damage: Callable[[bytes, random.Random], bytes]
) -> None:
    path = tmp_path / "state.db"
    place = Place(children.url_of(path), home=tmp_path)
    async with open_database(place, SystemClock()) as store:
        await publish(store, 50)
        good = (await store.backup()).path
    before, whole = path.read_bytes(), good.read_bytes()
    rows = backups.inspect(good).rows
    chance = random.Random(7)
    for _ in range(60):
        bad = tmp_path / "bad.hermes-backup"
        bad.write_bytes(damage(whole, chance))
        try:
            report = backups.restore(engine_for(place, SystemClock()), bad, path, datetime.now(UTC))
        except HermesError:
            assert path.read_bytes() == before
        else:
            # A bit of the gzip header that means nothing; then every row is there.
            assert report.rows == rows
            shutil.copyfile(path, tmp_path / "copy.db")
            assert len(await stored(Place(children.url_of(tmp_path / "copy.db")))) == 50
            path.write_bytes(before)
