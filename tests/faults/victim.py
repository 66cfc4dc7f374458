"""A program to be killed: clients put jobs and publish events, a worker does the jobs, a subscriber witnesses.

It writes what was acknowledged to it into `acknowledged.log` of its folder, and acts on a Target beside it. With
`--rest` it takes nothing new, does what is left, and ends with 0.
"""

import argparse
import os
import sys
import uuid
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio
from target import Ledger, Target

from hermes.app import App, Extras, open_app
from hermes.bus.filter import Filter
from hermes.bus.subscription import Subscription
from hermes.config import load
from hermes.domain.errors import Conflict, HermesError
from hermes.domain.event import JSON, Event, EventId, Stream
from hermes.domain.principal import LOCAL, Principal
from hermes.domain.protocols import Tx
from hermes.jobs.kind import Again, Assignment, Done, JobKind, Result, Retry
from hermes.jobs.queue import Order
from hermes.store import cursor as cursors
from hermes.store import event as events
from hermes.store import job as jobs
from hermes.testing.crash import READY, Probe

SYSTEM = Principal.system("be a victim")
LANES = (None, None, "red", "green", "blue")
STREAMS = ("direct:0", "direct:1", "direct:2")
REST_SECONDS = 300.0


def made_event(stream: str, type_: str, **data: JSON) -> Event:
    name = EventId(str(uuid.uuid4()))
    return Event(name, Stream(stream), type_, "victim", LOCAL, datetime.now(UTC), data)


class Victim:
    def __init__(self, folder: Path, app: App) -> None:
        self.app = app
        self.ledger = Ledger(folder / "acknowledged.log")

    async def put_for_ever(self, lane: str | None) -> None:
        count = 0
        while True:
            count += 1
            try:
                order = Order("victim.work", {"count": count, "clumsy": count % 7 == 0}, lane=lane)
                job = await self.app.queue.put(Principal.owner(), order)
            except HermesError as error:
                print(f"put: {error}", file=sys.stderr)
            else:
                self.ledger.note("job", job.id)
            await anyio.sleep(0.01)

    async def publish_for_ever(self, stream: str) -> None:
        while True:
            event = made_event(stream, "direct.published")
            try:
                await self.app.bus.publish(SYSTEM, event)
            except HermesError as error:
                print(f"publish: {error}", file=sys.stderr)
            else:
                self.ledger.note("event", event.id)
            await anyio.sleep(0.005)

    async def appoint(self) -> None:
        try:
            order = Order("event.publish", {"type": "tick.happened"})
            await self.app.queue.add_schedule(Principal.owner(), "tick", "every 1s", order, missed="all")
        except Conflict:
            return

    async def rest(self) -> None:
        """Wait until every job is over and the witness has seen everything, then let the worker go."""
        with anyio.fail_after(REST_SECONDS):
            # A topic that nobody rings: to count at each event would take more time than the work that is left.
            with self.app.doorbell.listen("rest") as bell:
                while not await self.app.store.read(_is_still):
                    await bell.wait(0.2)
        self.app.worker.drain()


def _is_still(tx: Tx) -> bool:
    counts = jobs.count(tx, SYSTEM)
    if any(counts.get(state) for state in ("queued", "blocked", "running")):
        return False
    seen = {name: position for name, position, _ in cursors.positions(tx, SYSTEM)}
    return seen.get("witness", 0) >= events.last_position(tx, SYSTEM)


def work_kind(target: Target) -> JobKind:
    async def handle(assignment: Assignment) -> Result:
        job = assignment.job
        target.begin(job.id, job.lane)
        try:
            await anyio.sleep(0.002)
            if job.payload.get("clumsy") and job.attempt == 1:
                return Again("clumsy at first")
        finally:
            target.end(job.id, job.lane)
        said = made_event(f"work:{job.lane or 'free'}", "work.done", job=job.id)
        return Done({"said": said.id}, work=lambda tx: events.append(tx, SYSTEM, said))

    retry = Retry(attempts=10_000, first=timedelta(milliseconds=5), longest=timedelta(milliseconds=50))
    return JobKind("victim.work", handle, retry=retry, timeout=timedelta(seconds=20))


def witness() -> Subscription:
    def see(tx: Tx, event: Event) -> None:
        # A new id each time, on purpose: an event that is handled twice shows.
        seen = made_event("seen", "witness.saw", event=event.id, position=event.position)
        events.append(tx, SYSTEM, seen)

    return Subscription("witness", see, Filter(types=("work.done", "direct.published")))


async def main(arguments: argparse.Namespace) -> None:
    folder = Path(arguments.folder)
    flags = {"jobs.lease": "1s", "jobs.poll": "50ms", "jobs.workers": "8"} | dict(
        flag.split("=", 1) for flag in arguments.flag
    )
    if arguments.url:
        flags["database.url"] = arguments.url
    settings = load(home=folder, flags=flags, environ={})
    target = Target(folder, f"{os.getpid()}.{uuid.uuid4().hex[:8]}")
    extras = Extras(kinds=(work_kind(target),), subscriptions=(witness(),))
    async with open_app(settings, probe=Probe.parse(arguments.die_at), extras=extras) as app:
        victim = Victim(folder, app)
        async with anyio.create_task_group() as group:
            await group.start(app.serve)
            print(READY, flush=True)
            if arguments.rest:
                for schedule in await app.queue.find_schedules(SYSTEM):
                    await app.queue.pause_schedule(SYSTEM, schedule.name)
                await victim.rest()
                return
            await victim.appoint()
            if arguments.no_clients:
                return
            for lane in LANES:
                group.start_soon(partial(victim.put_for_ever, lane))
            for stream in STREAMS:
                group.start_soon(victim.publish_for_ever, stream)


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    parser.add_argument("--url", default="")
    parser.add_argument("--die-at", default="")
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--no-clients", action="store_true")
    parser.add_argument("--flag", action="append", default=[])
    return parser.parse_args(argv)


if __name__ == "__main__":
    anyio.run(main, parse(sys.argv[1:]))
