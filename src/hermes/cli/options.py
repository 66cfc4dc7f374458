"""What every command takes, and how it gets its settings."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from hermes.config import Settings, load
from hermes.config.variables import home_of, process_environment
from hermes.domain.errors import Misconfigured


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add `--home` and `--set` to the parser that takes a command's words (with subcommands: to each of theirs)."""
    group = parser.add_argument_group("settings")
    group.add_argument(
        "--home", type=_home, metavar="DIR", help="where Hermes keeps everything (HERMES_HOME, else ~/.hermes)"
    )
    group.add_argument(
        "--set",
        action="append",
        default=[],
        type=_assignment,
        dest="flags",
        metavar="SECTION.KEY=VALUE",
        help="use this value in this run, whatever the files and the environment say; may be repeated",
    )


def home_from(arguments: argparse.Namespace) -> Path:
    """Return the home alone, for what must work when the settings do not."""
    return home_of(arguments.home, process_environment())


def flags_from(arguments: argparse.Namespace) -> Mapping[str, str]:
    """Return what `--set` gave; of one key the last."""
    return dict(arguments.flags)


def settings_from(arguments: argparse.Namespace) -> Settings:
    """Read the settings and say on standard error what a person should know of them."""
    settings = load(home=arguments.home, flags=flags_from(arguments))
    tell(settings.notices)
    return settings


def tell(notices: tuple[str, ...]) -> None:
    """Write notices to standard error, a line each."""
    sys.stderr.writelines(f"hermes: note: {notice}\n" for notice in notices)


def _home(word: str) -> Path:
    """Take a folder. An empty word is a variable that somebody forgot to set, not the current folder."""
    if not word.strip():
        raise Misconfigured(f"--home is {word!r}, expected a folder; name one, or leave --home out for the usual one")
    return Path(word)


def _assignment(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected SECTION.KEY=VALUE, such as jobs.workers=4, got {text!r}")
    return key.strip(), value
