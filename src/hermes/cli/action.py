"""The second word of a command, such as `list` in `hermes jobs list`, and the values that people type after it."""

import argparse
import json
import math
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

from hermes.cli.command import USAGE
from hermes.cli.options import add_common
from hermes.config.kinds import kind_of
from hermes.domain.event import JSON
from hermes.domain.records import dataclass

Act = Callable[[argparse.Namespace], int]

LONGEST = timedelta(days=3660)


@dataclass(frozen=True, slots=True)
class Actions:
    """The actions of one command. Without one of them the command shows its help and fails."""

    parser: argparse.ArgumentParser
    choices: "argparse._SubParsersAction[argparse.ArgumentParser]"

    @classmethod
    def of(cls, parser: argparse.ArgumentParser, example: str) -> "Actions":
        """Let `parser` take an action."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = f"example:\n  {example}"
        parser.set_defaults(act=lambda _arguments: _show_help(parser))
        return cls(parser, parser.add_subparsers(dest="action", metavar="ACTION", title="actions"))

    def add(self, name: str, act: Act, summary: str, example: str) -> argparse.ArgumentParser:
        """Add an action and return its parser, for its own words."""
        parser = self.choices.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            epilog=f"example:\n  {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        parser.set_defaults(act=act, refuse=parser.error)
        add_common(parser)
        return parser


def perform(arguments: argparse.Namespace) -> int:
    """Do the action that was chosen."""
    act: Act = arguments.act
    return act(arguments)


def _show_help(parser: argparse.ArgumentParser) -> int:
    import sys

    parser.print_help(sys.stderr)
    return USAGE


def refuse(arguments: argparse.Namespace, why: str) -> NoReturn:
    """End as argparse does for words that do not go together: usage, one line, exit code 2."""
    arguments.refuse(why)
    raise AssertionError("argparse has ended the process")


def add_json(parser: argparse.ArgumentParser, what: str = "one JSON document") -> None:
    """Let the action print for programs."""
    parser.add_argument("--json", action="store_true", help=f"print {what} instead of text for people")


def text(word: str) -> str:
    """Take a text that can be stored."""
    try:
        word.encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("expected a text in UTF-8") from None
    if not word.strip():
        raise argparse.ArgumentTypeError("expected a text that is not empty")
    return word


def words(word: str) -> str:
    """Take a text that can be stored and may be empty."""
    return text(word) if word.strip() else ""


def count(word: str) -> int:
    """Take a whole number from 1 to 100,000."""
    return _whole(word, 1, 100_000)


def position(word: str) -> int:
    """Take a position in the order of events; 0 is before the first."""
    return _whole(word, 0, 2**63 - 1)


def priority(word: str) -> int:
    """Take a priority."""
    return _whole(word, -1_000_000, 1_000_000)


def _whole(word: str, least: int, most: int) -> int:
    try:
        number = int(word)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"expected a whole number from {least:,} to {most:,}, got {word!r}")
    return number


def duration(word: str) -> timedelta:
    """Take a length of time such as 30s, 10m, 2h or 7d."""
    try:
        length = kind_of(timedelta).parse(word, Path())
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}, got {word!r}") from None
    if not isinstance(length, timedelta) or length > LONGEST:
        raise argparse.ArgumentTypeError(f"expected at most ten years, got {word!r}")
    return length


def json_object(word: str) -> dict[str, JSON]:
    """Take a JSON object."""
    try:
        value = json.loads(word, parse_constant=_no_constant, parse_int=_stored_whole, parse_float=_stored_float)
        word.encode()
    except json.JSONDecodeError as error:
        raise argparse.ArgumentTypeError(f"{error.msg} at line {error.lineno} column {error.colno}") from None
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("expected JSON in UTF-8") from None
    except RecursionError:
        raise argparse.ArgumentTypeError("this JSON is nested too deeply") from None
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError('expected a JSON object such as {"name": 1} at line 1 column 1')
    return value


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _stored_whole(digits: str) -> int:
    number = int(digits)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{digits} does not fit into 64 bits; write it as a text")
    return number


def _stored_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is too large for a number; write it as a text")
    return number
