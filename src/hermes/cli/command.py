"""The table of commands, and the one place where an error becomes a line and an exit code.

A command is a module with `configure(parser)` and `run(arguments) -> int`; it is imported when it is called for.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple

from hermes.domain.errors import (
    Conflict,
    Denied,
    HermesError,
    LimitReached,
    Misconfigured,
    NotFound,
    Unavailable,
    Unsupported,
)


class Command(NamedTuple):
    """One word after `hermes`, and the module that does it."""

    name: str
    module: str
    summary: str


COMMANDS = (
    Command("up", "hermes.cli.up", "run everything that is configured until stopped"),
    Command("doctor", "hermes.cli.doctor", "look at this installation and say what is missing"),
    Command("config", "hermes.cli.config", "show, explain and change settings"),
    Command("db", "hermes.cli.db", "state, migration, backup, restore and check of the database"),
    Command("jobs", "hermes.cli.jobs", "look at jobs, retry or cancel them"),
    Command("events", "hermes.cli.events", "follow events, or show one"),
    Command("cron", "hermes.cli.cron", "schedules: what is done when"),
    Command("keys", "hermes.cli.keys", "API keys: create, list, revoke"),
)

EXIT_CODES: tuple[tuple[type[HermesError], int], ...] = (
    (Misconfigured, 3),
    (Denied, 4),
    (NotFound, 5),
    (Conflict, 6),
    (Unavailable, 7),
    (Unsupported, 8),
    (LimitReached, 9),
    (HermesError, 1),
)
INTERRUPTED = 130
USAGE = 2


def run(arguments: Sequence[str]) -> int:
    """Find the command, run it, and turn what goes wrong into one line on standard error."""
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        sys.stdout.write(overview())
        return 0
    command = next((c for c in COMMANDS if c.name == arguments[0]), None)
    if command is None:
        sys.stderr.write(unknown(arguments[0]))
        return USAGE
    module = importlib.import_module(command.module)
    parser = argparse.ArgumentParser(prog=f"hermes {command.name}", description=module.__doc__, allow_abbrev=False)
    module.configure(parser)
    try:
        return int(module.run(parser.parse_args(arguments[1:])))
    except HermesError as error:
        sys.stderr.write(f"hermes: {error}\n")
        return next(code for kind, code in EXIT_CODES if isinstance(error, kind))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone: `hermes events tail | head` is no error.
        sys.stderr.close()
        return 0


def overview() -> str:
    """Return what `hermes --help` prints."""
    width = max(len(c.name) for c in COMMANDS)
    lines = "\n".join(f"  {c.name:<{width}}  {c.summary}" for c in COMMANDS)
    return (
        "usage: hermes COMMAND …\n\n"
        "Hermes carries messages between people, agents and services, and loses none.\n\n"
        f"commands:\n{lines}\n\n"
        "  hermes COMMAND --help  what a command can do\n"
        "  hermes --version       which Hermes this is\n"
    )


def unknown(word: str) -> str:
    """Say that there is no such command, and name the nearest."""
    import difflib

    near = difflib.get_close_matches(word, [c.name for c in COMMANDS], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`hermes --help` lists them"
    return f"hermes: there is no command {word!r}; {hint}\n"
