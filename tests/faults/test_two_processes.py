"""Who may have one file open at the same time."""

from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.lowlevel
import children
import pytest

from hermes.app import open_app
from hermes.config import load
from hermes.domain.clock import SystemClock
from hermes.domain.errors import Conflict
from hermes.store import backup as backups
from hermes.store.database import Place, engine_for, open_database

HOLD, OLD = children.HOLD, children.OLD_ENGINE


def test_two_processes_with_a_safe_engine_share_a_file(tmp_path: Path) -> None:
    url = children.url_of(tmp_path / "state.db")
    with children.running(HOLD, url, first_line="open"):
        assert children.run(HOLD, url).stdout.strip() == "open"


@pytest.mark.parametrize(("first", "second"), [(OLD, OLD), (OLD, ""), ("", OLD)], ids=["old-old", "old-new", "new-old"])
def test_with_an_old_engine_a_second_process_is_refused(tmp_path: Path, first: str, second: str) -> None:
    url = children.url_of(tmp_path / "state.db")
    with children.running(first + HOLD, url, first_line="open") as holder:
        refused = children.run(second + HOLD, url)

        assert refused.returncode == 3
        assert refused.stdout.startswith("Conflict")
        assert "3.51.3" in refused.stdout
        assert first == "" or str(holder.pid) in refused.stdout


@pytest.mark.parametrize("engine", ["", OLD], ids=["safe", "old"])
def test_a_process_that_was_killed_holds_nothing(tmp_path: Path, engine: str) -> None:
    url = children.url_of(tmp_path / "state.db")
    with children.running(engine + HOLD, url, first_line="open") as holder:
        holder.kill()
        holder.wait(children.PATIENCE)

        assert children.run(OLD + HOLD, url).stdout.strip() == "open"


def test_one_process_after_the_other_may_use_an_old_engine(tmp_path: Path) -> None:
    url = children.url_of(tmp_path / "state.db")

    assert [children.run(OLD + HOLD, url).stdout.strip() for _ in range(3)] == ["open"] * 3


@pytest.mark.anyio
async def test_a_second_server_on_one_file_is_refused(tmp_path: Path) -> None:
    settings = load(home=tmp_path, environ={})
    async with open_app(settings) as first, open_app(settings) as second, anyio.create_task_group() as group:
        await group.start(first.serve)
        with pytest.raises(Conflict, match="another Hermes"):
            await second.serve()
        group.cancel_scope.cancel()


@pytest.mark.anyio
async def test_a_restore_is_refused_while_any_process_has_the_file_open(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    place = Place(children.url_of(path), home=tmp_path)
    async with open_database(place, SystemClock()) as store:
        backup = await store.backup()
    with children.running(HOLD, place.url, first_line="open"):
        before = path.stat().st_ino
        with pytest.raises(Conflict):
            backups.restore(engine_for(place, SystemClock()), backup.path, path, datetime.now(UTC))
        assert path.stat().st_ino == before


@pytest.mark.anyio
async def test_a_store_that_is_closed_by_a_cancellation_lets_go_of_its_file(tmp_path: Path) -> None:
    url = children.url_of(tmp_path / "state.db")
    with anyio.CancelScope() as scope:
        async with open_database(Place(url), SystemClock()) as store:
            await store.write(lambda tx: tx.now())
            scope.cancel()
            await anyio.lowlevel.checkpoint()

    assert children.run(OLD + HOLD, url).stdout.strip() == "open"
