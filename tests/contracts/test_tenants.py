"""Every function of the store's repositories, called by a stranger: nothing is seen, nothing is changed.

A function that is new and not described here makes this fail, so that none is forgotten.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import ModuleType

import pytest

from hermes.domain.errors import Conflict, Denied, NotFound
from hermes.domain.event import Event, Stream
from hermes.domain.job import Job, JobId
from hermes.domain.key import ApiKey, KeyId
from hermes.domain.principal import Principal, Tenant
from hermes.domain.protocols import Tx
from hermes.domain.schedule import Schedule, ScheduleId
from hermes.jobs.queue import Order
from hermes.store import cursor, event, job, key, schedule, user
from hermes.store.cursor import Cursor
from hermes.store.job import Settlement
from hermes.testing.world import SYSTEM, World

OWNER = Principal.owner()
STRANGER = Principal.owner(Tenant("elsewhere"))
FAR = 2**62
REPOSITORIES = (cursor, event, job, key, schedule, user)

Call = Callable[[Tx, Principal], object]


class Home:
    """What the owner has, for the stranger to ask for by its true names."""

    event: Event
    job: Job
    running: Job
    dead: Job
    schedule: Schedule
    key: ApiKey
    cursor: Cursor


async def furnish(world: World) -> Home:
    home = Home()
    seen = (await world.bus.publish(SYSTEM, world.event(stream="hub:local")))[0]
    await work_off(world)
    home.event = (await world.bus.publish(SYSTEM, world.event(stream="hub:local", dedupe_key="d")))[0]
    home.running = await world.queue.put(OWNER, Order("test", {"secret": "mine"}, lane="l"))
    (home.running,) = await world.store.write(
        lambda tx: job.claim(tx, SYSTEM, worker="w", kinds=["test"], limit=1, lease_micros=1)
    )
    home.job = await world.queue.put(OWNER, Order("test", {"secret": "mine"}, dedupe_key="k"))
    home.dead = await world.queue.put(OWNER, Order("test", deadline=world.clock.now()))
    await world.store.write(lambda tx: job.past_deadline(tx, SYSTEM, limit=9))
    await world.queue.put(OWNER, Order("late", deadline=world.clock.now() + timedelta(hours=1)))
    await world.queue.put(OWNER, Order("far"))
    await world.store.write(
        lambda tx: job.claim(tx, SYSTEM, worker="w", kinds=["far"], limit=1, lease_micros=10 * 86_400_000_000)
    )
    home.schedule = await world.queue.add_schedule(OWNER, "tick", "every 1s", Order("test"))
    home.key = await world.store.write(lambda tx: key.put(tx, OWNER, _key(world, OWNER)))
    taken = await world.store.write(lambda tx: cursor.take(tx, SYSTEM, "c", "me", lease_micros=60_000_000, start=0))
    assert taken is not None
    assert seen.position is not None
    home.cursor = replace(taken, position=seen.position)
    await world.store.write(lambda tx: cursor.advance(tx, SYSTEM, taken, home.cursor.position, lease_micros=60_000_000))
    await world.store.write(lambda tx: user.ensure_owner(tx, SYSTEM, Tenant("local")))
    world.clock.advance(days=1)
    return home


async def work_off(world: World) -> None:
    """Leave a job that is done."""
    await world.queue.put(OWNER, Order("old"))
    (held,) = await world.store.write(
        lambda tx: job.claim(tx, SYSTEM, worker="w", kinds=["old"], limit=1, lease_micros=60_000_000)
    )
    await world.store.write(lambda tx: job.settle(tx, SYSTEM, held, Settlement("done")))


def _key(world: World, of: Principal) -> ApiKey:
    name = world.clock.new_id()
    return ApiKey(KeyId(name), of.tenant, of.id, "k", name[:8], name, frozenset(), world.clock.now())


def calls(world: World, home: Home) -> dict[str, Call]:
    """How a stranger would call each function, with the owner's true ids."""
    foreign_job = replace(home.job, id=JobId("new"), dedupe_key=None, principal=OWNER)
    foreign_schedule = replace(home.schedule, id=ScheduleId("new"), name="new", principal=OWNER)
    return {
        "cursor.take": lambda tx, p: cursor.take(tx, p, "c", "you", lease_micros=1, start=0),
        "cursor.advance": lambda tx, p: cursor.advance(tx, p, home.cursor, 99, lease_micros=1),
        "cursor.note_failure": lambda tx, p: cursor.note_failure(tx, p, home.cursor),
        "cursor.free": lambda tx, p: cursor.free(tx, p, "c", "you"),
        "cursor.drop": lambda tx, p: cursor.drop(tx, p, home.cursor),
        "cursor.positions": cursor.positions,
        "event.append": lambda tx, p: event.append(tx, p, replace(home.event, id=world.event().id, dedupe_key=None)),
        "event.get": lambda tx, p: event.get(tx, p, home.event.id),
        "event.after": lambda tx, p: event.after(tx, p, 0, limit=99),
        "event.before": lambda tx, p: event.before(tx, p, FAR, limit=99),
        "event.beginning_with": lambda tx, p: event.beginning_with(tx, p, home.event.id[:8], limit=9),
        "event.of_stream": lambda tx, p: event.of_stream(tx, p, Stream("hub:local")),
        "event.last_position": event.last_position,
        "event.prune": lambda tx, p: event.prune(tx, p, FAR),  # type: ignore[arg-type]
        "job.put": lambda tx, p: job.put(tx, p, foreign_job),
        "job.claim": lambda tx, p: job.claim(tx, p, worker="w", kinds=["test"], limit=9, lease_micros=1),
        "job.renew": lambda tx, p: job.renew(tx, p, [home.running], lease_micros=1),
        "job.settle": lambda tx, p: job.settle(tx, p, home.running, Settlement("done")),
        "job.overdue": lambda tx, p: job.overdue(tx, p, kinds=["test"], limit=9),
        "job.abandoned": lambda tx, p: job.abandoned(tx, p, worker="none"),
        "job.past_deadline": lambda tx, p: job.past_deadline(tx, p, limit=9),
        "job.cancel": lambda tx, p: job.cancel(tx, p, home.job.id),
        "job.retry": lambda tx, p: job.retry(tx, p, home.dead.id),
        "job.settle_clock": lambda tx, p: (world.clock.jump(days=-30), job.settle_clock(tx, p))[1],
        "job.get": lambda tx, p: job.get(tx, p, home.job.id),
        "job.find": job.find,
        "job.count": job.count,
        "job.beginning_with": lambda tx, p: job.beginning_with(tx, p, home.job.id[:8], limit=9),
        "job.attempts": lambda tx, p: job.attempts(tx, p, home.running.id),
        "job.prune": lambda tx, p: job.prune(tx, p, FAR),  # type: ignore[arg-type]
        "key.put": lambda tx, p: key.put(tx, p, _key(world, OWNER)),
        "key.by_digest": lambda tx, p: key.by_digest(tx, p, home.key.digest),
        "key.find": key.find,
        "key.revoke": lambda tx, p: key.revoke(tx, p, home.key.id, home.key.digest),
        "key.note_use": lambda tx, p: key.note_use(tx, p, home.key, tx.now()),
        "schedule.put": lambda tx, p: schedule.put(tx, p, foreign_schedule),
        "schedule.due": lambda tx, p: schedule.due(tx, p, limit=9),
        "schedule.move_on": lambda tx, p: schedule.move_on(tx, p, home.schedule, next_at=None),
        "schedule.correct": lambda tx, p: schedule.correct(tx, p, home.schedule, next_at=None, is_paused=False),
        "schedule.get": lambda tx, p: schedule.get(tx, p, "tick"),
        "schedule.find": schedule.find,
        "schedule.pause": lambda tx, p: schedule.pause(tx, p, "tick", is_paused=True, next_at=None),
        "schedule.remove": lambda tx, p: schedule.remove(tx, p, "tick"),
        "user.ensure_owner": lambda tx, p: user.ensure_owner(tx, p, Tenant("local")),
        "user.get": lambda tx, p: user.get(tx, p, "owner"),
    }


