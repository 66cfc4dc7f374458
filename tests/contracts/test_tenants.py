"""Every function of the store's repositories, called by a stranger: nothing is seen, nothing is changed.

A function that is new and not described here makes this fail, so that none is forgotten.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from types import ModuleType

import pytest

from hermes.domain.approval import Approval
from hermes.domain.clock import Micros
from hermes.domain.errors import Conflict, Denied, NotFound
from hermes.domain.event import Event, Stream
from hermes.domain.job import Job, JobId
from hermes.domain.key import ApiKey, KeyId
from hermes.domain.ledger import Entry
from hermes.domain.message import Message, MessageId, TextPart
from hermes.domain.model import Usage
from hermes.domain.principal import Principal, Tenant
from hermes.domain.protocols import Tx
from hermes.domain.schedule import Schedule, ScheduleId
from hermes.domain.session import Context, Run, RunId, Session, SessionId
from hermes.jobs.queue import Order
from hermes.store import (
    approval,
    cursor,
    event,
    job,
    key,
    ledger,
    message,
    run,
    schedule,
    search,
    session,
    user,
)
from hermes.store.cursor import Cursor
from hermes.store.job import Settlement
from hermes.testing.world import SYSTEM, World

OWNER = Principal.owner()
STRANGER = Principal.owner(Tenant("elsewhere"))
FAR = 2**62
REPOSITORIES = (approval, cursor, event, job, key, ledger, message, run, schedule, search, session, user)

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
    session: Session
    context: Context
    message: Message
    run: Run
    approval: Approval


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
    await converse(world, home)
    world.clock.advance(days=1)
    return home


async def converse(world: World, home: Home) -> None:
    """Leave a session in which something was said, asked and paid for."""
    now, name = world.clock.now(), SessionId("s")
    home.session = Session(name, OWNER.tenant, OWNER.id, "test", now, now, title="talk")
    home.context = Context(name, 1, "chat", "m", "t", b"{}", None, "new", now)
    home.message = Message(MessageId("m1"), "user", (TextPart("mine alone"),), now)
    home.run = Run(RunId("r"), name, OWNER, "running", now)
    home.approval = Approval("a", name, home.run.id, "e", "p", "shown", "rule", now)

    def work(tx: Tx) -> None:
        session.create(tx, OWNER, home.session)
        session.open_context(tx, OWNER, home.context)
        message.append(tx, OWNER, name, 1, [home.message], run=RunId(home.message.id))
        run.start(tx, OWNER, home.run)
        ledger.write(tx, OWNER, _entry("l"))
        approval.request(tx, OWNER, home.approval)
        granted = replace(home.approval, id="b", pattern="wide")
        approval.request(tx, OWNER, granted)
        approval.decide(tx, OWNER, granted.id, "given", "always")
        search.index_more(tx, SYSTEM)
        message.append(tx, OWNER, name, 1, [replace(home.message, id=MessageId("m2"), parent=home.message.id)])

    await world.store.write(work)


def _entry(name: str) -> Entry:
    return Entry(name, OWNER.tenant, OWNER.name, "turn", "m", Usage(1, 2), 3, SessionId("s"))


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
        "job.take": lambda tx, p: job.take(tx, p, home.job, worker="w", lease_micros=1),
        "job.in_lane": lambda tx, p: job.in_lane(tx, p, "l"),
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
        **_calls_of_the_agent(home),
        "user.ensure_owner": lambda tx, p: user.ensure_owner(tx, p, Tenant("local")),
        "user.get": lambda tx, p: user.get(tx, p, "owner"),
    }


def _calls_of_the_agent(home: Home) -> dict[str, Call]:
    name = home.session.id
    said = replace(home.message, id=MessageId("new"), parent=home.message.id)
    return {
        "approval.request": lambda tx, p: approval.request(tx, p, replace(home.approval, id="new")),
        "approval.decide": lambda tx, p: approval.decide(tx, p, "a", "given", "always"),
        "approval.is_granted": lambda tx, p: approval.is_granted(tx, p, "wide", name),
        "approval.find": approval.find,
        "approval.beginning_with": lambda tx, p: approval.beginning_with(tx, p, "b", limit=9),
        "approval.revoke": lambda tx, p: approval.revoke(tx, p, "wide"),
        "ledger.write": lambda tx, p: ledger.write(tx, p, _entry("new")),
        "ledger.of_session": lambda tx, p: ledger.of_session(tx, p, name).calls,
        "ledger.since": lambda tx, p: ledger.since(tx, p, Micros(0)).calls,
        "ledger.by_model": lambda tx, p: ledger.by_model(tx, p, Micros(0)),
        "message.append": lambda tx, p: message.append(tx, p, name, 1, [said]),
        "message.path": lambda tx, p: message.path(tx, p, home.message.id),
        "message.get": lambda tx, p: message.get(tx, p, home.message.id),
        "message.is_opening": lambda tx, p: message.is_opening(tx, p, home.message.id),
        "message.session_of": lambda tx, p: message.session_of(tx, p, home.message.id),
        "message.said": lambda tx, p: message.said(tx, p, name),
        "message.first_of_user": lambda tx, p: message.first_of_user(tx, p, name),
        "run.start": lambda tx, p: run.start(tx, p, replace(home.run, id=RunId("new"))),
        "run.end": lambda tx, p: run.end(tx, p, home.run.id, "done", None, steps=1),
        "run.get": lambda tx, p: run.get(tx, p, home.run.id),
        "run.is_running": lambda tx, p: run.is_running(tx, p, home.run.id),
        "run.unfinished": lambda tx, p: run.unfinished(tx, p, name),
        "run.of_session": lambda tx, p: run.of_session(tx, p, name),
        "search.index_more": search.index_more,
        "search.rebuild": search.rebuild,
        "search.find": lambda tx, p: search.find(tx, p, "mine"),
        "session.create": lambda tx, p: session.create(tx, p, replace(home.session, id=SessionId("new"), title=None)),
        "session.get": lambda tx, p: session.get(tx, p, name),
        "session.called": lambda tx, p: session.called(tx, p, "talk"),
        "session.recent": session.recent,
        "session.quiet_since": lambda tx, p: session.quiet_since(tx, p, FAR),
        "session.move": lambda tx, p: session.move(tx, p, name, "/elsewhere"),
        "session.rename": lambda tx, p: session.rename(tx, p, name, "taken"),
        "session.delete": lambda tx, p: session.delete(tx, p, name),
        "session.open_context": lambda tx, p: session.open_context(tx, p, replace(home.context, number=2)),
        "session.context": lambda tx, p: session.context(tx, p, name),
        "session.contexts": lambda tx, p: session.contexts(tx, p, name),
        "session.move_head": lambda tx, p: session.move_head(tx, p, name, 1, home.message.id),
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
    tables = (
        "api_keys",
        "approvals",
        "attempts",
        "contexts",
        "cursors",
        "events",
        "jobs",
        "ledger",
        "messages",
        "messages_fts_docsize" if tx.dialect == "sqlite" else "messages_fts",
        "runs",
        "schedules",
        "sessions",
        "streams",
        "users",
    )
    return [tx.all(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]


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
