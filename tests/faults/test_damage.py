"""A database file that is no longer what it was: a clear error, or harmless; never something else in silence."""

import hashlib
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import children
import pytest

from hermes.app import App, open_app
from hermes.config import load
from hermes.domain.clock import SystemClock
from hermes.domain.errors import Damaged, HermesError, Misconfigured
from hermes.domain.event import Event, EventId, Stream
from hermes.store import backup as backups
from hermes.store import event as events
from hermes.store.database import Place, engine_for, open_database
from hermes.testing.world import SYSTEM

PAGE = 4096


def event(number: int) -> Event:
    at = datetime(2027, 1, 1, tzinfo=UTC)
    data = {"number": number, "digest": hashlib.sha256(str(number).encode()).hexdigest()}
    return Event(EventId(f"event-{number}"), Stream("s"), "test.happened", "test", SYSTEM.tenant, at, data)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with 400 events, a backup of them, and nothing in the write-ahead log."""
    import anyio

    home = tmp_path_factory.mktemp("whole")

    async def fill() -> None:
        async with open_app(load(home=home, environ={})) as app:
            await app.store.write(lambda tx: [events.append(tx, SYSTEM, event(n)) for n in range(400)])
            await app.store.backup(home / "good.hermes-backup")

    anyio.run(fill)
    return home


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "home"))


async def served(home: Path) -> list[Event]:
    """Open, check as a server does, and read everything there is."""
    async with open_app(load(home=home, environ={})) as app:
        await begin(app)
        return await app.store.read(lambda tx: events.of_stream(tx, SYSTEM, Stream("s"), limit=10_000))


async def attempted(home: Path) -> tuple[list[Event], HermesError | None]:
    try:
        return await served(home), None
    except HermesError as error:
        return [], error


def put_back(file: Path, data: bytes) -> None:
    for leftover in file.parent.glob("state.db*"):
        leftover.unlink()
    file.write_bytes(data)


async def begin(app: App) -> None:
    await app._check(after_a_crash=True)


def header_destroyed(file: Path, chance: random.Random) -> None:
    with file.open("r+b") as out:
        out.write(b"\0" * 100)


def truncated(file: Path, chance: random.Random) -> None:
    with file.open("r+b") as out:
        out.truncate(chance.randrange(1, file.stat().st_size))


def page_overwritten(file: Path, chance: random.Random) -> None:
    with file.open("r+b") as out:
        out.seek(chance.randrange(1, file.stat().st_size // PAGE) * PAGE)
        out.write(chance.randbytes(PAGE))


def page_zeroed(file: Path, chance: random.Random) -> None:
    with file.open("r+b") as out:
        out.seek(chance.randrange(1, file.stat().st_size // PAGE) * PAGE)
        out.write(bytes(PAGE))


def bytes_overwritten(file: Path, chance: random.Random) -> None:
    with file.open("r+b") as out:
        for _ in range(4):
            out.seek(chance.randrange(file.stat().st_size - 8))
            out.write(chance.randbytes(8))


def bit_flipped(file: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


IN_PLACES = [(bytes_overwritten, 4), (bit_flipped, 1)]


@pytest.mark.anyio
@pytest.mark.parametrize("damage", [header_destroyed, truncated, page_overwritten, page_zeroed])
async def test_a_file_that_lost_pages_is_refused_by_a_clear_error_or_serves_what_was_stored(
    home: Path, damage: Callable[[Path, random.Random], None]
) -> None:
    found, wrong = await campaign(home, damage)

    assert found["refused"]
    assert wrong == []


@pytest.mark.anyio
@pytest.mark.parametrize(("damage", "places"), IN_PLACES)
async def test_a_change_inside_a_value_spoils_no_other_row(
    home: Path, damage: Callable[[Path, random.Random], None], places: int
) -> None:
    # SQLite keeps no checksums: a value that is still well-formed passes for what was stored.
    found, wrong = await campaign(home, damage)

    assert found["refused"]
    assert all(0 < count <= places for count in wrong)


async def campaign(home: Path, damage: Callable[[Path, random.Random], None]) -> tuple[Counter[str], list[int]]:
    """Damage the file again and again; return how it went, and how many rows were served wrongly each time."""
    file, chance = home / "state.db", random.Random(11)
    sound = file.read_bytes()
    wanted = await served(home)
    found: Counter[str] = Counter()
    wrong = []
    for _ in range(25):
        put_back(file, sound)
        damage(file, chance)
        got, refusal = await attempted(home)
        if refusal is not None:
            found["refused" if isinstance(refusal, Damaged) else "not ours"] += 1
            assert "hermes db restore" in str(refusal) or not isinstance(refusal, Damaged)
        elif got == wanted:
            found["right"] += 1
        else:
            found["wrong"] += 1
            wrong.append(max(sum(one not in wanted for one in got), sum(one not in got for one in wanted)))
    print(damage.__name__, dict(found))
    return found, wrong


@pytest.mark.anyio
async def test_a_backup_puts_a_damaged_file_right(home: Path) -> None:
    wanted = await served(home)
    file = home / "state.db"
    header_destroyed(file, random.Random(1))
    with pytest.raises(HermesError):
        await served(home)

    place = Place(children.url_of(file), home=home)
    report = backups.restore(engine_for(place, SystemClock()), home / "good.hermes-backup", file, datetime.now(UTC))

    assert await served(home) == wanted
    assert report.set_aside is not None
    assert report.set_aside.read_bytes()[:100] == b"\0" * 100


@pytest.mark.anyio
async def test_a_write_ahead_log_that_is_cut_serves_a_committed_state(tmp_path: Path) -> None:
    program = (
        "import sys, anyio\nfrom hermes.domain.clock import SystemClock\n"
        "from hermes.store.database import Place, open_database\nfrom hermes.store import event as events\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\nfrom test_damage import event, SYSTEM\n"
        "async def main():\n"
        "    async with open_database(Place(sys.argv[1]), SystemClock()) as store:\n"
        "        for n in range(60):\n"
        "            await store.write(lambda tx: events.append(tx, SYSTEM, event(n)))\n"
        "        print('written', flush=True)\n"
        "        await anyio.to_thread.run_sync(sys.stdin.readline)\n"
        "anyio.run(main)\n"
    )
    path, chance = tmp_path / "state.db", random.Random(3)
    with children.running(program, children.url_of(path), first_line="written"):
        pass
    log = path.with_name("state.db-wal")
    file, frames = path.read_bytes(), log.read_bytes()
    lengths = set()
    for _ in range(20):
        path.write_bytes(file)
        log.write_bytes(frames[: chance.randrange(len(frames))])
        path.with_name("state.db-shm").unlink(missing_ok=True)
        async with open_database(Place(children.url_of(path)), SystemClock()) as store:
            got = await store.read(lambda tx: events.of_stream(tx, SYSTEM, Stream("s"), limit=100))
            assert await store.check(is_thorough=True) == []
        assert [one.seq for one in got] == list(range(1, len(got) + 1))
        assert [one.data for one in got] == [event(n).data for n in range(len(got))]
        lengths.add(len(got))
    assert len(lengths) > 1


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["wal", "delete"])
async def test_a_schema_from_the_future_is_refused_and_the_file_is_not_touched(home: Path, mode: str) -> None:
    file = home / "state.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
        db.commit()
        db.execute(f"PRAGMA journal_mode = {mode}")
    before = hashlib.sha256(file.read_bytes()).hexdigest()

    with pytest.raises(Misconfigured, match="9999"):
        await served(home)

    assert hashlib.sha256(file.read_bytes()).hexdigest() == before


@pytest.mark.anyio
async def test_the_database_of_another_program_is_refused_and_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    with closing(sqlite3.connect(file)) as db:
        db.execute("CREATE TABLE theirs (x)")
        db.commit()
    before = hashlib.sha256(file.read_bytes()).hexdigest()

    with pytest.raises(Misconfigured, match="theirs"):
        await served(tmp_path)

    assert hashlib.sha256(file.read_bytes()).hexdigest() == before
