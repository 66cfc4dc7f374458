"""Opens what a command works with: settings, the log, the App; and closes it when the work is done."""

import argparse
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from hermes.cli.options import settings_from
from hermes.cli.screen import say
from hermes.config import Settings
from hermes.domain.errors import Damaged, Misconfigured, Unavailable
from hermes.domain.principal import Principal

if TYPE_CHECKING:
    from hermes.app import App

T = TypeVar("T")

OWNER = Principal.owner()
"""Who makes things from the command line."""
OPERATOR = Principal.system("the operator asked at the command line")
"""Who looks after things from the command line: whoever may run it may read the whole database anyway."""


def with_app(arguments: argparse.Namespace, work: "Callable[[App], Awaitable[T]]", *, needs_extras: bool = False) -> T:
    """Open the App of the settings, run `work` with it, close it, return what the work returned.

    `needs_extras` loads what installed distributions offer, for work that must know every kind of job.
    """
    import anyio

    from hermes.app import Extras, open_app

    settings = settings_from(arguments)
    if settings.database_url.reveal() == "memory://":
        raise Misconfigured(
            "a database in memory is gone when the command ends, and is for tests only; "
            "set DATABASE_URL to sqlite:////absolute/path or postgresql://…, or leave it out"
        )

    async def opened() -> T:
        extras = Extras.installed() if needs_extras else None
        async with open_app(settings, extras=extras) as app:
            return await work(app)

    with logged(settings), naming_backup(settings):
        try:
            return anyio.run(opened)
        except BaseExceptionGroup as group:
            raise _first(group) from group


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Of tasks that ran side by side, return what stopped the first: that is what a person wants to know."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error


def print_with_app(
    arguments: argparse.Namespace, work: "Callable[[App], Awaitable[Sequence[str]]]", *, needs_extras: bool = False
) -> int:
    """Print the lines that `work` returns, when everything is closed: a slow reader then holds nothing up."""
    rows = with_app(arguments, work, needs_extras=needs_extras)
    try:
        for row in rows:
            say(row)
    except BrokenPipeError:
        raise
    except OSError as error:
        # Whoever takes this for a failure would do it again.
        raise Unavailable(f"it was done, but could not be printed ({error.strerror}); do not do it again") from error
    return 0


@contextlib.contextmanager
def logged(settings: Settings) -> Iterator[None]:
    """Write what is logged inside to the home, without the secrets of the settings."""
    import sys

    from hermes.config.settings import secrets
    from hermes.domain.clock import SystemClock
    from hermes.telemetry.logs import open_logs
    from hermes.telemetry.redactor import Redactor

    with open_logs(
        settings.home / "logs",
        redactor=Redactor(secrets(settings)),
        clock=SystemClock(),
        level=settings.logging.level,
        max_bytes=settings.logging.max_bytes,
        backups=settings.logging.backups,
        mirror=sys.stderr if settings.logging.to_stderr else None,
    ):
        yield


@contextlib.contextmanager
def naming_backup(settings: Settings) -> Iterator[None]:
    """Say with the error for a damaged database which backup is the newest."""
    try:
        yield
    except Damaged as error:
        raise Damaged(f"{error}; {newest_backup(settings)}") from error


def newest_backup(settings: Settings) -> str:
    """Name the newest backup, for a sentence."""
    from hermes.store import backup

    found = backup.newest(settings.home)
    if found is None:
        return f"there is no backup in {str(settings.home / 'backups')!r}"
    return f"the newest backup is {str(found)!r}"
