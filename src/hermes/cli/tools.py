"""What an assistant can do: list its tools, switch them on and off, try one.

A name is a tool, such as read_file, or a toolset, such as file; telegram:file counts on that platform only.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.action import Actions, add_json, json_object, perform, text
from hermes.cli.opening import OWNER, with_app
from hermes.cli.options import home_from, settings_from
from hermes.cli.screen import cut, document, say, table
from hermes.config import Settings
from hermes.domain.errors import Denied

if TYPE_CHECKING:
    from hermes.app import App
    from hermes.domain.tool import ToolSpec
    from hermes.effects.executor import Performed
    from hermes.tools.choosing import Choosing

run = perform
_LONGEST = 70


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = Actions.of(parser, "hermes tools list")
    listing = actions.add(
        "list", _list, "show every tool, and whether it is on", "hermes tools list --platform telegram"
    )
    listing.add_argument("--platform", type=text, default="cli", help="as it is there; cli if not given")
    add_json(listing)
    for name, act, summary in (("enable", _enable, "switch tools on"), ("disable", _disable, "switch tools off")):
        switch = actions.add(name, act, summary, f"hermes tools {name} terminal telegram:file")
        switch.add_argument("names", metavar="NAME", nargs="+", type=text, help="a tool, a toolset, or PLATFORM:NAME")
    trial = actions.add(
        "run", _run, "call one tool in the present folder", """hermes tools run read_file --json '{"path": "a.txt"}'"""
    )
    trial.add_argument("name", metavar="NAME", type=text, help="the tool")
    trial.add_argument("--json", metavar="ARGS", type=json_object, default={}, help="its arguments, a JSON object")


def _list(arguments: argparse.Namespace) -> int:
    from hermes.app.workbench import choosing_of

    settings = settings_from(arguments)
    choosing = choosing_of(settings, arguments.platform)
    specs = sorted(_specs(settings), key=lambda spec: (spec.toolset, spec.name))
    if arguments.json:
        say(document([_as_json(spec, choosing) for spec in specs]))
        return 0
    rows = [[one.name, one.toolset, one.access, _state(one, choosing), cut(one.description, _LONGEST)] for one in specs]
    for row in table(("TOOL", "TOOLSET", "ACCESS", "STATE", "WHAT IT DOES"), rows, whole=("TOOL", "TOOLSET", "STATE")):
        say(row)
    return 0


def _as_json(spec: "ToolSpec", choosing: "Choosing") -> dict[str, object]:
    return {
        "name": spec.name,
        "toolset": spec.toolset,
        "access": spec.access,
        "state": _state(spec, choosing),
        "requires_env": list(spec.requires_env),
        "description": spec.description,
        "parameters": spec.parameters,
    }


def _state(spec: "ToolSpec", choosing: "Choosing") -> str:
    from hermes.config.variables import process_environment

    if not choosing.is_on(spec):
        return "off"
    missing = [name for name in spec.requires_env if name not in process_environment()]
    return f"needs {', '.join(missing)}" if missing else "on"


def _specs(settings: Settings) -> list["ToolSpec"]:
    from hermes.app import Extras
    from hermes.domain.clock import SystemClock
    from hermes.effects.spill import Spill
    from hermes.tools import built_in

    groups = (*built_in(Spill(settings.home, SystemClock())).toolsets, *Extras.installed().toolsets)
    return [one.spec for group in groups for one in group.tools()]


def _enable(arguments: argparse.Namespace) -> int:
    return _switch(arguments, is_on=True)


def _disable(arguments: argparse.Namespace) -> int:
    return _switch(arguments, is_on=False)


def _switch(arguments: argparse.Namespace, *, is_on: bool) -> int:
    from hermes.config.changes import Editor
    from hermes.tools.choosing import require_known

    settings = settings_from(arguments)
    require_known(arguments.names, sorted({name for one in _specs(settings) for name in (one.name, one.toolset)}))
    names = dict.fromkeys(arguments.names)
    off = [name for name in settings.tools.disabled if name not in names] + ([] if is_on else list(names))
    only = list(settings.tools.enabled)
    editor, said = Editor(home_from(arguments)), []
    if tuple(off) != settings.tools.disabled:
        said += editor.put("tools.disabled", ",".join(off))
    if is_on and only and not names.keys() <= set(only):
        said += editor.put("tools.enabled", ",".join(dict.fromkeys([*only, *names])))
    for line in said or [f"{', '.join(names)}: {'on' if is_on else 'off'} already"]:
        say(line)
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from hermes.app.workbench import open_workbench
    from hermes.effects.tool import to_json

    async def work(app: "App") -> "Performed":
        async with open_workbench(app, Path.cwd(), OWNER) as bench:
            return await bench.perform(arguments.name, to_json(arguments.json))

    done = with_app(arguments, work, needs_extras=True)
    if done.refused is not None:
        import json

        raise Denied(str(json.loads(done.result.text)["error"]))
    say(done.result.text)
    return 1 if done.result.is_error else 0
