"""Backups that are made at once, and whom the files are for."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier
from urllib.parse import quote

import pytest

from hermes.domain.clock import SystemClock
from hermes.store import backup as backups
from hermes.store.database import Place, engine_for, open_database

MANY = 6


def place_in(folder: Path) -> Place:
    return Place(f"sqlite:///{quote(str(folder / 'state.db'))}", home=folder)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.anyio
async def test_a_restored_database_and_its_backup_are_for_their_owner_only(tmp_path: Path) -> None:
    place = place_in(tmp_path)
    async with open_database(place, SystemClock()) as store:
        report = await store.backup()
    other = place_in(tmp_path / "other")
    assert other.path is not None

    backups.restore(engine_for(other, SystemClock()), report.path, other.path, datetime.now(UTC))

    assert mode_of(report.path) == 0o600
    assert mode_of(other.path) == 0o600


@pytest.mark.anyio
async def test_backups_to_one_target_at_once_all_succeed_and_leave_one_whole_file(tmp_path: Path) -> None:
    place, target = place_in(tmp_path), tmp_path / "out" / "one.hermes-backup"
    async with open_database(place, SystemClock()):
        pass
    written = Barrier(MANY)

    def wait_for_all(_place: str) -> None:
        written.wait(5)

    def back_up() -> None:
        with closing(engine_for(place, SystemClock()).connect(is_reading=True)) as connection:
            # Each waits until all have written theirs and none is in its place.
            backups.write(connection, target, probe=wait_for_all)

    with ThreadPoolExecutor(MANY) as pool:
        for made in [pool.submit(back_up) for _ in range(MANY)]:
            made.result()

    assert list(target.parent.iterdir()) == [target]
    backups.inspect(target)


@pytest.mark.anyio
async def test_what_a_killed_backup_left_is_in_nobodys_way_and_is_not_taken_for_ours(tmp_path: Path) -> None:
    place, target = place_in(tmp_path), tmp_path / "one.hermes-backup"
    leftover = target.with_name(f"{target.name}.{os.getpid()}.unfinished")
    leftover.write_text("half")
    async with open_database(place, SystemClock()) as store:
        await store.backup(target)

    backups.inspect(target)
    assert leftover.read_text() == "half"
