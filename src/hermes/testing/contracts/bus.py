"""What the bus promises, whatever is under it."""

from dataclasses import replace
from datetime import timedelta

import anyio

from hermes.bus.bus import Dropped, Feed
from hermes.bus.filter import Filter
from hermes.bus.subscription import REDELIVER, Handle, Subscriber, Subscription
from hermes.domain.errors import Conflict, Denied, LeaseLost, Misconfigured
from hermes.domain.event import Event, Stream
from hermes.domain.job import JobState
from hermes.domain.principal import Principal, Tenant
from hermes.domain.protocols import Tx
from hermes.store import cursor as cursors
from hermes.store import event as events
from hermes.testing.contracts.asserting import raises
from hermes.testing.world import SYSTEM, World, tenants


class BusContract:
    """Publishing and the live view."""

    async def test_events_of_a_stream_are_numbered_without_a_gap(self, world: World) -> None:
        """Each stream counts for itself, from one."""
        for number in range(6):
            await world.bus.publish(SYSTEM, world.event(stream=f"s{number % 2}"))
        for stream in ("s0", "s1"):
            assert [event.seq for event in await _of_stream(world, stream)] == [1, 2, 3]

    async def test_many_publishers_leave_no_gap_and_no_double(self, world: World) -> None:
        """Also when some of them fail in between."""

        async def publish(number: int) -> None:
            def work(tx: Tx) -> None:
                events.append(tx, SYSTEM, event)
                if number % 5 == 0:
                    raise Conflict("changed my mind")

            event = world.event()
            if number % 5 == 0:
                await raises(Conflict, world.store.write(work))
            else:
                await world.store.write(work)

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(publish, number)
        found = await world.store.read(lambda tx: events.of_stream(tx, SYSTEM, Stream("test"), limit=1000))
        assert [event.seq for event in found] == list(range(1, 81))
        assert sorted(e.position or 0 for e in found) == [e.position for e in found]

    async def test_publishing_again_is_nothing(self, world: World) -> None:
        """The same id, or the same dedupe key in its stream, is the same event."""
        event = world.event(dedupe_key="once")
        (first,) = await world.bus.publish(SYSTEM, event)
        (again,) = await world.bus.publish(SYSTEM, event)
        (other,) = await world.bus.publish(SYSTEM, world.event(dedupe_key="once"))
        assert first == again == other
        (elsewhere,) = await world.bus.publish(SYSTEM, world.event(stream="other", dedupe_key="once"))
        assert elsewhere.id != first.id

    async def test_an_id_that_means_something_else_is_refused(self, world: World) -> None:
        """Two facts never share an id."""
        event = world.event()
        await world.bus.publish(SYSTEM, event)
        await raises(Conflict, world.bus.publish(SYSTEM, replace(event, type="test.other")))

    async def test_everything_of_an_event_comes_back(self, world: World) -> None:
        """Nothing is lost on the way through the database."""
        event = world.event(
            data={"text": "ünïcode ☕\u0000\n", "list": [1, 2.5, None, True], "deep": {"a": {"b": []}}},
            subject="s",
            schema="v1",
            trace="00-1-2-01",
            cause="c",
            dedupe_key="d",
        )
        (stored,) = await world.bus.publish(SYSTEM, event)
        found = await world.store.read(lambda tx: events.get(tx, SYSTEM, event.id))
        assert found == stored == replace(event, seq=1, position=stored.position)

    async def test_what_json_cannot_say_is_refused_and_not_changed(self, world: World) -> None:
        """Numbers without an end would come back as null."""
        for bad in (float("nan"), float("-inf"), "\ud800"):
            await raises(Misconfigured, world.bus.publish(SYSTEM, world.event(data={"deep": [{"n": bad}]})))

    async def test_several_events_are_published_together_or_not_at_all(self, world: World) -> None:
        """One of them is not allowed: none is there."""
        (mine,) = tenants("mine")
        allowed = world.event(stream="hub:mine", tenant="mine")
        forbidden = world.event(stream="jobs", tenant="mine")
        await raises(Denied, world.bus.publish(mine, allowed, forbidden))
        assert await world.store.read(lambda tx: events.after(tx, SYSTEM, 0, limit=10)) == []

    async def test_outsiders_write_to_their_own_hub_stream_only(self, world: World) -> None:
        """Not to another tenant's, and not in another tenant's name."""
        (mine,) = tenants("mine")
        await world.bus.publish(mine, world.event(stream="hub:mine", tenant="mine"))
        await raises(Denied, world.bus.publish(mine, world.event(stream="hub:yours", tenant="mine")))
        await raises(Denied, world.bus.publish(mine, world.event(stream="hub:mine", tenant="yours")))
        await raises(Denied, world.bus.publish(mine, world.event("step.delta", stream="hub:mine", tenant="yours")))
        await raises(Denied, world.bus.publish(mine, world.event("message.delta", stream="session:a", tenant="mine")))

    async def test_an_outsider_s_fact_from_a_far_future_is_refused(self, world: World) -> None:
        """It would never grow old, and nothing before it either."""
        (mine,) = tenants("mine")
        late = world.clock.now() + timedelta(days=400)
        await raises(Misconfigured, world.bus.publish(mine, world.event(stream="hub:mine", tenant="mine", at=late)))

    async def test_a_feed_shows_what_is_committed_in_order(self, world: World) -> None:
        """From the moment it is opened, and only what is wanted."""
        await world.bus.publish(SYSTEM, world.event("test.before"))
        async with anyio.create_task_group() as group:
            group.start_soon(world.bus.run)
            async with world.bus.live(SYSTEM, Filter(types=("test.*",))) as feed:
                for number in range(5):
                    await world.bus.publish(SYSTEM, world.event(data={"n": number}), world.event("other.thing"))
                seen = [await _next(feed) for _ in range(5)]
            group.cancel_scope.cancel()
        assert [event.data["n"] for event in seen] == list(range(5))

    async def test_live_events_are_shown_and_stored_nowhere(self, world: World) -> None:
        """Deltas and progress are for those who look now."""
        async with world.bus.live(SYSTEM) as feed:
            await world.bus.publish(SYSTEM, world.event("answer.delta"))
            assert (await _next(feed)).type == "answer.delta"
        assert await world.store.read(lambda tx: events.after(tx, SYSTEM, 0, limit=10)) == []

    async def test_a_slow_reader_loses_the_oldest_and_is_told_how_many(self, world: World) -> None:
        """The bound of a feed."""
        async with world.bus.live(SYSTEM, limit=3) as feed:
            for number in range(10):
                await world.bus.publish(SYSTEM, world.event("x.delta", data={"n": number}))
            assert await feed.__anext__() == Dropped(7)
            assert [(await _next(feed)).data["n"] for _ in range(3)] == [7, 8, 9]

    async def test_a_feed_shows_nothing_of_another_tenant(self, world: World) -> None:
        """The principal is a filter that cannot be left out."""
        mine, yours = tenants("mine", "yours")
        async with world.bus.live(mine, Filter(streams=("hub:>",))) as feed:
            await world.bus.publish(yours, world.event("a.delta", stream="hub:yours", tenant="yours"))
            await world.bus.publish(mine, world.event("b.delta", stream="hub:mine", tenant="mine"))
            assert (await _next(feed)).type == "b.delta"

    async def test_old_events_are_forgotten_only_when_every_subscriber_has_seen_them(self, world: World) -> None:
        """And the numbers go on where they were."""
        await world.bus.publish(SYSTEM, world.event(), world.event(), world.event())
        cursor = await world.store.write(
            lambda tx: cursors.take(tx, SYSTEM, "reader", "me", lease_micros=1_000_000, start=0)
        )
        assert cursor is not None
        await world.store.write(lambda tx: cursors.advance(tx, SYSTEM, cursor, 2, lease_micros=1_000_000))
        world.clock.advance(days=1)
        assert await world.store.write(lambda tx: events.prune(tx, SYSTEM, tx.now())) == 2
        await world.store.write(lambda tx: cursors.advance(tx, SYSTEM, cursor, 3, lease_micros=1_000_000))
        world.clock.advance(days=1)
        assert await world.store.write(lambda tx: events.prune(tx, SYSTEM, tx.now())) == 1
        (late,) = await world.bus.publish(SYSTEM, world.event())
        assert late.seq == 4


