"""The word after `--budget`: how much a run may cost, in money, tokens or time."""

import argparse
import re

from hermes.effects.budget import Limits

_PART = re.compile(r"\$?(?P<number>\d+(?:\.\d+)?)(?P<unit>usd|\$|k|m|t|tokens|s|min|h)?")
_SECONDS = {"s": 1, "min": 60, "h": 3600}
_TOKENS = {"k": 1_000, "m": 1_000_000, "t": 1, "tokens": 1}


def limits(word: str) -> Limits:
    """Take `0.50` (dollars), `200k` (tokens), `10min`, or several with commas between them."""
    cost = tokens = seconds = None
    for part in (piece.strip().lower() for piece in word.split(",")):
        match = _PART.fullmatch(part)
        if match is None:
            raise argparse.ArgumentTypeError(
                f"expected dollars such as 0.50, tokens such as 200k, a time such as 10min, got {part!r}"
            )
        number, unit = float(match["number"]), match["unit"]
        if unit in _SECONDS:
            seconds = number * _SECONDS[unit]
        elif unit in _TOKENS:
            tokens = int(number * _TOKENS[unit])
        else:
            cost = int(number * 1_000_000)
    return Limits(tokens=tokens, cost=cost, seconds=seconds)
