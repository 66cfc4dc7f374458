"""Chat in the terminal; with `-q QUERY` ask once and watch the work.

Without -q it opens the chat screen in a terminal, and reads the question from standard input elsewhere. With it each
step is shown on standard error and the answer on standard output; what needs an approval is asked only in a terminal.
"""

import argparse
import sys

from hermes.cli.action import words
from hermes.cli.turns import Way, add_turn, ask


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the words."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "example:\n  hermes chat\n  hermes chat -q 'why do the tests fail?'\n  hermes chat -c -q 'and now mend them'"
    )
    parser.add_argument(
        "-q", "--query", metavar="QUERY", type=words, default="", help="what to do; without it the chat is opened"
    )
    parser.add_argument("--plain", action="store_true", help="chat in plain lines, for screen readers and pipes")
    parser.add_argument("-Q", "--quiet", action="store_true", help="show no progress")
    parser.add_argument("-v", "--verbose", action="store_true", help="show also what the model thinks aloud")
    add_turn(parser)


def run(arguments: argparse.Namespace) -> int:
    """Chat, or ask and show the work; return the exit code."""
    is_terminal = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    is_chat = not (arguments.query or arguments.image or arguments.retry) and arguments.output_format == "text"
    if is_chat and (is_terminal or arguments.plain):
        from hermes.cli.interactive.opening import open_chat

        return open_chat(arguments)
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