def functions(module: ModuleType) -> list[str]:
    short = module.__name__.rpartition(".")[2]
    return [
        f"{short}.{name}"
        for name, member in vars(module).items()
        if inspect.isfunction(member) and member.__module__ == module.__name__ and not name.startswith("_")
    ]


NAMES = sorted(name for module in REPOSITORIES for name in functions(module))


def snapshot(tx: Tx) -> list[list[tuple[object, ...]]]:
    tables = ("api_keys", "attempts", "cursors", "events", "jobs", "schedules", "streams", "users")
    return [tx.all(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in tables]


def test_every_repository_module_is_listed() -> None:
    from pathlib import Path

    import hermes.store as package

    folder = Path(package.__file__ or "").parent
    with_sql = {p.stem for p in folder.glob("*.py") if "tx: Tx, principal: Principal" in p.read_text()}
    assert with_sql == {module.__name__.rpartition(".")[2] for module in REPOSITORIES}


@pytest.mark.parametrize("name", NAMES)
def test_who_acts_is_the_second_argument_of(name: str) -> None:
    module, _, function = name.partition(".")
    parameters = list(inspect.signature(getattr(globals()[module], function)).parameters.values())
    assert [p.name for p in parameters[:2]] == ["tx", "principal"]
    assert parameters[1].default is inspect.Parameter.empty


@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES)
async def test_a_stranger_sees_and_changes_nothing_by(world: World, name: str) -> None:
    home = await furnish(world)
    call = calls(world, home)[name]
    before = await world.store.read(snapshot)
    try:
        seen = await world.store.write(lambda tx: call(tx, STRANGER))
    except (Denied, NotFound):
        seen = None
    assert not seen, f"{name} gave a stranger {seen!r}"
    assert await world.store.read(snapshot) == before


@pytest.mark.anyio
@pytest.mark.parametrize("name", NAMES)
async def test_the_same_call_means_something_to_those_who_may(world: World, name: str) -> None:
    home = await furnish(world)
    call = calls(world, home)[name]
    world.clock.advance(timedelta(days=1).total_seconds())
    before = await world.store.read(snapshot)
    try:
        seen = await world.store.write(lambda tx: call(tx, SYSTEM))
    except Conflict as error:
        seen = error
    assert seen or await world.store.read(snapshot) != before
