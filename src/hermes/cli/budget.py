"""The word after `--budget`: how much a run may cost, in money, tokens or time."""

import argparse

from hermes.effects.budget import Limits, parse_limits


def limits(word: str) -> Limits:
    """Take `0.50` (dollars), `200k` (tokens), `10min`, or several with commas between them."""
    try:
        return parse_limits(word)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
