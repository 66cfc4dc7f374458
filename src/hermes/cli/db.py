"""State, migration, backup, restore and check of the database.

Looking changes nothing: `status` and `check` also work on a damaged file and on one that a newer Hermes has written.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.action import Actions, perform
from hermes.cli.command import USAGE, failed
from hermes.cli.opening import naming_backup, newest_backup, with_app
from hermes.cli.options import settings_from
from hermes.cli.screen import clean, local_times, many, pairs, say, size, table, warn
from hermes.config import Settings
from hermes.domain.clock import SystemClock
from hermes.domain.errors import Conflict, Damaged, HermesError, NotFound, Unsupported

if TYPE_CHECKING:
    from hermes.app import App
    from hermes.store.backup import Progress, Report
    from hermes.store.database import Place
    from hermes.store.inspection import State

_SLOW_SECONDS = 1.0

run = perform


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions."""
    actions = Actions.of(parser, "hermes db status")
    actions.add("status", _status, "say where the database is, what it holds and who uses it", "hermes db status")
    actions.add(
        "migrate", _migrate, "bring the schema to the one this Hermes knows, after a backup", "hermes db migrate"
    )
    backup = actions.add(
        "backup",
        _backup,
        "write one committed state to a file while work goes on",
        "hermes db backup ~/before-holidays",
    )
    backup.add_argument("file", metavar="FILE", type=Path, nargs="?", help="a new file; one in the home if not given")
    restore = actions.add(
        "restore",
        _restore,
        "put a backup in the place of the database, which is set aside",
        "hermes db restore ~/.hermes/backups/20270104T120000000000Z.hermes-backup",
    )
    restore.add_argument("file", metavar="FILE", type=Path, help="a backup that `hermes db backup` has made")
    restore.add_argument("--yes", action="store_true", help="do not ask")
    check = actions.add(
        "check",
        _check,
        "look for damage and for broken promises; exit 1 when there is any",
        "hermes db check --thorough",
    )
    check.add_argument("--thorough", action="store_true", help="also compare every index with its table; slower")


def _status(arguments: argparse.Namespace) -> int:
    from hermes.store import inspection

    settings = settings_from(arguments)
    place = _place(settings)
    for row in pairs(_surroundings(settings, place)):
        say(row)
    if place.path is not None and not place.path.exists():
        say("\nThere is no database yet; it is made when it is first used.")
        return 0
    try:
        state = _look(place)
        engine = inspection.version(place, SystemClock()) if place.is_server else None
    except HermesError as error:
        return failed(error)
    if engine is not None:
        say(f"engine    {engine}, for any number of processes")
    for row in _contents(state):
        say(row)
    if _is_newer(state):
        warn(f"schema {state.schema} is from a newer Hermes; use that one, or restore a backup from before")
        return 3
    return 0


def _place(settings: Settings) -> "Place":
    """Return where the database is. Raises Misconfigured, or Unsupported for one that only its own process sees."""
    from hermes.app import place_of
    from hermes.store.database import engine_for

    place = place_of(settings)
    engine_for(place, SystemClock())
    if place.path is None and not place.is_server:
        raise Unsupported("the database is in memory: each process has its own, and nobody else can look at it")
    return place


def _surroundings(settings: Settings, place: "Place") -> list[tuple[str, str]]:
    """Return what is known without looking into the database."""
    from hermes.store import backup, inspection, lock, sqlite

    facts = [("database", str(settings.database_url))]
    if place.path is None:
        return facts
    is_safe = sqlite.is_safe_for_two_processes()
    for_whom = "safe for several processes" if is_safe else "for one process at a time only"
    holder = lock.held_by(lock.server_lock(place.path))
    return [
        *facts,
        ("engine", f"{inspection.version(place, SystemClock())}, {for_whom}"),
        ("file", _size_of(place.path)),
        ("log", _size_of(place.path.with_name(f"{place.path.name}-wal"))),
        ("server", f"running: {holder}" if holder else "not running"),
        ("backup", str(backup.newest(settings.home) or "none in the home")),
    ]


def _size_of(path: Path) -> str:
    return size(path.stat().st_size) if path.exists() else "none"


def _look(place: "Place") -> "State":
    """Return what a database holds. Raises Damaged also where counting would not meet the damage."""
    from hermes.store import inspection, sqlite

    clock = SystemClock()
    found = inspection.check_file(place, clock, is_thorough=False)
    if found:
        raise sqlite.damaged(str(place.path), found[0])
    return inspection.look(place, clock)


def _is_newer(state: "State") -> bool:
    from hermes.store import evolution

    return state.schema > evolution.SCHEMA


def _contents(state: "State") -> list[str]:
    from hermes.store import evolution

    lines = [
        *pairs([("schema", f"{state.schema}; this Hermes knows {evolution.SCHEMA}"), ("size", size(state.size))]),
        "",
    ]
    if state.rows:
        lines += table(("TABLE", "ROWS"), [(name, f"{number:,}") for name, number in state.rows.items()])
    if state.followers:
        rows = [(f.name, f"{f.position:,}", f"{f.lag:,}", str(f.failures)) for f in state.followers]
        lines += ["", *table(("SUBSCRIBER", "POSITION", "BEHIND", "FAILURES"), rows)]
    return lines


