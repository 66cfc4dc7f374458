"""Words that commands are given and give back: counts, moments, one line of many."""

from datetime import datetime

from hermes.domain.errors import Misconfigured


def count_in(rest: str, default: int, *, most: int) -> int:
    """Return the number that was given, or the default."""
    if not rest:
        return default
    if not rest.isdigit() or not 1 <= int(rest[:9]) <= most:
        raise Misconfigured(f"expected a number from 1 to {most:,}, got {rest[:40]!r}")
    return int(rest)


def one_line(text: str, longest: int) -> str:
    """Return the beginning of a text on one line."""
    plain = " ".join(text.split())
    return plain if len(plain) <= longest else f"{plain[: longest - 1]}…"


def many(number: int, one: str, more: str = "") -> str:
    """Return a count with its noun."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def ago(now: datetime, at: datetime) -> str:
    """Say how long ago something was."""
    seconds = max(0, int((now - at).total_seconds()))
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {name} ago"
    return "just now"


def money(millionths: int) -> str:
    """Write an amount in dollars; small ones with more digits."""
    dollars = millionths / 1_000_000
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}"


def choice(word: str, known: tuple[str, ...]) -> str:
    """Return the one of several words that is meant, whole or by its beginning."""
    found = [one for one in known if one == word] or [one for one in known if word and one.startswith(word)]
    if len(found) != 1:
        raise Misconfigured(f"expected {', '.join(known)}, got {word[:40]!r}")
    return found[0]
