"""API keys: create, list, revoke.

A key is shown once, when it is made; Hermes keeps only its digest.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING

from hermes.cli.action import Actions, add_json, duration, perform, text
from hermes.cli.opening import OWNER, print_with_app
from hermes.cli.screen import clean, document, local_times, pairs, table
from hermes.domain.key import ApiKey

if TYPE_CHECKING:
    from hermes.app import App

run = perform


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = Actions.of(parser, "hermes keys create laptop --expires 30d")
    create = actions.add(
        "create", _create, "make a key and show it once", "hermes keys create laptop --scope jobs:read --expires 30d"
    )
    create.add_argument("name", metavar="NAME", type=text, help="what the key is for")
    create.add_argument(
        "--scope",
        metavar="SCOPE",
        type=_scope,
        action="append",
        help="what it may do, such as jobs:read; * if not given",
    )
    create.add_argument("--expires", metavar="TIME", type=duration, help="how long it is valid, such as 30d")
    add_json(actions.add("list", _list, "show every key, also those that open nothing any more", "hermes keys list"))
    revoke = actions.add("revoke", _revoke, "end a key at once", "hermes keys revoke laptop")
    revoke.add_argument(
        "word",
        metavar="WORD",
        type=text,
        help="the key's name, the key itself, or how its id or it begins (six characters or more)",
    )


def _scope(word: str) -> str:
    if not word or word != "".join(word.split()):
        raise argparse.ArgumentTypeError(f"expected one scope without spaces, such as jobs:read, got {word!r}")
    return text(word)


def _create(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        expires_at = app.clock.now() + arguments.expires if arguments.expires is not None else None
        owner = (await app.accounts.owner()).principal()
        issued = await app.accounts.issue(
            owner, arguments.name, scopes=arguments.scope or ("*",), expires_at=expires_at
        )
        if not sys.stdout.isatty():
            return [issued.secret]
        facts = _facts(issued.key, local_times(app.settings.time.zone))
        return [issued.secret, "", *facts, "", "This is the only time the key is shown; keep it now."]

    return print_with_app(arguments, work)


def _facts(key: ApiKey, times: Callable[[datetime | None], str]) -> list[str]:
    scopes = " ".join(sorted(key.scopes))
    expires = times(key.expires_at) if key.expires_at else "never"
    return pairs([("name", key.name), ("id", key.id), ("scopes", scopes), ("expires", expires)])


def _list(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        found = await app.accounts.find(OWNER)
        if arguments.json:
            return [document([_without_digest(key) for key in found])]
        if not found:
            return ["no keys; `hermes keys create NAME` makes one"]
        now, times = app.clock.now(), local_times(app.settings.time.zone)
        rows = [
            [key.prefix, key.name, " ".join(sorted(key.scopes)), _state(key, now), times(key.used_at)] for key in found
        ]
        return table(("KEY", "NAME", "SCOPES", "STATE", "LAST USED"), rows, whole=("KEY", "STATE", "LAST USED"))

    return print_with_app(arguments, work)


def _state(key: ApiKey, now: datetime) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "valid"
    return "expired" if key.expires_at <= now else f"until {key.expires_at:%Y-%m-%d}"


def _without_digest(key: ApiKey) -> dict[str, object]:
    return {name: value for name, value in asdict(key).items() if name != "digest"}


def _revoke(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        key = await app.accounts.revoke(OWNER, arguments.word)
        at = local_times(app.settings.time.zone)(key.revoked_at)
        return [f"{clean(key.name)} ({key.prefix}…) is revoked since {at}"]

    return print_with_app(arguments, work)
