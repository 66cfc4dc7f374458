"""A story complains about what it is there to find."""

from pathlib import Path

import anyio
import pytest

from hermes.domain.protocols import Tx
from hermes.jobs.kind import Assignment, Done, JobKind, Result
from hermes.jobs.queue import Order
from hermes.testing.story import OWNER, story


async def done(_assignment: Assignment) -> Result:
    return Done()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ("UPDATE events SET seq = 7 WHERE seq = 2", "gap"),
        ("UPDATE jobs SET owner = 'somebody'", "lease"),
        ("UPDATE attempts SET ended_at = NULL", "no end"),
        ("UPDATE jobs SET state = 'blocked'", "due and not done"),
        ("UPDATE jobs SET state = 'dead'", "nobody heard"),
    ],
)
async def test_each_broken_promise_is_found(tmp_path: Path, damage: str, complaint: str) -> None:
    with pytest.raises(AssertionError, match=complaint):
        await a_story_with(tmp_path, damage)


async def a_story_with(home: Path, damage: str) -> None:
    def break_it(tx: Tx) -> int:
        return tx.execute(damage)

    async with story(home, kinds=[JobKind("work", done)]) as told:
        for _ in range(3):
            await told.app.queue.put(OWNER, Order("work"))
        await told.settle()
        assert await told.app.store.write(break_it)


@pytest.mark.anyio
async def test_a_task_that_is_left_behind_is_found(tmp_path: Path) -> None:
    async with anyio.create_task_group() as group:
        with pytest.raises(AssertionError, match="tasks are alive"):
            async with story(tmp_path):
                group.start_soon(anyio.sleep_forever)
        group.cancel_scope.cancel()