class SubscriptionContract:
    """Durable subscriptions."""

    def subscriber(self, world: World, subscription: Subscription) -> Subscriber:
        """Make a subscriber of this world."""
        return Subscriber(subscription, world.store, world.doorbell, world.clock)

    async def test_each_event_is_handled_once_and_in_order(self, world: World) -> None:
        """Also those from before the subscription was made."""
        subscriber = self.subscriber(world, Subscription("copy", _copy(world)))
        for number in range(5):
            await world.bus.publish(SYSTEM, world.event(data={"n": number}))
        while await subscriber.deliver():
            pass
        assert await _copied(world) == list(range(5))

    async def test_what_a_handler_stores_commits_with_its_cursor(self, world: World) -> None:
        """A handler that fails leaves neither its work nor a moved cursor."""
        fails = [True]

        def handle(tx: Tx, event: Event) -> None:
            _copy(world)(tx, event)
            if fails[0]:
                raise ValueError("not yet")

        subscriber = self.subscriber(world, Subscription("copy", handle))
        await world.bus.publish(SYSTEM, world.event(data={"n": 1}))
        await subscriber.deliver()
        assert await _copied(world) == []
        fails[0] = False
        await subscriber.deliver()
        assert await _copied(world) == [1]

    async def test_an_event_that_cannot_be_handled_becomes_a_dead_job_and_the_rest_goes_on(self, world: World) -> None:
        """The cursor never waits for ever."""

        def handle(tx: Tx, event: Event) -> None:
            if event.data["n"] == 1:
                raise Conflict("poison")
            _copy(world)(tx, event)

        subscriber = self.subscriber(world, Subscription("copy", handle, attempts=2))
        for number in range(3):
            await world.bus.publish(SYSTEM, world.event(data={"n": number}))
        while await subscriber.deliver():
            pass
        assert await _copied(world) == [0, 2]
        (dead,) = await world.queue.find(SYSTEM, state=JobState.DEAD)
        assert dead.kind == REDELIVER
        assert "poison" in (dead.error or "")

    async def test_a_handler_s_odd_words_stop_nothing(self, world: World) -> None:
        """Half a character in an error must not keep it from being buried."""

        def handle(_tx: Tx, event: Event) -> None:
            if event.stream != _COPIES:
                raise ValueError("half a character \udcff and a NUL \x00")

        subscriber = self.subscriber(world, Subscription("copy", handle, attempts=1))
        await world.bus.publish(SYSTEM, world.event())
        while await subscriber.deliver():
            pass
        (dead,) = await world.queue.find(SYSTEM, state=JobState.DEAD)
        assert "half a character" in (dead.error or "")

    async def test_only_one_of_two_readers_delivers(self, world: World) -> None:
        """The other takes over when the lease has run out, and the first one's word counts no more."""
        first = self.subscriber(world, Subscription("copy", _copy(world)))
        second = self.subscriber(world, Subscription("copy", _copy(world)))
        await world.bus.publish(SYSTEM, world.event(data={"n": 1}))
        assert await first.deliver()
        await world.bus.publish(SYSTEM, world.event(data={"n": 2}))
        assert not await second.deliver()
        world.clock.advance(minutes=5)
        assert await second.deliver()
        assert not await first.deliver()
        assert await _copied(world) == [1, 2]

    async def test_a_reader_that_was_replaced_moves_nothing(self, world: World) -> None:
        """It had read its page before somebody else took over."""
        await world.bus.publish(SYSTEM, world.event(), world.event(), world.event())

        def take(tx: Tx, owner: str) -> cursors.Cursor | None:
            return cursors.take(tx, SYSTEM, "c", owner, lease_micros=1_000_000, start=0)

        slow = await world.store.write(lambda tx: take(tx, "slow"))
        world.clock.advance(5)
        quick = await world.store.write(lambda tx: take(tx, "quick"))
        assert slow is not None
        assert quick is not None
        await world.store.write(lambda tx: cursors.advance(tx, SYSTEM, quick, 1, lease_micros=1_000_000))
        await raises(
            LeaseLost, world.store.write(lambda tx: cursors.advance(tx, SYSTEM, slow, 3, lease_micros=1_000_000))
        )
        assert await world.store.read(lambda tx: cursors.positions(tx, SYSTEM)) == [("c", 1, 0)]

    async def test_a_wildcard_never_matches_what_outsiders_publish(self, world: World) -> None:
        """Only those who name the stream get it."""
        (mine,) = tenants("mine")
        inside = self.subscriber(world, Subscription("inside", _copy(world)))
        outside = self.subscriber(world, Subscription("outside", _copy(world), Filter(streams=("hub:>",))))
        await world.bus.publish(mine, world.event(stream="hub:mine", tenant="mine", data={"n": 7}))
        while await inside.deliver():
            pass
        assert await _copied(world) == []
        while await outside.deliver():
            pass
        assert await _copied(world) == [7]

    async def test_a_subscription_from_now_on_gets_nothing_older(self, world: World) -> None:
        """`start` counts the first time only."""
        await world.bus.publish(SYSTEM, world.event(data={"n": 1}))
        subscriber = self.subscriber(world, Subscription("copy", _copy(world), start="now"))
        assert not await subscriber.deliver()
        await world.bus.publish(SYSTEM, world.event(data={"n": 2}))
        while await subscriber.deliver():
            pass
        assert await _copied(world) == [2]

    async def test_it_runs_by_itself_and_lets_go_at_the_end(self, world: World) -> None:
        """Woken by the doorbell; another may read at once when it closes."""
        subscriber = self.subscriber(world, Subscription("copy", _copy(world)))
        async with anyio.create_task_group() as group:
            group.start_soon(subscriber.run)
            await world.bus.publish(SYSTEM, world.event(data={"n": 1}))
            with anyio.fail_after(10), world.doorbell.listen("events") as bell:
                while await _copied(world) != [1]:
                    await bell.wait(0.05)
            group.cancel_scope.cancel()
        await subscriber.aclose()
        await world.bus.publish(SYSTEM, world.event(data={"n": 2}))
        assert await self.subscriber(world, Subscription("copy", _copy(world))).deliver()


_COPIES = Stream("copies")


def _copy(world: World) -> Handle:
    """Return a handler whose effect would show twice: each call publishes an event of its own."""

    def handle(tx: Tx, event: Event) -> None:
        if event.stream != _COPIES:
            tenant = Tenant("local")
            events.append(tx, SYSTEM, world.event(stream=_COPIES, data=event.data, tenant=tenant))

    return handle


async def _copied(world: World) -> list[object]:
    found = await world.store.read(lambda tx: events.of_stream(tx, Principal.owner(), _COPIES, limit=1000))
    return [event.data["n"] for event in found]


async def _of_stream(world: World, stream: str) -> list[Event]:
    return await world.store.read(lambda tx: events.of_stream(tx, SYSTEM, Stream(stream)))


async def _next(feed: Feed) -> Event:
    with anyio.fail_after(10):
        got = await feed.__anext__()
    assert isinstance(got, Event)
    return got
