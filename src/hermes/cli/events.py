"""Follow events, or show one.

Patterns are words between dots or colons: * is one word, > is all the rest.
"""

import argparse
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from hermes.cli.action import Actions, add_json, count, perform, position, text
from hermes.cli.ids import named
from hermes.cli.opening import OPERATOR, print_with_app, with_app
from hermes.cli.screen import clean, columns, cut, document, line, local_times, pairs, say
from hermes.domain.event import OUTSIDE, Event
from hermes.domain.protocols import Store, Tx

if TYPE_CHECKING:
    from hermes.app import App
    from hermes.bus.filter import Filter

_LAST = 10
_PAGE = 500
_POLL_SECONDS = 1.0

run = perform


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = Actions.of(parser, "hermes events tail --type 'job.*'")
    tail = actions.add(
        "tail",
        _tail,
        "show the last events, then new ones as they are stored, by whatever process",
        "hermes events tail --type 'job.*' --stream jobs",
    )
    tail.add_argument(
        "--type", metavar="PATTERN", type=text, action="append", help="only types like this; may be repeated"
    )
    tail.add_argument(
        "--stream", metavar="PATTERN", type=text, action="append", help="only streams like this; may be repeated"
    )
    begin = tail.add_mutually_exclusive_group()
    begin.add_argument(
        "--since", metavar="POSITION", type=position, help="begin after this position; 0: with the first"
    )
    begin.add_argument("--last", metavar="N", type=count, help=f"begin with the last N; {_LAST} if not given")
    end = tail.add_mutually_exclusive_group()
    end.add_argument("--once", action="store_true", help="show what is there and end")
    end.add_argument("--count", metavar="N", type=count, help="end when N events have been shown")
    add_json(tail, "one JSON object a line")
    show = actions.add("show", _show, "show one event", "hermes events show 01980a3e-7c51-7f02")
    show.add_argument("id", metavar="ID", type=text, help="the id, or how it begins")
    add_json(show)


def _tail(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> int:
        show = _json_line if arguments.json else _line_in(app.settings.time.zone)
        async with aclosing(_wanted(app, arguments)) as found:
            left = arguments.count
            async for event in found:
                say(show(event))
                left = left and left - 1
                if left == 0:
                    break
        return 0

    return with_app(arguments, work)


async def _wanted(app: "App", arguments: argparse.Namespace) -> AsyncGenerator[Event]:
    """Give the events that are there and wanted, then without end those to come, in the order of positions."""
    wanted = _filter(arguments)
    # Listening begins before the first look, so that nothing falls in between.
    with app.doorbell.listen("events") as bell:
        at = arguments.since
        if at is None:
            earlier, at = await _last(app.store, wanted, arguments.last or _LAST)
            for event in earlier:
                yield event
        while True:
            page = await app.store.read(partial(_after, at))
            for event in page:
                at = event.position
                if wanted.wants(event):
                    yield event
            if page:
                continue
            if arguments.once:
                return
            await bell.wait(_POLL_SECONDS)


def _filter(arguments: argparse.Namespace) -> "Filter":
    from hermes.bus.filter import Filter

    # What outsiders publish is matched by no wildcard of a subscriber's; a person who names no stream wants to see it.
    return Filter(arguments.type or (">",), arguments.stream or (">", f"{OUTSIDE}>"))


async def _last(store: Store, wanted: "Filter", number: int) -> tuple[list[Event], int]:
    """Return the last events that are wanted, the oldest first, and the position up to which that holds."""
    from hermes.store import event as events

    newest = await store.read(lambda tx: events.last_position(tx, OPERATOR))
    found: list[Event] = []
    before = newest + 1
    while len(found) < number:
        page = await store.read(partial(_before, before))
        if not page:
            break
        found += [event for event in page if wanted.wants(event)]
        before = page[-1].position or 0
    return found[:number][::-1], newest


def _after(at: int, tx: Tx) -> list[Event]:
    from hermes.store import event as events

    return events.after(tx, OPERATOR, at, limit=_PAGE)


def _before(at: int, tx: Tx) -> list[Event]:
    from hermes.store import event as events

    return events.before(tx, OPERATOR, at, limit=_PAGE)


def _json_line(event: Event) -> str:
    return line(asdict(event))


def _line_in(zone: str) -> Callable[[Event], str]:
    times = local_times(zone)

    def show(event: Event) -> str:
        number = f"{event.position:>6}  {times(event.at)}"
        about = f"{event.stream}#{event.seq}"
        data = line(event.data) if event.data else ""
        return cut(clean(f"{number}  {event.type:<16}  {about:<14}  {data}").rstrip(), columns())

    return show


def _show(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        from hermes.store import event as events

        event = await named(
            app.store, arguments.id, events.beginning_with, noun="event", listing="hermes events tail --json"
        )
        if arguments.json:
            return [document(asdict(event))]
        return pairs(_facts(event, local_times(app.settings.time.zone)))

    return print_with_app(arguments, work)


def _facts(event: Event, times: Callable[[datetime | None], str]) -> list[tuple[str, str]]:
    facts = [
        ("id", event.id),
        ("type", event.type),
        ("stream", event.stream),
        ("number", f"{event.seq} in its stream, {event.position} of all"),
        ("at", times(event.at)),
        ("source", event.source),
        ("tenant", event.tenant),
        ("subject", event.subject),
        ("data", line(event.data)),
        ("schema", event.schema),
        ("trace", event.trace),
        ("cause", event.cause),
        ("key", event.dedupe_key),
    ]
    return [(name, value) for name, value in facts if value is not None]
