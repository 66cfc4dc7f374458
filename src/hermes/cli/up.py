"""Run everything that is configured until stopped.

The first interrupt, TERM or HUP (a closed terminal) lets running jobs end and takes no new ones; the second stops at
once.
"""

import argparse
import os
import signal
from typing import TYPE_CHECKING

from hermes.cli.command import INTERRUPTED
from hermes.cli.opening import with_app
from hermes.cli.options import add_common
from hermes.cli.screen import clean, many, say, warn

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import TaskStatus

    from hermes.app import App


_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the words."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "example:\n  hermes up --set jobs.workers=4"
    add_common(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve; return 0 after an orderly stop, 130 after one at once."""
    return with_app(arguments, _serve, needs_extras=True)


async def _serve(app: "App") -> int:
    import anyio

    async with anyio.create_task_group() as watching:
        with anyio.CancelScope() as serving:
            await watching.start(_obey, app, serving)
            async with anyio.create_task_group() as group:
                await group.start(app.serve)
                slots = many(app.settings.jobs.workers, "job slot")
                say(f"Hermes is up: {clean(str(app.settings.database_url))}, {slots}, process {os.getpid()}")
        is_hurried = serving.cancelled_caught
        watching.cancel_scope.cancel()
    say("Hermes has stopped at once; what ran is put back in line" if is_hurried else "Hermes has stopped")
    return INTERRUPTED if is_hurried else 0


async def _obey(app: "App", serving: "CancelScope", *, task_status: "TaskStatus[None]") -> None:
    """Drain at the first signal, stop at the second."""
    import anyio

    with anyio.open_signal_receiver(*_SIGNALS) as signals:
        task_status.started()
        is_draining = False
        async for _ in signals:
            if is_draining:
                serving.cancel()
                return
            is_draining = True
            app.worker.drain()
            warn("stopping; running jobs may end first. The next signal stops at once")
