"""The table of commands, and the one place where an error becomes a line and an exit code.

A command is a module with `configure(parser)` and `run(arguments) -> int`; it is imported when it is called for.
"""

import argparse
import importlib
import io
import os
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
    Command("chat", "hermes.cli.chat", "chat in the terminal, or ask once and watch the work"),
    Command("sessions", "hermes.cli.sessions", "past conversations: list, show, search, go back, export, forget"),
    Command("tools", "hermes.cli.tools", "what an assistant can do: list, switch, try"),
    Command("approvals", "hermes.cli.approvals", "what an assistant may do without asking again, and taking it back"),
    Command("checkpoints", "hermes.cli.checkpoints", "how a workspace was before a run, and back to that"),
    Command("up", "hermes.cli.up", "run everything that is configured until stopped"),
    Command("doctor", "hermes.cli.doctor", "look at this installation and say what is missing"),
    Command("model", "hermes.cli.model", "choose the model, see what there is, test it"),
    Command("first-run", "hermes.cli.first_run", "see to it that a model answers, and show it at work"),
    Command("config", "hermes.cli.config", "show, explain and change settings"),
    Command("db", "hermes.cli.db", "state, migration, backup, restore and check of the database"),
    Command("jobs", "hermes.cli.jobs", "look at jobs, retry or cancel them"),
    Command("events", "hermes.cli.events", "follow events, or show one"),
    Command("cron", "hermes.cli.cron", "schedules: what is done when"),
    Command("keys", "hermes.cli.keys", "API keys: create, list, revoke"),
)

ONESHOT = Command("-z", "hermes.cli.oneshot", "ask once, print the answer alone")

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
    """Run a command line, and turn what goes wrong into one line on standard error."""
    _let_all_be_printed()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except (HermesError, OSError, KeyboardInterrupt) as error:
        return _judge(error)
    return code


def _run(arguments: Sequence[str]) -> int:
    if not arguments and _is_terminal():
        return _call(COMMANDS[0], arguments, "hermes chat")
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        sys.stdout.write(overview())
        return 0
    command = next((c for c in COMMANDS if c.name == arguments[0]), None)
    if arguments[0].startswith("-") and not _asks_once(arguments) and _is_terminal():
        return _call(COMMANDS[0], arguments, "hermes chat")
    if arguments[0].startswith("-"):
        return _call(ONESHOT, arguments, "hermes")
    if command is None:
        sys.stderr.write(unknown(arguments[0]))
        return USAGE
    return _call(command, arguments[1:], f"hermes {command.name}")


def _asks_once(arguments: Sequence[str]) -> bool:
    return any(word == "-z" or word.startswith(("--oneshot", "-z")) for word in arguments)


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _call(command: Command, words: Sequence[str], name: str) -> int:
    module = importlib.import_module(command.module)
    parser = argparse.ArgumentParser(prog=name, description=module.__doc__, allow_abbrev=False)
    module.configure(parser)
    return int(module.run(parser.parse_args(words)))


def _judge(error: HermesError | OSError | KeyboardInterrupt) -> int:
    """Say what went wrong and return the exit code."""
    match error:
        case HermesError():
            return failed(error)
        case KeyboardInterrupt():
            return INTERRUPTED
        case BrokenPipeError():
            # Whoever read our output has gone: `hermes events tail | head` is no error.
            _drop_output()
            return 0
        case OSError():
            about = f"{error.filename!r}: " if error.filename is not None else ""
            sys.stderr.write(f"hermes: {about}{error.strerror or error}; look at the path, its rights and the disk\n")
            return 1


def failed(error: HermesError) -> int:
    """Write an error for a person, and return the exit code it stands for."""
    from hermes.cli.screen import clean

    lines = [clean(line) for line in str(error).splitlines()]
    sys.stderr.write("hermes: {}\n".format("\n".join(lines)))
    return exit_code(error)


def exit_code(error: HermesError) -> int:
    """Return the exit code an error stands for."""
    return next(code for kind, code in EXIT_CODES if isinstance(error, kind))


def _let_all_be_printed() -> None:
    """A terminal that cannot show a character gets its escape, not our traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What is still in the buffer has no reader; without this the interpreter would complain at its end."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def overview() -> str:
    """Return what `hermes --help` prints."""
    width = max(len(c.name) for c in COMMANDS)
    lines = "\n".join(f"  {c.name:<{width}}  {c.summary}" for c in COMMANDS)
    return (
        "usage: hermes\n       hermes COMMAND …\n       hermes -z PROMPT …\n\n"
        "Hermes carries messages between people, agents and services, and loses none.\n\n"
        f"commands:\n{lines}\n\n"
        "  hermes                 chat, in a terminal\n"
        "  hermes -z PROMPT       ask once, print the answer alone\n"
        "  hermes COMMAND --help  what a command can do\n"
        "  hermes --version       which Hermes this is\n"
    )


def unknown(word: str) -> str:
    """Say that there is no such command, and name the nearest."""
    import difflib

    near = difflib.get_close_matches(word, [c.name for c in COMMANDS], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`hermes --help` lists them"
    return f"hermes: there is no command {word!r}; {hint}\n"
