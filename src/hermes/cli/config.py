"""Show, explain and change settings.

A value comes from the strongest place that gives one: --set, then the environment, then .env, then config.yaml (both in
the home), then the default. Secrets are shown as [secret].
"""

import argparse
import json
import shlex
import subprocess
import sys

from hermes.cli.action import Actions, perform
from hermes.cli.options import flags_from, home_from, settings_from, tell
from hermes.config import SCHEMA, Secret, Settings, Url
from hermes.config.changes import Editor, named
from hermes.config.files import make_home, replace
from hermes.config.migrations import MIGRATIONS, VERSION_KEY, newest
from hermes.config.reading import CONFIG, read
from hermes.config.variables import process_environment
from hermes.domain.errors import HermesError, NotFound, Unsupported

run = perform


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    actions = Actions.of(parser, "hermes config explain jobs.workers")
    show = actions.add("show", _show, "print every setting", "hermes config show --origin")
    show.add_argument("--origin", action="store_true", help="also say where each value comes from")
    show.add_argument("--json", action="store_true", help="print one JSON object, by section and key")
    get = actions.add("get", _get, "print the value of one setting", "hermes config get jobs.workers")
    _key(get)
    get.add_argument("--reveal", action="store_true", help="print a secret as it is")
    put = actions.add(
        "set",
        _set,
        "write one setting: secrets to .env, all else to config.yaml, whose comments and order stay",
        "hermes config set jobs.workers 4",
    )
    _key(put)
    put.add_argument("value", metavar="VALUE", help="what to write; `hermes config explain KEY` says what may be")
    unset = actions.add(
        "unset", _unset, "take one setting out of config.yaml and .env", "hermes config unset jobs.workers"
    )
    _key(unset)
    explain = actions.add(
        "explain",
        _explain,
        "say what a setting is for, and name every place that gives it a value",
        "hermes config explain database.url",
    )
    _key(explain)
    actions.add("path", _path, "print where config.yaml is, or would be", 'cat "$(hermes config path)"')
    actions.add(
        "edit",
        _edit,
        "open config.yaml in $VISUAL or $EDITOR, then check it",
        "EDITOR=nano hermes config edit",
    )
    check = actions.add("check", _check, "read every place and name all that is wrong", "hermes config check --fix")
    check.add_argument(
        "--fix",
        action="store_true",
        help="write config.yaml in the newest version, keeping a copy, and make .env readable by its owner only",
    )


def _key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="a setting, such as jobs.workers; `hermes config show` lists them")


def _show(arguments: argparse.Namespace) -> int:
    settings = settings_from(arguments)
    if arguments.json:
        _print(json.dumps(_as_json(settings, with_origin=arguments.origin), indent=2, ensure_ascii=False))
        return 0
    shown = {key: _shown(settings, key) for key in SCHEMA.settings}
    wide, long = max(map(len, shown)), max(map(len, shown.values()))
    for key, text in shown.items():
        line = (
            f"{key:<{wide}}  {text:<{long}}  {settings.origin(key)}" if arguments.origin else f"{key:<{wide}}  {text}"
        )
        _print(line.rstrip())
    return 0


def _get(arguments: argparse.Namespace) -> int:
    one = named(arguments.key)
    value = settings_from(arguments).value(one.key)
    _print(value.reveal() if arguments.reveal and isinstance(value, (Secret, Url)) else one.kind.show(value))
    return 0


def _set(arguments: argparse.Namespace) -> int:
    for line in Editor(home_from(arguments)).put(arguments.key, arguments.value):
        _print(line)
    _warn_when_overruled(arguments, is_set=True)
    return 0


def _unset(arguments: argparse.Namespace) -> int:
    for line in Editor(home_from(arguments)).drop(arguments.key) or [f"{arguments.key} was in neither file"]:
        _print(line)
    _warn_when_overruled(arguments, is_set=False)
    return 0


def _warn_when_overruled(arguments: argparse.Namespace, *, is_set: bool) -> None:
    given = read(home_from(arguments), flags=flags_from(arguments), environ=process_environment()).given
    places = given.get(arguments.key, [])
    if len(places) > is_set:
        tell((f"{places[-1].origin} also gives {arguments.key}, and wins",))


def _explain(arguments: argparse.Namespace) -> int:
    one = named(arguments.key)
    settings = settings_from(arguments)
    given = settings.given.get(one.key, ())
    places = [(str(g.origin), one.kind.show(g.value)) for g in reversed(given)]
    places.append(("default", one.kind.show(one.default)))
    wide = max(len(place) for place, _ in places)
    _print(f"{one.key}: {one.about.doc}\n")
    _print(f"type      {one.expects}")
    _print(f"default   {one.kind.show(one.default) or 'none'}")
    _print(f"value     {_shown(settings, one.key) or 'none'}")
    _print(f"variable  {', '.join(one.names)}\n")
    _print("given by, the strongest first (* wins):")
    for number, (place, text) in enumerate(places):
        _print(f"{' ' if number else '*'} {place:<{wide}}  {text or 'none'}")
    return 0


def _path(arguments: argparse.Namespace) -> int:
    _print(str(home_from(arguments) / CONFIG))
    return 0


def _edit(arguments: argparse.Namespace) -> int:
    home, environ = home_from(arguments), process_environment()
    editor = shlex.split(environ.get("VISUAL") or environ.get("EDITOR") or "")
    if not editor:
        raise Unsupported(f"no editor is known; set EDITOR, or open {str(home / CONFIG)!r} yourself")
    make_home(home)
    if not (home / CONFIG).exists():
        replace(home / CONFIG, f"{VERSION_KEY}: {newest(MIGRATIONS)}\n")
    try:
        # The user's own command, split but not given to a shell.
        code = subprocess.run([*editor, str(home / CONFIG)], check=False).returncode  # noqa: S603
    except OSError as error:
        raise NotFound(f"the editor {editor[0]!r} cannot be started ({error.strerror}); set EDITOR") from None
    if code:
        raise HermesError(f"the editor {editor[0]!r} ended with code {code}; nothing was checked")
    return _check(arguments)


def _check(arguments: argparse.Namespace) -> int:
    if getattr(arguments, "fix", False):
        for line in Editor(home_from(arguments)).fix():
            _print(line)
    settings = settings_from(arguments)
    _print(f"{settings.home}: the settings are in order")
    return 0


def _shown(settings: Settings, key: str) -> str:
    return SCHEMA.settings[key].kind.show(settings.value(key))


def _as_json(settings: Settings, *, with_origin: bool) -> dict[str, object]:
    whole: dict[str, dict[str, object]] = {section: {} for section in SCHEMA.sections}
    for key, one in SCHEMA.settings.items():
        value = settings.value(key)
        plain = value if value is None or isinstance(value, (bool, int, float)) else one.kind.show(value)
        whole[one.section][one.name] = {"value": plain, "origin": str(settings.origin(key))} if with_origin else plain
    return {"home": str(settings.home), **whole}


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
