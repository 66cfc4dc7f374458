"""A database file that is removed or exchanged under a running store: nothing more is acknowledged."""

from pathlib import Path

import anyio
import pytest

from hermes.domain.clock import SystemClock
from hermes.domain.errors import Damaged
from hermes.store.database import Database, Place, open_database


@pytest.mark.anyio
@pytest.mark.parametrize("ending", ["", "-wal"])
async def test_a_file_that_is_removed_under_a_store_is_noticed(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "state.db"
    async with open_database(Place(f"sqlite:///{path}"), SystemClock()) as store:
        await store.write(lambda tx: tx.execute("INSERT INTO streams VALUES ('t', 'before', 1)"))
        await anyio.sleep(0.5)  # the store looks around five times a second
        path.with_name(path.name + ending).unlink()
        with anyio.fail_after(20), pytest.raises(Damaged, match="removed"):
            await write_until_it_is_refused(store)


async def write_until_it_is_refused(store: Database) -> None:
    for number in range(100):
        await store.write(lambda tx, n=number: tx.execute("INSERT INTO streams VALUES ('t', ?, 1)", (f"{n}",)))
        await anyio.sleep(0.05)
