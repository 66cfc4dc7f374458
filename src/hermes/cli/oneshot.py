"""Ask once and print the answer alone: `hermes -z PROMPT`.

What needs an approval is refused, and said. What is piped in is read along with the prompt.
"""

import argparse

from hermes.cli.action import words
from hermes.cli.turns import Way, add_turn, ask


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the words."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "example:\n  git diff | hermes -z 'write a commit message for this'"
    parser.add_argument(
        "-z",
        "--oneshot",
        metavar="PROMPT",
        type=words,
        required=True,
        help="what to do; - reads standard input",
    )
    add_turn(parser)


def run(arguments: argparse.Namespace) -> int:
    """Ask, print, and return the exit code."""
    return ask(arguments, Way(arguments.oneshot, "print", has_progress=False))
