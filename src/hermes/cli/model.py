"""The model: which one is asked, what else there is, and whether it answers."""

import argparse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from hermes.cli.action import Actions, add_json, perform, text
from hermes.cli.options import settings_from
from hermes.cli.screen import clean, document, pairs, say, table

if TYPE_CHECKING:
    from hermes.config import Settings
    from hermes.llm.choice import Choice
    from hermes.llm.vendor import Vendor

T = TypeVar("T")

run = perform

_QUESTION = "Answer with the one word: ready"
_LONGEST = 512


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = Actions.of(parser, "hermes model set anthropic/claude-sonnet-5-5")
    listing = actions.add(
        "list", _list, "show the providers, or ask one for its models", "hermes model list openrouter"
    )
    listing.add_argument("provider", metavar="PROVIDER", nargs="?", type=text, help="whose models to show")
    add_json(listing)
    put = actions.add("set", _set, "use this model from now on", "hermes model set ollama/qwen3:8b")
    put.add_argument("name", metavar="NAME", type=text, help="the model, or provider/model")
    pull = actions.add(
        "pull", _pull, "bring the small model that needs neither key nor network", "hermes model pull --yes"
    )
    pull.add_argument(
        "name", metavar="NAME", nargs="?", type=text, help="which weights; those of the default if not given"
    )
    pull.add_argument("--yes", action="store_true", help="agree to the download, which is shown")
    test = actions.add("test", _test, "ask the model for one word, and say how it went", "hermes model test")
    test.add_argument("name", metavar="NAME", nargs="?", type=text, help="the model; that of the settings if not given")
    add_json(test)


def _list(arguments: argparse.Namespace) -> int:
    settings = settings_from(arguments)
    if arguments.provider is not None:
        return _offered(arguments, settings)
    from hermes.llm.catalogue.vendors import VENDORS
    from hermes.llm.choice import configured

    ready = configured(settings)
    chosen = _chosen(settings)
    rows = []
    for one in VENDORS:
        is_used = chosen is not None and chosen.vendor.name == one.name
        state = "used" if is_used else "ready" if one in ready else _wants(one, settings)
        model = chosen.model if chosen is not None and is_used else one.model
        rows.append({"name": one.name, "state": state, "model": model, "summary": one.summary})
    headings = ("PROVIDER", "STATE", "MODEL", "WHAT IT IS")
    return _print(arguments, rows, headings, [list(row.values()) for row in rows])


def _print(
    arguments: argparse.Namespace,
    rows: Sequence[Mapping[str, object]],
    headings: Sequence[str],
    cells: Sequence[Sequence[str]],
) -> int:
    if arguments.json:
        say(document(rows))
        return 0
    for line in table(headings, cells, whole=headings[:2]):
        say(line)
    return 0


def _wants(one: "Vendor", settings: "Settings") -> str:
    if one.wire == "local":
        from hermes.llm.catalogue.weights import weights

        return "ready" if weights(one.model).is_there(settings.home) else "not here"
    if one.is_local:
        return "local"
    return "needs a key" if one.needs_key else "needs model.base_url"


def _chosen(settings: "Settings") -> "Choice | None":
    from hermes.domain.errors import Misconfigured, NotFound
    from hermes.llm.choice import choose

    try:
        return choose(settings)
    except (Misconfigured, NotFound):
        return None


def _offered(arguments: argparse.Namespace, settings: "Settings") -> int:
    from hermes.domain.clock import SystemClock
    from hermes.llm.catalogue.models import facts
    from hermes.llm.choice import vendor_choice
    from hermes.llm.opening import offered
    from hermes.net.http import Http

    choice = vendor_choice(settings, arguments.provider)
    if choice.wire == "local":
        return _weights(arguments, settings)

    async def ask() -> list[str]:
        async with Http().opened() as http:
            return await offered(choice, SystemClock(), http)

    rows = []
    for name in _run(ask):
        known = facts(choice.vendor.name, name) if not choice.vendor.is_local else None
        price = known.price if known else None
        rows.append(
            {
                "name": f"{choice.vendor.name}/{name}",
                "window": known.window if known else None,
                "input": price[0] if price else None,
                "output": price[1] if price else None,
            }
        )
    numbers = ("window", "input", "output")
    cells = [[str(row["name"]), *("-" if row[n] is None else f"{row[n]:,}" for n in numbers)] for row in rows]
    return _print(arguments, rows, ("MODEL", "WINDOW", "$ IN/M", "$ OUT/M"), cells)


