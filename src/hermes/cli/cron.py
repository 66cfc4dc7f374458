"""Schedules: what is done when.

A rule is a cron line ('0 9 * * MON-FRI'), an interval ('every 10m'), a pause before doing it once ('30m') or a moment
('2027-03-01T09:00').
"""

import argparse
import re
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from hermes.cli.action import Actions, add_json, json_object, perform, refuse, text
from hermes.cli.opening import OWNER, print_with_app
from hermes.cli.screen import clean, document, local_times, table
from hermes.domain.event import LIVE_ENDINGS
from hermes.domain.schedule import Missed, Schedule

if TYPE_CHECKING:
    from hermes.app import App
    from hermes.jobs.queue import Order

_SHOWN_TIMES = 3
_EVENT_TYPE = re.compile(r"[\w-]+([.:][\w-]+)*")

run = perform


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = Actions.of(parser, "hermes cron add report '0 9 * * MON-FRI' --publish report.wanted")
    add_json(actions.add("list", _list, "show every schedule with its next time", "hermes cron list"))
    _configure_add(actions.add("add", _add, "make a schedule", "hermes cron add tick 'every 10m' --publish demo.tick"))
    for name, act, summary in (
        ("pause", _pause, "let a schedule rest; nothing is made up for later"),
        ("resume", _resume, "let a schedule go on from now"),
        ("run", _run, "do now what a schedule does; its next time stays"),
        ("remove", _remove, "forget a schedule; jobs it has put stay"),
    ):
        parser = actions.add(name, act, summary, f"hermes cron {name} tick")
        parser.add_argument(
            "name", metavar="NAME", type=text, help="the schedule's name; `hermes cron list` shows them"
        )


def _configure_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", type=text, help="a name of your choice")
    parser.add_argument("rule", metavar="RULE", nargs="+", type=text, help="when, such as 'every 10m' or '0 9 * * *'")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--publish", metavar="TYPE", type=_event_type, help="publish an event of this type")
    what.add_argument("--job", metavar="KIND", type=text, help="put a job of this kind")
    parser.add_argument("--data", metavar="JSON", type=json_object, help="with --publish: a JSON object for the event")
    parser.add_argument("--payload", metavar="JSON", type=json_object, help="with --job: a JSON object for the job")
    parser.add_argument("--zone", metavar="ZONE", type=text, help="the time zone of the rule; time.zone if not given")
    parser.add_argument(
        "--missed",
        choices=get_args(Missed),
        default="once",
        help="what becomes of times that passed, more than a minute ago, while Hermes was not up: none, the last, or "
        "each is made up for",
    )
    parser.add_argument("--lane", type=text, help="jobs of one lane run one after the other")


def _event_type(word: str) -> str:
    if not _EVENT_TYPE.fullmatch(word) or word.endswith(LIVE_ENDINGS):
        raise argparse.ArgumentTypeError(
            f"expected words between dots, such as demo.tick, that do not end with {' or '.join(LIVE_ENDINGS)}"
        )
    return word


def _list(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        found = await app.queue.find_schedules(OWNER)
        if arguments.json:
            return [document([asdict(schedule) for schedule in found])]
        if not found:
            return ["no schedules; `hermes cron add` makes one"]
        times = local_times(app.settings.time.zone)
        rows = [[s.name, s.rule, s.zone, _purpose(s), _next(s, times)] for s in found]
        return table(("NAME", "RULE", "ZONE", "DOES", "NEXT"), rows, whole=("NEXT",))

    return print_with_app(arguments, work)


def _purpose(schedule: Schedule) -> str:
    from hermes.jobs.chores import PUBLISH

    is_publishing = schedule.kind == PUBLISH
    return f"publish {schedule.payload.get('type')}" if is_publishing else f"job {schedule.kind}"


def _next(schedule: Schedule, times: Callable[[datetime | None], str]) -> str:
    if schedule.is_paused:
        return "paused"
    return times(schedule.next_at) if schedule.next_at else "over"


def _add(arguments: argparse.Namespace) -> int:
    if arguments.publish and arguments.payload is not None:
        refuse(arguments, "argument --payload: goes with --job; with --publish it is --data")
    if arguments.job and arguments.data is not None:
        refuse(arguments, "argument --data: goes with --publish; with --job it is --payload")

    async def work(app: "App") -> list[str]:
        schedule = await app.queue.add_schedule(
            OWNER,
            arguments.name,
            " ".join(arguments.rule),
            _order(arguments, app),
            zone=arguments.zone or app.settings.time.zone,
            missed=arguments.missed,
        )
        times = local_times(app.settings.time.zone)
        coming = [f"  {times(at)}" for at in _coming(schedule)]
        return [f"{clean(schedule.name)}: {clean(_purpose(schedule))}, next at ({app.settings.time.zone})", *coming]

    return print_with_app(arguments, work, needs_extras=True)


def _order(arguments: argparse.Namespace, app: "App") -> "Order":
    from hermes.cli.jobs import require_kind
    from hermes.jobs.chores import PUBLISH
    from hermes.jobs.queue import Order

    if arguments.publish:
        return Order(PUBLISH, {"type": arguments.publish, "data": arguments.data or {}}, lane=arguments.lane)
    require_kind(arguments.job, arguments.payload or {}, app.kinds)
    return Order(arguments.job, arguments.payload or {}, lane=arguments.lane)


def _coming(schedule: Schedule) -> list[datetime]:
    from hermes.jobs import rule as rules

    times: list[datetime] = []
    at = schedule.next_at
    while at is not None and len(times) < _SHOWN_TIMES:
        times.append(at)
        at = rules.following(schedule.rule, schedule.zone, at)
    return times


def _pause(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        schedule = await app.queue.pause_schedule(OWNER, arguments.name)
        return [f"{clean(schedule.name)} is paused; `hermes cron resume {clean(schedule.name)}` lets it go on"]

    return print_with_app(arguments, work)


def _resume(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        schedule = await app.queue.resume_schedule(OWNER, arguments.name)
        return [f"{clean(schedule.name)} goes on at {_next(schedule, local_times(app.settings.time.zone))}"]

    return print_with_app(arguments, work)


def _run(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        return [(await app.queue.run_schedule(OWNER, arguments.name)).id]

    return print_with_app(arguments, work)


def _remove(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        return [f"{clean((await app.queue.remove_schedule(OWNER, arguments.name)).name)} is removed"]

    return print_with_app(arguments, work)
