"""Layer 15: the command `hermes`: parse, call, print.

Nothing is imported before the command that needs it: `--version` and `--help` load the standard library's least.
"""

import sys
from collections.abc import Sequence

from hermes import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if sys.stdout is None:
        # Closed by whoever called us: nothing is done that could not be told.
        return 2
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"hermes {__version__}\n")
        return 0
    from hermes.cli.command import run

    return run(arguments)
