"""Migrations: from every earlier state, as a whole or not at all, after a backup; and their end is the schema."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.domain.errors import Conflict, Misconfigured
from hermes.domain.protocols import no_probe
from hermes.store import backup, evolution
from hermes.store.database import Place, engine_for
from hermes.store.engine import Connection, Engine
from hermes.store.lock import FileLock, server_lock
from hermes.testing.clock import FakeClock
from hermes.testing.world import own_place

NEXT = """
from alembic import op
import sqlalchemy as sa
revision = "{number:04d}"
down_revision = "{before:04d}"
def upgrade():
    op.add_column("users", sa.Column("colour", sa.Text(), server_default="blue", nullable=False))
    {more}
"""
FUTURE = evolution.SCHEMA + 1


def keep_nothing(_connection: Connection) -> None:
    return


@pytest.fixture
async def place(database_url: str, tmp_path: Path) -> object:
    async with own_place(database_url, tmp_path) as own:
        yield own


@pytest.fixture
def engine(place: Place) -> Engine:
    return engine_for(place, FakeClock(), is_clock_forced=True)


def future(folder: Path, more: str = "pass") -> Path:
    """Return a folder with one migration more than ours."""
    target = folder / "migrations"
    shutil.copytree(evolution.MIGRATIONS, target, ignore=shutil.ignore_patterns("__pycache__"))
    text = NEXT.format(more=more, number=FUTURE, before=evolution.SCHEMA)
    (target / "versions" / f"v{FUTURE:04d}_colour.py").write_text(text)
    return target


def opened(engine: Engine, place: Place, **options: object) -> Connection:
    return evolution.open_current(engine, place.path, no_probe, keep_nothing, **options)  # type: ignore[arg-type]


def numbers() -> Iterator[int]:
    yield from range(1, evolution.SCHEMA + 1)


def test_the_schema_number_is_that_of_the_newest_migration() -> None:
    names = sorted(path.stem for path in (evolution.MIGRATIONS / "versions").glob("v*.py"))
    assert [int(name[1:5]) for name in names] == list(numbers())


@pytest.mark.anyio
async def test_the_end_of_the_migrations_is_the_schema_of_the_code(engine: Engine, place: Place) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    from hermes.store.schema import metadata

    connection = opened(engine, place)
    url, options = evolution._SQLALCHEMY[connection.dialect]
    alchemy = create_engine(url, creator=lambda: connection.raw, poolclass=StaticPool, **options)
    with alchemy.connect() as wrapped:
        context = MigrationContext.configure(wrapped, opts={"compare_type": True, "compare_server_default": True})
        differences = compare_metadata(context, metadata)
    connection.close()
    assert differences == []


@pytest.mark.anyio
@pytest.mark.parametrize("start", [0, *numbers()])
async def test_every_earlier_state_reaches_the_present_with_its_rows(
    engine: Engine, place: Place, tmp_path: Path, start: int
) -> None:
    if place.url.startswith("memory"):
        pytest.skip("what is in memory has no earlier state")
    folder = future(tmp_path)
    if start:
        old = opened(engine, place, schema=start)
        old.execute("INSERT INTO users (tenant, id, name, role, created_at) VALUES ('t', 'u', 'n', 'user', 1)", ())
        old.close()
    kept: list[int] = []
    connection = evolution.open_current(
        engine, place.path, no_probe, lambda c: kept.append(evolution.schema_number(c)), schema=FUTURE, folder=folder
    )
    rows = connection.fetch("SELECT id, colour FROM users", ())
    assert evolution.schema_number(connection) == FUTURE
    connection.close()
    assert rows == ([("u", "blue")] if start else [])
    assert kept == ([start] if start else [])


@pytest.mark.anyio
@pytest.mark.parametrize("fault", ["op.execute('SELECT nonsense FROM nowhere')", "raise MemoryError('in the middle')"])
async def test_a_migration_that_fails_in_the_middle_has_not_happened(
    engine: Engine, place: Place, tmp_path: Path, fault: str
) -> None:
    if place.url.startswith("memory"):
        pytest.skip("what is in memory has no earlier state")
    opened(engine, place).close()
    with pytest.raises((Exception, MemoryError)):
        opened(engine, place, schema=FUTURE, folder=future(tmp_path, fault))
    connection = opened(engine, place)
    assert evolution.schema_number(connection) == evolution.SCHEMA
    assert "colour" not in evolution.columns(connection, "users")
    connection.close()


@pytest.mark.anyio
async def test_a_schema_from_the_future_is_refused_by_name(engine: Engine, place: Place, tmp_path: Path) -> None:
    if place.url.startswith("memory"):
        pytest.skip("what is in memory has no earlier state")
    opened(engine, place, schema=FUTURE, folder=future(tmp_path)).close()
    with pytest.raises(Misconfigured, match=f"schema {FUTURE}"):
        opened(engine, place)


@pytest.mark.anyio
async def test_a_file_on_which_a_server_works_is_not_migrated(tmp_path: Path) -> None:
    place = Place(f"sqlite:///{tmp_path / 'state.db'}")
    engine = engine_for(place, FakeClock())
    opened(engine, place).close()
    server = FileLock(server_lock(tmp_path / "state.db"), "works on")
    server.acquire(FakeClock().now())
    folder = future(tmp_path)
    with pytest.raises(Conflict, match="a server works on it"):
        opened(engine, place, schema=FUTURE, folder=folder)
    server.release()
    opened(engine, place, schema=FUTURE, folder=folder).close()


@pytest.mark.anyio
async def test_a_backup_of_an_older_schema_is_restored_into_the_present(
    engine: Engine, place: Place, tmp_path: Path
) -> None:
    connection = opened(engine, place)
    connection.execute("INSERT INTO users (tenant, id, name, role, created_at) VALUES ('t', 'u', 'n', 'user', 1)", ())
    report = backup.write(connection, tmp_path / "copy.hermes-backup")
    connection.close()
    assert report.rows == 1
    target = Place(f"sqlite:///{tmp_path / 'other.db'}")
    other = engine_for(target, FakeClock())
    backup.restore(other, report.path, target.path, FakeClock().now())
    restored = opened(other, target)
    assert restored.fetch("SELECT tenant, id, created_at FROM users", ()) == [("t", "u", 1)]
    restored.close()
