"""The first look at Hermes: what `make run` opens. It sees to it that some model answers, and shows it at work.

With a terminal it opens what `hermes` alone opens. Without one, and without a provider, it asks the embedded model.
"""

import argparse
import sys

from hermes.cli.options import add_common, settings_from
from hermes.cli.screen import say
from hermes.cli.turns import Way, add_turn, ask
from hermes.config import Settings
from hermes.domain.errors import Misconfigured

_QUESTION = "List the files here"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the words."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "example:\n  hermes first-run"
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """See to a model, then show it; return the exit code."""
    settings = settings_from(arguments)
    is_attended = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if not _has_model(settings):
        _bring(settings, is_attended=is_attended)
    if is_attended:
        from hermes.cli.command import run as open_hermes

        return open_hermes([])
    from hermes.llm.choice import choose

    if not choose(settings).vendor.is_small:
        # Asking a provider costs money, which nobody has ordered.
        from hermes.cli import doctor

        return doctor.run(argparse.Namespace(**vars(arguments), json=False))
    say(f"> {_QUESTION}")
    return ask(_turn(arguments), Way(_QUESTION, "cli", has_progress=True))


def _has_model(settings: Settings) -> bool:
    from hermes.llm.choice import choose

    try:
        choose(settings)
    except Misconfigured:
        return False
    return True


def _bring(settings: Settings, *, is_attended: bool) -> None:
    from hermes.cli.pull import pull
    from hermes.llm.catalogue.weights import QWEN

    say("no provider is configured: a small model that works without a key and without a network is brought here, once")
    pull(settings, QWEN, is_agreed=not is_attended)


def _turn(arguments: argparse.Namespace) -> argparse.Namespace:
    """Return what a turn takes, with nothing asked for but what was said."""
    parser = argparse.ArgumentParser()
    add_turn(parser)
    given = parser.parse_args([])
    given.home, given.flags = arguments.home, arguments.flags
    return given
