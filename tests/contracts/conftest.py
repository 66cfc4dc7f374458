"""One world per test, on the engine that `--database-url` names."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hermes.testing.world import MakeWorld, World, open_world


@pytest.fixture
async def world(database_url: str, tmp_path: Path) -> AsyncIterator[World]:
    async with open_world(database_url, tmp_path) as opened:
        yield opened


@pytest.fixture
def make_world(database_url: str, tmp_path: Path) -> MakeWorld:
    def make(**options: object) -> AbstractAsyncContextManager[World]:
        folder = tmp_path / "another"
        folder.mkdir(exist_ok=True)
        return open_world(database_url, folder, **options)

    return make
