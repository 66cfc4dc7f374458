"""Look at this installation and say what is missing, what is wrong, and what to do next.

It changes nothing, and works where little else does: on an empty machine, with settings nobody can read, with a
damaged database.
"""

import argparse
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING

from hermes.cli.action import add_json
from hermes.cli.options import add_common
from hermes.cli.screen import clean, columns, document, say

if TYPE_CHECKING:
    from hermes.cli.examination import Finding

_PROBLEM = "problem"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the words."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "example:\n  hermes doctor --json"
    add_common(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each thing looked at; return 1 when one of them is a problem."""
    from hermes.cli.examination import examine

    findings = examine(arguments)
    if arguments.json:
        say(document([asdict(finding) for finding in findings]))
    else:
        for finding in findings:
            say(_line(finding))
    return int(any(finding.level == _PROBLEM for finding in findings))


def _line(finding: "Finding") -> str:
    text = finding.text + (f"; {finding.next_step}" if finding.next_step else "")
    return textwrap.fill(
        clean(text),
        columns(),
        initial_indent=f"{finding.level:<7}  {finding.name:<10}  ",
        subsequent_indent=" " * 21,
        break_long_words=False,
        break_on_hyphens=False,
    )
