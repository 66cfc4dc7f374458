"""What the doctor looks at, one thing at a time; none of it changes anything, and one that fails hides no other."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermes.cli.opening import newest_backup
from hermes.cli.options import flags_from, home_from
from hermes.cli.screen import many, size
from hermes.config import Settings
from hermes.config.reading import read
from hermes.config.variables import is_open_to_others, process_environment
from hermes.domain.clock import SystemClock
from hermes.domain.errors import Damaged, HermesError, Misconfigured
from hermes.domain.records import dataclass

if TYPE_CHECKING:
    from hermes.store.database import Place
    from hermes.store.inspection import State

_OLDEST_PYTHON = (3, 11)
_LEAST_FREE, _LEAST_SHARE = 256 * 1024**2, 0.05
_SANE_YEARS = range(2025, 2100)
_PROGRAMS = (("bwrap", "bubblewrap"), ("rg", "ripgrep"))
_WITHOUT = {
    "bwrap": "install bubblewrap: without it commands have no sandbox, and each is asked about",
    "rg": "install ripgrep: without it files are searched more slowly",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `ok` is in order, `note` is good to know, `problem` keeps Hermes from working."""

    level: Literal["ok", "note", "problem"]
    name: str
    text: str
    next_step: str = ""


Examine = Callable[[Settings], Iterator[Finding]]


def examine(arguments: argparse.Namespace) -> list[Finding]:
    """Look at everything."""
    settings, findings = _configuration(arguments)
    for look in (_python, _sqlite, _home, _disk, _clock, _database, _programs):
        try:
            findings += look(settings)
        except HermesError as error:
            findings.append(Finding("problem", look.__name__.strip("_"), str(error)))
        except OSError as error:
            about = f"{error.filename!r}: " if error.filename is not None else ""
            text = f"{about}{error.strerror or error}"
            findings.append(Finding("problem", look.__name__.strip("_"), text, "look at the path and its rights"))
    return findings


def _configuration(arguments: argparse.Namespace) -> tuple[Settings, list[Finding]]:
    """Read what can be read; where a setting is wrong, the rest is looked at with its default."""
    home = home_from(arguments)
    reading = read(home, flags=flags_from(arguments), environ=process_environment())
    findings = [Finding("problem", "config", mistake) for mistake in reading.mistakes]
    findings += [Finding("note", "config", notice) for notice in reading.notices]
    reading.mistakes.clear()
    settings = Settings(
        home=home,
        given={key: tuple(given) for key, given in reading.given.items()},
        variables=reading.variables,
        **reading.sections(),
    )
    if not any(finding.level == "problem" for finding in findings):
        findings.insert(0, Finding("ok", "config", "the settings are in order"))
    return settings, findings


def _python(_settings: Settings) -> Iterator[Finding]:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:
        yield Finding("problem", "python", found, "install Python 3.11 or newer")
    else:
        yield Finding("ok", "python", found)


def _sqlite(_settings: Settings) -> Iterator[Finding]:
    from hermes.store import sqlite

    found = ".".join(map(str, sqlite.version()))
    if sqlite.is_safe_for_two_processes():
        yield Finding("ok", "sqlite", f"{found}, safe for several processes on one file")
    else:
        least = ".".join(map(str, sqlite.SAFE_FOR_TWO))
        yield Finding(
            "note",
            "sqlite",
            f"{found} can damage a file that two processes write",
            f"run no other command while `hermes up` runs, or install SQLite {least} or newer (pysqlite3)",
        )


def _home(settings: Settings) -> Iterator[Finding]:
    home = settings.home
    if not home.exists():
        near = _existing(home)
        if os.access(near, os.W_OK):
            yield Finding("note", "home", f"{home} is not there yet; it is made when it is first used")
        else:
            yield Finding("problem", "home", f"{home} cannot be made in {near}", "choose another HERMES_HOME")
    elif not home.is_dir():
        yield Finding("problem", "home", f"{home} is no folder", "move it away, or choose another HERMES_HOME")
    elif not os.access(home, os.W_OK | os.X_OK):
        yield Finding("problem", "home", f"{home} cannot be written", "give yourself the right, or choose another")
    elif is_open_to_others(home):
        mode = home.stat().st_mode & 0o777
        yield Finding("note", "home", f"others may look into {home} (mode {mode:04o})", f"run `chmod 700 {home}`")
    else:
        yield Finding("ok", "home", str(home))


