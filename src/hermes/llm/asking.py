"""The one loop that asks a model again when it could not answer.

Invariant: what another try cannot change is never tried again, and all tries together end before the deadline.
"""

from collections.abc import Awaitable, Callable

import anyio

from hermes.domain.clock import Clock
from hermes.domain.errors import Unavailable
from hermes.domain.model import Delta, Provider, Reply, Request, Show

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0


async def ask(
    provider: Provider,
    request: Request,
    show: Show,
    *,
    clock: Clock,
    attempts: int = 4,
    seconds: float = 3600.0,
    wait: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> Reply:
    """Ask until there is a reply, at most `attempts` times and `seconds` long; between tries `wait`.

    Only Unavailable (and so Cut) is tried again: after the pause that the vendor asked for, or a growing one with
    chance in it. Before each new try `show` gets a Delta `retry` with the reason. Raises the error of the last try.
    """
    end = clock.monotonic() + seconds
    for attempt in range(1, attempts + 1):
        try:
            return await _once(provider, request, show, end - clock.monotonic(), seconds)
        except Unavailable as error:
            pause = max(error.retry_after, _pause(attempt, clock.chance()))
            if attempt == attempts or pause >= end - clock.monotonic():
                raise
            show(Delta("retry", f"{error}; trying again in {pause:.1f} s ({attempt + 1} of {attempts})"))
        await wait(pause)
    raise AssertionError("the last attempt returns or raises")


async def _once(provider: Provider, request: Request, show: Show, left: float, seconds: float) -> Reply:
    try:
        with anyio.fail_after(max(left, 0.0)):
            return await provider.call(request, show)
    except TimeoutError:
        raise Unavailable(f"{provider.name!r} gave no whole answer within {seconds:g} s, all tries together") from None


def _pause(attempt: int, chance: float) -> float:
    return float(min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE)) * (0.5 + chance)
