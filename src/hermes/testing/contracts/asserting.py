"""Assertions of the suites, which do without a test framework."""

from collections.abc import Awaitable


async def raises(
    kind: type[BaseException] | tuple[type[BaseException], ...], doing: Awaitable[object]
) -> BaseException:
    """Return the error of this kind that an awaitable ends with; fail when it does not."""
    try:
        await doing
    except kind as error:
        return error
    raise AssertionError(f"expected {kind}, and nothing was raised")
