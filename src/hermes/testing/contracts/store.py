"""What a Store promises, whatever is under it."""

import anyio

from hermes.domain.errors import Conflict, HermesError, LimitReached, Unavailable
from hermes.domain.protocols import Tx
from hermes.testing.contracts.asserting import raises
from hermes.testing.world import MakeWorld, World

_INSERT = "INSERT INTO streams (tenant, name, seq) VALUES ('local', ?, ?)"


def names(tx: Tx) -> list[str]:
    """Return what the suite has stored."""
    return [row[0] for row in tx.all("SELECT name FROM streams ORDER BY name")]


class StoreContract:
    """Transactions, isolation, group commit, refusal."""

    async def test_what_was_written_can_be_read(self, world: World) -> None:
        """A commit that was answered is there for everybody."""
        await world.store.write(lambda tx: tx.execute(_INSERT, ("a", 1)))
        assert await world.store.read(names) == ["a"]

    async def test_a_write_returns_what_its_work_returns(self, world: World) -> None:
        """`work` takes values and gives values."""
        assert await world.store.write(lambda tx: tx.execute(_INSERT, ("a", 1))) == 1
        assert await world.store.write(names) == ["a"]

    async def test_a_work_that_raises_leaves_nothing_behind(self, world: World) -> None:
        """What a caller is told of as failed was not stored."""

        def work(tx: Tx) -> None:
            tx.execute(_INSERT, ("a", 1))
            raise Conflict("no")

        await raises(Conflict, world.store.write(work))
        assert await world.store.read(names) == []

    async def test_one_bad_work_among_many_spoils_none_of_the_others(self, world: World) -> None:
        """Group commit: the survivors are stored once, and each caller hears of its own."""
        heard: dict[int, str] = {}

        async def put(number: int) -> None:
            try:
                await world.store.write(lambda tx: work(tx, number))
                heard[number] = "stored"
            except ZeroDivisionError:
                heard[number] = "failed"

        def work(tx: Tx, number: int) -> None:
            tx.execute(_INSERT, (f"{number:03}", 1))
            if number % 7 == 0:
                _ = 1 / 0

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(put, number)
        good = [n for n in range(100) if n % 7]
        assert await world.store.read(names) == [f"{n:03}" for n in good]
        assert [n for n in range(100) if heard[n] == "stored"] == good

    async def test_a_broken_rule_of_the_database_is_a_conflict_of_its_work_alone(self, world: World) -> None:
        """An error of the engine inside one work does not take the batch down."""
        results: list[str] = []

        async def put(name: str) -> None:
            try:
                await world.store.write(lambda tx: tx.execute(_INSERT, (name, 1)))
                results.append("stored")
            except Conflict:
                results.append("conflict")

        async with anyio.create_task_group() as group:
            for name in ["a", "b", "a", "c", "b", "d"]:
                group.start_soon(put, name)
        assert sorted(results) == ["conflict"] * 2 + ["stored"] * 4
        assert await world.store.read(names) == ["a", "b", "c", "d"]

    async def test_a_caller_that_goes_away_does_not_undo_its_work(self, world: World) -> None:
        """Cancelling a wait is not cancelling the work."""
        with anyio.CancelScope() as scope:
            scope.cancel()
            await world.store.write(lambda tx: tx.execute(_INSERT, ("a", 1)))
        await world.store.write(lambda tx: tx.execute(_INSERT, ("b", 1)))
        assert await world.store.read(names) == ["a", "b"]

    async def test_a_read_cannot_write(self, world: World) -> None:
        """Not even by mistake."""
        await raises(HermesError, world.store.read(lambda tx: tx.execute(_INSERT, ("a", 1))))
        assert await world.store.read(names) == []

    async def test_a_read_sees_one_snapshot(self, world: World) -> None:
        """Two looks inside one read agree, whatever is written meanwhile."""

        def work(tx: Tx) -> tuple[int, int]:
            before = len(names(tx))
            return before, len(names(tx))

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(world.store.write, lambda tx, n=number: tx.execute(_INSERT, (f"{n}", 1)))
            for _ in range(5):
                before, later = await world.store.read(work)
                assert before == later

    async def test_time_stands_still_inside_a_transaction(self, world: World) -> None:
        """`now` is the store's and the same throughout one work."""

        def work(tx: Tx) -> tuple[int, int]:
            first = tx.now()
            world.clock.advance(5)
            return first, tx.now()

        first, later = await world.store.write(work)
        assert first == later

    async def test_news_are_rung_after_the_commit_only(self, world: World) -> None:
        """Whoever is woken finds what woke it."""

        def work(tx: Tx) -> None:
            tx.execute(_INSERT, ("a", 1))
            tx.announce("events")

        with world.doorbell.listen("events") as bell:
            assert not await bell.wait(0.01)
            await world.store.write(work)
            assert await bell.wait(5)
            assert await world.store.read(names) == ["a"]

    async def test_a_failed_work_rings_nothing(self, world: World) -> None:
        """No news of what did not happen."""

        def work(tx: Tx) -> None:
            tx.announce("jobs")
            raise Conflict("no")

        with world.doorbell.listen("jobs") as bell:
            await raises(Conflict, world.store.write(work))
            assert not await bell.wait(0.05)

    async def test_a_closed_store_says_so(self, world: World) -> None:
        """No call hangs after the end."""
        await world.store.aclose()
        await raises(Unavailable, world.store.write(names))
        await raises(Unavailable, world.store.read(names))

    async def test_closing_finishes_what_is_in_line(self, world: World) -> None:
        """What was handed over before the end is stored."""
        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(world.store.write, lambda tx, n=number: tx.execute(_INSERT, (f"{n:02}", 1)))
            await anyio.lowlevel.checkpoint()
            await world.store.aclose()

    async def test_more_than_the_line_holds_is_refused_at_once(self, make_world: MakeWorld) -> None:
        """A bound, and a stated policy when it is met."""
        outcomes: list[str] = []
        async with make_world(queue_limit=5) as small:

            async def put(number: int) -> None:
                try:
                    await small.store.write(lambda tx: tx.execute(_INSERT, (f"{number}", 1)))
                    outcomes.append("stored")
                except LimitReached:
                    outcomes.append("refused")

            async with anyio.create_task_group() as group:
                for number in range(200):
                    group.start_soon(put, number)
            assert "refused" in outcomes
            assert len(await small.store.read(names)) == outcomes.count("stored")
