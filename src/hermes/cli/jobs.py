"""Look at jobs, put one, retry or cancel them.

An id may be cut short, as long as no other job begins so.
"""

import argparse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from hermes.cli.action import (
    Actions,
    add_json,
    count,
    duration,
    json_object,
    perform,
    priority,
    text,
)
from hermes.cli.command import failed
from hermes.cli.ids import named, shortened
from hermes.cli.opening import OPERATOR, OWNER, print_with_app, with_app
from hermes.cli.screen import clean, document, line, local_times, pairs, say, table, warn
from hermes.domain.errors import HermesError, NotFound
from hermes.domain.event import Data
from hermes.domain.job import Attempt, Job, JobId, JobState
from hermes.domain.protocols import Store

if TYPE_CHECKING:
    from hermes.app import App
    from hermes.jobs.kind import JobKind

run = perform


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = Actions.of(parser, "hermes jobs list --state dead")
    listing = actions.add("list", _list, "show jobs, the newest first", "hermes jobs list --state running")
    listing.add_argument("--state", choices=[str(state) for state in JobState], help="only jobs in this state")
    listing.add_argument("--kind", type=text, help="only jobs of this kind, such as event.publish")
    _limited(listing)
    dead = actions.add("dead", _list, "show jobs that nobody will try again by himself", "hermes jobs dead")
    dead.set_defaults(state=str(JobState.DEAD), kind=None)
    _limited(dead)
    show = actions.add("show", _show, "show one job with every attempt at it", "hermes jobs show 01980a3e-7c51")
    show.add_argument("id", metavar="ID", type=text, help="the id, or how it begins")
    add_json(show)
    retry = actions.add(
        "retry", _retry, "put dead or cancelled jobs back in line", "hermes jobs retry 01980a3e-7c51-7f02"
    )
    cancel = actions.add("cancel", _cancel, "cancel jobs that wait or run", "hermes jobs cancel 01980a3e-7c51-7f02")
    for several in (retry, cancel):
        several.add_argument("ids", metavar="ID", nargs="+", type=text, help="the id, or how it begins")
    put = actions.add(
        "put",
        _put,
        "put a job in line and print its id",
        """hermes jobs put event.publish --payload '{"type": "demo.hello"}' --in 10m""",
    )
    put.add_argument("kind", metavar="KIND", type=text, help="what is to be done, such as db.backup")
    put.add_argument("--payload", metavar="JSON", type=json_object, default={}, help="a JSON object for its worker")
    put.add_argument("--lane", type=text, help="jobs of one lane run one after the other")
    put.add_argument("--key", type=text, help="the same job is put only once under this key")
    put.add_argument("--in", dest="delay", metavar="TIME", type=duration, help="not before this time has passed")
    put.add_argument("--priority", metavar="N", type=priority, default=0, help="higher ones go first; 0 if not given")


