"""How a workspace was before a run changed it: list, compare, go back.

A checkpoint is named by its id, by how the id begins, by the run it was made for, or as `latest`. Going back makes one.
"""

import argparse
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.action import Actions, add_json, perform, text
from hermes.cli.opening import logged
from hermes.cli.options import settings_from
from hermes.cli.screen import clean, document, many, say, table
from hermes.domain.errors import NotFound, Unavailable

if TYPE_CHECKING:
    from hermes.machines.checkpoint import Checkpoints

run = perform


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = Actions.of(parser, "hermes checkpoints list")
    listing = actions.add("list", _list, "show the checkpoints of a workspace", "hermes checkpoints list")
    compare = actions.add("diff", _diff, "show what is not as it was", "hermes checkpoints diff 0194f1")
    back = actions.add("restore", _restore, "bring every file back as it was", "hermes checkpoints restore latest")
    for action in (listing, compare, back):
        action.add_argument(
            "--workspace", metavar="DIR", type=Path, default=Path(), help="the present folder if not given"
        )
        add_json(action)
    for action in (compare, back):
        action.add_argument("name", metavar="CHECKPOINT", type=text, help="its id, how it begins, its run, or latest")


def _with(arguments: argparse.Namespace, work: "Callable[[Checkpoints, Path], Awaitable[int]]") -> int:
    import anyio

    from hermes.domain.clock import SystemClock
    from hermes.machines.checkpoint import Checkpoints

    settings = settings_from(arguments)
    workspace: Path = arguments.workspace
    if not workspace.is_dir():
        raise NotFound(f"{str(workspace)!r} is not a folder; name the workspace")
    kept = Checkpoints(settings.home, SystemClock())
    with logged(settings):
        return anyio.run(work, kept, workspace.resolve())


def _list(arguments: argparse.Namespace) -> int:
    async def work(kept: "Checkpoints", workspace: Path) -> int:
        found = await kept.find(workspace)
        outside = await kept.outside(workspace)
        if arguments.json:
            files = [{"id": one.id, "run": one.run, "at": one.at, "outside": one.path} for one in outside]
            say(document([*({**asdict(one), "workspace": str(one.workspace)} for one in found), *files]))
        elif not found and not outside:
            say("no checkpoints; one is made before the first change of a run")
        else:
            rows = [[one.id, one.at[:19], str(one.files), one.why or one.run, one.note] for one in found]
            for row in table(("CHECKPOINT", "AT", "FILES", "WHY", "NOT IN IT"), rows, whole=("CHECKPOINT", "AT")):
                say(row)
            if outside:
                say("\nfiles outside the workspace, as they were before a run wrote over them:")
            for one in outside:
                say(f"{one.id}  {one.at[:19]}  {clean(one.path)}")
        return 0

    return _with(arguments, work)


def _diff(arguments: argparse.Namespace) -> int:
    async def work(kept: "Checkpoints", workspace: Path) -> int:
        found = await kept.diff(workspace, arguments.name)
        if arguments.json:
            say(document([asdict(one) for one in found]))
            return 0
        for one in found:
            say(f"{one.kind:<8} {clean(one.path)}")
        if not found:
            say("everything is as it was")
        return 0

    return _with(arguments, work)


def _restore(arguments: argparse.Namespace) -> int:
    async def work(kept: "Checkpoints", workspace: Path) -> int:
        other = await kept.restore_outside(workspace, arguments.name)
        if other is not None:
            say(f"{clean(other[0].path)} is as it was")
            say(f"to undo this: hermes checkpoints restore {other[1]}" if other[1] else "it had been removed meanwhile")
            return 0
        done = await kept.restore(workspace, arguments.name)
        if arguments.json:
            say(document({**asdict(done), "restored": len(done.differences) - len(done.failed)}))
        else:
            say(f"{many(len(done.differences) - len(done.failed), 'file')} brought back")
            if done.objects:
                say(f"{many(done.objects, 'object')} of git brought back")
            if done.missing:
                say(f"not covered, and as it was a moment ago: {clean(done.missing)}")
            say(f"to undo this: hermes checkpoints restore {done.undo}")
            if done.undo_missing and done.undo_missing != done.missing:
                say(f"what that does not bring back: {clean(done.undo_missing)}")
        if done.failed:
            raise Unavailable("not brought back: " + "; ".join(done.failed))
        return 0

    return _with(arguments, work)
