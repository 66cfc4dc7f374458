"""What a person has said yes to for more than once: list it, take it back.

What is taken back is asked about again, from the next time on.
"""

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from hermes.cli.action import Actions, add_json, count, perform, text
from hermes.cli.ids import named, shortened
from hermes.cli.opening import OWNER, print_with_app
from hermes.cli.screen import clean, document, local_times, many, table

if TYPE_CHECKING:
    from hermes.app import App

run = perform


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = Actions.of(parser, "hermes approvals list")
    listing = actions.add("list", _list, "show what may be done without asking again", "hermes approvals list")
    listing.add_argument("--all", action="store_true", help="every question, also those answered once or with no")
    listing.add_argument("--limit", metavar="N", type=count, default=100, help="how many at most; 100 if not given")
    add_json(listing)
    revoke = actions.add("revoke", _revoke, "take a yes back", "hermes approvals revoke 0194f1c2a3")
    revoke.add_argument("id", metavar="ID", type=text, help="its id, or how it begins (six characters or more)")


def _list(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        from hermes.effects.shown import covered
        from hermes.store import approval

        limit, only_grants = arguments.limit, not arguments.all
        found = await app.store.read(lambda tx: approval.find(tx, OWNER, limit=limit, only_grants=only_grants))
        if arguments.json:
            return [document([asdict(one) for one in found])]
        if not found:
            return ["nothing; a yes for the session or for always would be here"]
        times = local_times(app.settings.time.zone)
        rows = [
            [
                name,
                one.scope if one.state == "given" else one.state,
                times(one.created_at),
                covered(one.pattern) if only_grants else " ".join(one.shown.split()),
            ]
            for name, one in zip(shortened([one.id for one in found]), found, strict=True)
        ]
        return table(("ID", "FOR", "AT", "COVERS" if only_grants else "WAS ASKED"), rows, whole=("ID", "FOR", "AT"))

    return print_with_app(arguments, work)


def _revoke(arguments: argparse.Namespace) -> int:
    async def work(app: "App") -> list[str]:
        from hermes.effects.shown import covered
        from hermes.store import approval

        listing = "hermes approvals list"
        one = await named(app.store, arguments.id, approval.beginning_with, noun="approval", listing=listing)
        ended = await app.store.write(lambda tx: approval.revoke(tx, OWNER, one.pattern))
        return [f"taken back ({many(ended, 'yes', 'yeses')}): {clean(covered(one.pattern))}"]

    return print_with_app(arguments, work)