def _limited(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", metavar="N", type=count, default=50, help="show at most so many; 50 if not given")
    add_json(parser)


def _list(arguments: argparse.Namespace) -> int:
    state = JobState(arguments.state) if arguments.state else None

    async def work(app: "App") -> list[str]:
        found = await app.queue.find(OPERATOR, state=state, kind=arguments.kind, limit=arguments.limit + 1)
        shown = found[: arguments.limit]
        if arguments.json:
            return [document([asdict(job) for job in shown])]
        rows = _table(shown, local_times(app.settings.time.zone), is_dead=state is JobState.DEAD)
        if len(found) > len(shown):
            rows.append(f"… there are more; --limit {arguments.limit * 2} shows twice as many")
        return rows

    return print_with_app(arguments, work)


def _table(found: Sequence[Job], times: Callable[[datetime | None], str], *, is_dead: bool) -> list[str]:
    if not found:
        return ["no jobs"]
    names = shortened([job.id for job in found])
    if is_dead:
        rows = [[n, j.kind, times(j.finished_at), j.error or "-"] for n, j in zip(names, found, strict=True)]
        return table(("ID", "KIND", "DIED", "WHY"), rows, whole=("ID", "DIED"))
    rows = [
        [n, str(j.state), j.kind, j.lane or "-", str(j.attempt), times(j.finished_at or j.run_at)]
        for n, j in zip(names, found, strict=True)
    ]
    return table(("ID", "STATE", "KIND", "LANE", "TRY", "DUE OR OVER"), rows, whole=("ID", "STATE", "DUE OR OVER"))


def _show(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        job = await _named(app.store, arguments.id)
        attempts = await app.queue.attempts(OPERATOR, job.id)
        if arguments.json:
            return [document({**asdict(job), "attempts": [asdict(attempt) for attempt in attempts]})]
        times = local_times(app.settings.time.zone)
        return [*pairs(_facts(job, times)), *_tries(attempts, times)]

    return print_with_app(arguments, work)


def _tries(attempts: Sequence[Attempt], times: Callable[[datetime | None], str]) -> list[str]:
    if not attempts:
        return []
    rows = [
        [str(a.number), times(a.started_at), times(a.ended_at), a.outcome or "running", a.error or "-"]
        for a in attempts
    ]
    return ["", *table(("TRY", "BEGAN", "ENDED", "OUTCOME", "ERROR"), rows, whole=("TRY", "BEGAN", "ENDED"))]


def _facts(job: Job, times: Callable[[datetime | None], str]) -> list[tuple[str, str]]:
    facts = [
        ("id", job.id),
        ("kind", job.kind),
        ("state", f"{job.state}, to be cancelled" if job.is_cancelling else str(job.state)),
        ("for", f"{job.principal.name} of {job.principal.tenant}"),
        ("payload", line(job.payload)),
        ("lane", job.lane),
        ("key", job.dedupe_key),
        ("priority", str(job.priority) if job.priority else None),
        ("created", times(job.created_at)),
        ("due", times(job.run_at)),
        ("deadline", times(job.deadline) if job.deadline else None),
        ("lease until", times(job.lease_until) if job.lease_until else None),
        ("over", times(job.finished_at) if job.finished_at else None),
        ("cause", job.cause),
        ("result", None if job.result is None else line(job.result)),
        ("error", job.error),
    ]
    return [(name, value) for name, value in facts if value is not None]


def _retry(arguments: argparse.Namespace) -> int:
    return _each(arguments, lambda app, job: app.queue.retry(OPERATOR, job), lambda _job: "is back in line")


def _cancel(arguments: argparse.Namespace) -> int:
    def said(job: Job) -> str:
        return "is told to stop" if job.state is JobState.RUNNING else "is cancelled"

    return _each(arguments, lambda app, job: app.queue.cancel(OPERATOR, job), said)


def _each(
    arguments: argparse.Namespace,
    act: "Callable[[App, JobId], Awaitable[Job]]",
    said: Callable[[Job], str],
) -> int:
    """Do the same with several jobs; one that is refused does not keep the others from it."""

    async def work(app: "App") -> int:
        jobs = {job.id: job for job in [await _named(app.store, word) for word in arguments.ids]}
        code = 0
        for job_id in jobs:
            try:
                job = await act(app, job_id)
            except HermesError as error:
                code = failed(error)
            else:
                say(f"{job.id} {said(job)}")
        return code

    return with_app(arguments, work)


def _put(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        from hermes.jobs.queue import Order

        require_kind(arguments.kind, arguments.payload, app.kinds)
        began = app.clock.now()
        order = Order(
            arguments.kind,
            arguments.payload,
            dedupe_key=arguments.key,
            lane=arguments.lane,
            priority=arguments.priority,
            run_at=app.clock.now() + arguments.delay if arguments.delay else None,
        )
        job = await app.queue.put(OWNER, order)
        if arguments.key and job.created_at and job.created_at < began:
            warn(f"note: there is a job with the key {clean(arguments.key)!r} already; nothing new was put")
        return [job.id]

    return print_with_app(arguments, work, needs_extras=True)


def require_kind(kind: str, payload: Data, known: "Mapping[str, JobKind]") -> None:
    """Raise for a job that can only wait for ever or fail: NotFound for the kind, Misconfigured for the payload."""
    if kind in known:
        known[kind].check(payload)
        return
    import difflib

    near = difflib.get_close_matches(kind, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(sorted(known))}"
    raise NotFound(f"nobody here can do a job of the kind {kind!r}, so it would wait for ever; {hint}")


async def _named(store: Store, word: str) -> Job:
    from hermes.store import job as jobs

    return await named(store, word, jobs.beginning_with, noun="job", listing="hermes jobs list")