def _existing(path: Path) -> Path:
    return next((folder for folder in (path, *path.parents) if folder.exists()), Path("/"))


def _disk(settings: Settings) -> Iterator[Finding]:
    usage = shutil.disk_usage(_existing(settings.home))
    text = f"{size(usage.free)} of {size(usage.total)} free"
    if usage.free < _LEAST_FREE or usage.free < usage.total * _LEAST_SHARE:
        yield Finding("note", "disk", text, "free some space before writes are refused")
    else:
        yield Finding("ok", "disk", text)


def _clock(settings: Settings) -> Iterator[Finding]:
    from zoneinfo import ZoneInfo

    now = SystemClock().now().astimezone(ZoneInfo(settings.time.zone))
    text = f"{now:%Y-%m-%d %H:%M:%S} in {settings.time.zone}"
    if now.year in _SANE_YEARS:
        yield Finding("ok", "clock", text)
    else:
        yield Finding("problem", "clock", text, "set the clock; schedules and keys depend on it")


def _programs(_settings: Settings) -> Iterator[Finding]:
    for program, name in _PROGRAMS:
        path = shutil.which(program)
        if path:
            yield Finding("ok", name, path)
        else:
            yield Finding("note", name, "not found", _WITHOUT[program])


def _database(settings: Settings) -> Iterator[Finding]:
    from hermes.app import place_of
    from hermes.store import evolution, inspection, sqlite
    from hermes.store.database import engine_for

    clock, place = SystemClock(), place_of(settings)
    engine_for(place, clock)
    if place.path is None and not place.is_server:
        yield Finding("note", "database", "in memory: everything is gone when a process ends", "set DATABASE_URL")
        return
    if place.path is not None and not place.path.exists():
        yield Finding("note", "database", f"{settings.database_url} is not there yet; it is made when first used")
        return
    try:
        wrong = inspection.check_file(place, clock, is_thorough=False)
        if wrong:
            raise sqlite.damaged(str(place.path), wrong[0])
        state = inspection.look(place, clock)
    except Damaged as error:
        yield Finding("problem", "database", str(error), newest_backup(settings))
        return
    if state.schema > evolution.SCHEMA:
        yield Finding("problem", "database", str(evolution.from_the_future(state.schema)))
        return
    yield Finding("ok", "database", f"{settings.database_url}, schema {state.schema}, {size(state.size)}, sound")
    if not state.is_current:
        yield Finding("note", "database", f"it is older than schema {evolution.SCHEMA}", "run `hermes db migrate`")
        return
    yield from _server(place)
    yield from _work(settings, place, state)


def _server(place: "Place") -> Iterator[Finding]:
    from hermes.store import lock

    if place.path is None:
        return
    holder = lock.held_by(lock.server_lock(place.path))
    if holder is None:
        yield Finding("note", "server", "not running, so no job is done and no schedule kept", "start `hermes up`")
    else:
        yield Finding("ok", "server", f"running: {holder}")


def _work(settings: Settings, place: "Place", state: "State") -> Iterator[Finding]:
    if state.dead:
        next_step = "`hermes jobs dead` shows why, `hermes jobs retry ID` tries again"
        yield Finding("note", "jobs", f"{many(state.dead, 'dead job')}, tried again only when asked for", next_step)
    try:
        known = _known_kinds(settings)
    except Misconfigured as error:
        yield Finding("problem", "plugins", str(error))
        return
    unknown = {kind: number for kind, number in state.waiting.items() if kind not in known}
    for kind, number in sorted(unknown.items()):
        yield Finding(
            # On a server another machine may know the kind; a file has no other machine.
            "note" if place.is_server else "problem",
            "jobs",
            f"nobody here can do jobs of the kind {kind!r}, of which {number} wait",
            f"install what does them, or `hermes jobs list --kind {kind}` and `hermes jobs cancel ID`",
        )
    if not state.dead and not unknown:
        yield Finding("ok", "jobs", f"{many(sum(state.waiting.values()), 'job')} to do, none dead")


def _known_kinds(settings: Settings) -> frozenset[str]:
    import anyio

    from hermes.app import Extras, open_app

    async def ask() -> frozenset[str]:
        async with open_app(settings, extras=Extras.installed()) as app:
            return frozenset(app.kinds)

    return anyio.run(ask)
