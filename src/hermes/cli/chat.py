"""Ask and watch the work: `hermes chat -q QUERY` shows each step on standard error and the answer on standard output.

In a terminal it asks before what needs an approval; elsewhere that is refused, and said.
"""

import argparse
import sys

from hermes.cli.action import words
from hermes.cli.turns import Way, add_turn, ask


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the words."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "example:\n  hermes chat -q 'why do the tests fail?'\n  hermes chat -c -q 'and now mend them'"
    parser.add_argument(
        "-q", "--query", metavar="QUERY", type=words, default="", help="what to do; without it standard input is read"
    )
    parser.add_argument("-Q", "--quiet", action="store_true", help="show no progress")
    parser.add_argument("-v", "--verbose", action="store_true", help="show also what the model thinks aloud")
    add_turn(parser)


def run(arguments: argparse.Namespace) -> int:
    """Ask, show the work, print the answer, and return the exit code."""
    is_attended = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
    return ask(
        arguments,
        Way(
            arguments.query,
            "cli",
            has_progress=not arguments.quiet,
            is_verbose=arguments.verbose,
            may_ask=is_attended and arguments.output_format == "text",
        ),
    )