def _weights(arguments: argparse.Namespace, settings: "Settings") -> int:
    from hermes.llm.catalogue.weights import KNOWN

    rows = [
        {"name": f"local/{one.name}", "window": settings.local.window, "input": 0, "output": 0}
        | {"state": "here" if one.is_there(settings.home) else "`hermes model pull` brings it"}
        for one in KNOWN
    ]
    cells = [[str(row["name"]), f"{row['window']:,}", str(row["state"])] for row in rows]
    return _print(arguments, rows, ("MODEL", "WINDOW", "STATE"), cells)


def _pull(arguments: argparse.Namespace) -> int:
    from hermes.cli.pull import pull
    from hermes.llm.catalogue.weights import QWEN, weights

    wanted = QWEN if arguments.name is None else weights(arguments.name)
    pull(settings_from(arguments), wanted, is_agreed=arguments.yes)
    return 0


def _set(arguments: argparse.Namespace) -> int:
    from hermes.config.changes import Editor
    from hermes.llm.choice import choose

    settings = settings_from(arguments)
    # Other settings may lead the name to another provider than it seems to say.
    choice = choose(replace(settings, model=replace(settings.model, default=arguments.name)))
    for line in Editor(settings.home).put("model.default", arguments.name):
        say(line)
    say(f"{clean(choice.name)} is used from now on; `hermes model test` asks it for one word")
    return 0


def _test(arguments: argparse.Namespace) -> int:
    from hermes.app.model import open_model
    from hermes.domain.clock import SystemClock
    from hermes.domain.message import Message, MessageId, TextPart
    from hermes.domain.model import Delta, Reply, Request
    from hermes.llm.choice import choose
    from hermes.llm.prices import cost

    settings, clock = settings_from(arguments), SystemClock()
    choice = choose(settings, arguments.name)
    times: list[float] = []

    def show(delta: Delta) -> None:
        if not times and delta.kind != "note":
            times.append(clock.monotonic())

    async def ask() -> Reply:
        async with open_model(choice, settings, clock) as provider:
            question = Message(MessageId(clock.new_id()), "user", (TextPart(_QUESTION),), clock.now())
            request = Request(provider.prefix("", ()), [provider.encode(question)], max_tokens=_LONGEST)
            return await provider.call(request, show)

    begun = clock.monotonic()
    reply = _run(ask)
    ended = clock.monotonic()
    spent = cost(choice.name, reply.usage)
    facts = {
        "model": choice.name,
        "answers as": reply.model,
        "at": choice.base_url or "this machine",
        "says": reply.message.text.strip()[:200],
        "first token": round((times[0] if times else ended) - begun, 3),
        "all of it": round(ended - begun, 3),
        "tokens": reply.usage.input + reply.usage.output,
        "cost": None if spent is None else spent / 1_000_000,
    }
    if arguments.json:
        say(document(facts))
        return 0
    shown = facts | {
        "first token": f"after {facts['first token']} s",
        "all of it": f"after {facts['all of it']} s",
        "tokens": f"{reply.usage.input} in, {reply.usage.output} out",
        "cost": "unknown" if spent is None else f"${spent / 1_000_000:.6f}",
    }
    for line in pairs([(name, str(value)) for name, value in shown.items()]):
        say(line)
    return 0


def _run(work: Callable[[], Awaitable[T]]) -> T:
    import anyio

    return anyio.run(work)