def _migrate(arguments: argparse.Namespace) -> int:
    from hermes.store import evolution, inspection

    settings = settings_from(arguments)
    place = _place(settings)
    is_there = place.is_server or (place.path is not None and place.path.exists())
    with naming_backup(settings):
        before = inspection.look(place, SystemClock()).schema if is_there else 0

    async def nothing(_app: "App") -> None:
        """Opening is what migrates."""

    with_app(arguments, nothing)
    if before == evolution.SCHEMA:
        say(f"schema {before} is the newest already")
    else:
        say(f"migrated from schema {before} to {evolution.SCHEMA}" + (f"; {newest_backup(settings)}" if before else ""))
    return 0


def _backup(arguments: argparse.Namespace) -> int:
    from hermes.store import backup, inspection

    settings, clock = settings_from(arguments), SystemClock()
    place = _place(settings)
    _require_there(place)
    if arguments.file is not None and arguments.file.exists():
        raise Conflict(f"{str(arguments.file)!r} is there already; name a new file")
    began = clock.monotonic()
    with naming_backup(settings), inspection.connected(place, clock) as connection:
        target = arguments.file or backup.name_for(settings.home, connection.now())
        report = backup.write(connection, target.absolute(), _progress(began))
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    seconds = clock.monotonic() - began
    say(f"{clean(str(report.path))}: {many(report.rows, 'row')} of {many(report.tables, 'table')} in {seconds:.1f} s")
    return 0


def _require_there(place: "Place") -> None:
    if place.path is not None and not place.path.exists():
        raise NotFound(f"there is no database {str(place.path)!r} yet; it is made when it is first used")


def _progress(began: float) -> "Progress | None":
    """Return what shows on a terminal how far a long backup has come."""
    if not sys.stderr.isatty():
        return None

    def show(name: str, rows: int) -> None:
        if time.monotonic() - began > _SLOW_SECONDS:
            sys.stderr.write(f"\r\x1b[K{many(rows, 'row')}, in {clean(name)}")
            sys.stderr.flush()

    return show


def _restore(arguments: argparse.Namespace) -> int:
    from hermes.store import backup, lock
    from hermes.store.database import engine_for

    settings, clock = settings_from(arguments), SystemClock()
    place, source = _place(settings), arguments.file.absolute()
    report = backup.inspect(source)
    for row in _described(report, settings):
        say(row)
    holder = lock.held_by(lock.server_lock(place.path)) if place.path is not None else None
    if holder:
        raise Conflict(f"a server works on {str(place.path)!r} ({holder}); stop it first")
    code = 0 if arguments.yes else _ask(str(settings.database_url))
    if code:
        return code
    done = backup.restore(engine_for(place, clock), source, place.path, clock.now())
    say(f"restored {many(done.rows, 'row')} into {clean(str(settings.database_url))}")
    if done.set_aside is not None:
        say(f"what was there before is now {clean(str(done.set_aside))}")
    return 0


def _described(report: "Report", settings: Settings) -> list[str]:
    made_at = local_times(settings.time.zone)(report.made_at)
    holds = f"{many(report.rows, 'row')} of {many(report.tables, 'table')}, schema {report.schema}"
    return pairs([("backup", str(report.path)), ("made", f"{made_at} {settings.time.zone}"), ("holds", holds)])


def _ask(database: str) -> int:
    """Return 0 for a yes."""
    if not sys.stdin.isatty():
        warn("nobody is here to say yes; with --yes it is done without asking")
        return USAGE
    sys.stderr.write(f"Put it in the place of {clean(database)}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return 0
    warn("nothing was changed")
    return 1


def _check(arguments: argparse.Namespace) -> int:
    from hermes.store import evolution, inspection

    settings, clock = settings_from(arguments), SystemClock()
    place = _place(settings)
    _require_there(place)
    try:
        found = inspection.check_file(place, clock, is_thorough=arguments.thorough)
        schema = inspection.look(place, clock).schema
    except Damaged as error:
        found, schema = [str(error)], evolution.SCHEMA
    if schema > evolution.SCHEMA:
        raise evolution.from_the_future(schema)
    is_damaged = bool(found)
    if not is_damaged and schema == evolution.SCHEMA:
        found = inspection.check_rows(place, clock)
    for finding in found:
        say(clean(finding))
    if is_damaged:
        say(f"the file is damaged; {newest_backup(settings)}")
    if not found:
        say(f"{clean(str(settings.database_url))}: no fault was found" + _unchecked(schema))
    return 1 if found else 0


def _unchecked(schema: int) -> str:
    from hermes.store import evolution

    return "" if schema == evolution.SCHEMA else f" in the file; its schema is {schema}, so its rows were not checked"
