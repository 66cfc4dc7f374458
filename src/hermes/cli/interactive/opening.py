"""Opens a chat in the terminal: the screen where it can be drawn, else plain lines."""

import argparse
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from hermes.cli.interactive.looks import Looks
from hermes.cli.interactive.terminal import is_capable
from hermes.cli.opening import OWNER, with_app
from hermes.cli.turns import limits_of, of_session, session_of, wish_of, workspace_of
from hermes.commands import Seat
from hermes.config.variables import process_environment

if TYPE_CHECKING:
    from hermes.app import App
    from hermes.app.assistant import Assistant


def open_chat(arguments: argparse.Namespace) -> int:
    """Chat until the person leaves; return the exit code."""

    async def work(app: "App") -> int:
        from hermes.app.assistant import open_assistant

        async with open_assistant(app, replace(wish_of(arguments, "cli"), is_lasting=True)) as assistant:
            return await _chat(app, assistant, arguments)

    return with_app(arguments, work, needs_extras=True)


async def _chat(app: "App", assistant: "Assistant", arguments: argparse.Namespace) -> int:
    workspace = workspace_of(arguments, app.settings)
    session, is_new = await session_of(assistant, arguments, workspace)
    if not is_new and arguments.workspace is None:
        workspace = of_session(session, workspace)
    usual = assistant.turn(OWNER, session, workspace)
    seat = Seat(
        assistant=assistant,
        principal=OWNER,
        workspace=workspace,
        session=session,
        mode=arguments.mode or usual.mode,
        limits=limits_of(arguments, usual.limits),
        is_new=is_new,
    )
    environment = process_environment()
    display = app.settings.display
    is_plain = arguments.plain or display.plain or not is_capable(environment)
    look = Looks(app.settings.home, replace(display, plain=is_plain), is_plain=is_plain)
    if arguments.verbose:
        look.shows_reasoning = True
    if is_plain:
        from hermes.cli.interactive.plain import chat_plainly

        await chat_plainly(seat, look, assistant.notices)
    else:
        from hermes.cli.interactive.sitting import chat_on_screen

        await chat_on_screen(seat, look, assistant.notices, environment)
    if not seat.is_new:
        sys.stdout.write(f"the session is kept; to go on with it:\nhermes chat --resume {seat.session.id}\n")
    return 0
