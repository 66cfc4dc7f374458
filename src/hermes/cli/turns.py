"""One turn from the command line: which session, which words, how it is shown, and the exit code it ends with."""

import argparse
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.cli.action import count, text
from hermes.cli.budget import limits
from hermes.cli.command import INTERRUPTED, exit_code, failed
from hermes.cli.opening import OWNER, with_app
from hermes.cli.options import add_common
from hermes.cli.progress import JsonLines, Lines, harmless, to_standard_error
from hermes.cli.screen import document, line, warn
from hermes.config import Settings
from hermes.domain.errors import HermesError, Misconfigured
from hermes.domain.message import ImagePart, Part, TextPart
from hermes.domain.records import dataclass

if TYPE_CHECKING:
    from hermes.agent.session import Sessions
    from hermes.agent.turn import Ended, Turn
    from hermes.app import App
    from hermes.app.assistant import Assistant, Wish
    from hermes.domain.session import Session
    from hermes.effects.budget import Limits

_LATEST = object()
_LOOK_BACK = 200
_MOST_INPUT = 10_000_000
_MOST_PICTURE = 20_000_000
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
"""How the names of pictures end that can be shown."""


def add_turn(parser: argparse.ArgumentParser) -> None:
    """Declare what every way to ask takes."""
    parser.add_argument("-m", "--model", type=text, help="the model, such as openrouter/qwen/qwen3-coder")
    parser.add_argument("-t", "--toolsets", metavar="LIST", type=text, help="only these tools or toolsets, by comma")
    parser.add_argument("-r", "--resume", metavar="SESSION", type=text, help="go on with a session, by its id or title")
    parser.add_argument(
        "-c",
        "--continue",
        dest="go_on",
        metavar="TITLE",
        nargs="?",
        const=_LATEST,
        help="go on with the latest session, or the one of this title",
    )
    parser.add_argument("--retry", action="store_true", help="ask the last question of the session once more")
    parser.add_argument("--title", type=text, help="what a new session is called")
    parser.add_argument("--max-turns", metavar="N", type=count, help="how many model calls a run may take")
    parser.add_argument("--budget", type=limits, metavar="LIMIT", help="0.50 dollars, 200k tokens, 10min; or several")
    parser.add_argument(
        "--mode",
        choices=("read-only", "workspace", "full"),
        help="what tools may change: nothing, the workspace, everything (no sandbox, no questions)",
    )
    parser.add_argument("--workspace", metavar="DIR", type=Path, help="where to work; the current folder if not given")
    parser.add_argument("--image", metavar="FILE", type=Path, action="append", default=[], help="show it a picture")
    parser.add_argument(
        "--output-format",
        choices=("text", "json", "stream-json"),
        default="text",
        help="text; json: one document at the end; stream-json: a line for everything that happens",
    )
    add_common(parser)


@dataclass(frozen=True, slots=True)
class Way:
    """How a turn is asked for: `prompt` alone or with progress, and whether a person may be asked."""

    prompt: str
    platform: str
    has_progress: bool
    is_verbose: bool = False
    may_ask: bool = False


def ask(arguments: argparse.Namespace, way: Way) -> int:
    """Take one turn and return the exit code."""
    parts = _parts(arguments, way.prompt)

    async def work(app: "App") -> "tuple[Ended, Assistant]":
        return await _ask(app, arguments, way, parts)

    try:
        ended, assistant = with_app(arguments, work, needs_extras=True)
    except HermesError as error:
        if arguments.output_format == "text":
            raise
        told = {"type": "result", "state": "failed", "result": "", "error": _error(error)}
        sys.stdout.write((document(told) if arguments.output_format == "json" else line(told)) + "\n")
        return exit_code(error)
    return _conclude(arguments, way, ended, assistant)


async def _ask(
    app: "App", arguments: argparse.Namespace, way: Way, parts: tuple[Part, ...]
) -> "tuple[Ended, Assistant]":
    from hermes.app.assistant import open_assistant

    workspace = workspace_of(arguments, app.settings)
    async with open_assistant(app, wish_of(arguments, way.platform)) as assistant:
        session, is_new = await session_of(assistant, arguments, workspace)
        if not is_new and arguments.workspace is None:
            workspace = of_session(session, workspace)
        turn = _turn(assistant, arguments, way, session, workspace)
        if arguments.retry and not is_new:
            parts = (await assistant.sessions.undo(OWNER, session.id)).parts
        turn = replace(turn, parts=parts, is_new=is_new)
        lines = _watcher(arguments, way)
        if lines is not None:
            turn = replace(turn, watches=(lines.watch,))
        if isinstance(lines, JsonLines):
            lines.write({"type": "session", "session_id": session.id, "model": assistant.model_name})
        ended = await run_until_interrupted(assistant, turn)
        if isinstance(lines, Lines):
            lines.end()
        return ended, assistant


def wish_of(arguments: argparse.Namespace, platform: str) -> "Wish":
    """Return what is wanted of the assistant."""
    from hermes.app.assistant import Wish

    toolsets = tuple(word.strip() for word in arguments.toolsets.split(",")) if arguments.toolsets else None
    return Wish(model=arguments.model, toolsets=toolsets, platform=platform)


async def run_until_interrupted(assistant: "Assistant", turn: "Turn") -> "Ended":
    """Run a turn; the first Ctrl-C or TERM interrupts it in order, so that what was done is written down."""
    import signal

    import anyio

    async def obey(*, task_status: "anyio.abc.TaskStatus[None]") -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            task_status.started()
            async for _ in signals:
                turn.steering.interrupt()

    async with anyio.create_task_group() as group:
        await group.start(obey)
        ended = await assistant.run(turn)
        group.cancel_scope.cancel()
    return ended


def _turn(
    assistant: "Assistant", arguments: argparse.Namespace, way: Way, session: "Session", workspace: Path
) -> "Turn":
    turn = assistant.turn(OWNER, session, workspace)
    turn = replace(turn, limits=limits_of(arguments, turn.limits))
    if arguments.mode is not None:
        turn = replace(turn, mode=arguments.mode)
    if way.may_ask:
        from hermes.cli.approving import Terminal

        person = Terminal()
        turn = replace(turn, approver=person, ask=person.answer)
    return replace(turn, platform=way.platform)


def limits_of(arguments: argparse.Namespace, usual: "Limits") -> "Limits":
    """Return the limits of the settings with those that were given."""
    given = arguments.budget
    wanted = (
        usual
        if given is None
        else replace(
            usual,
            tokens=given.tokens if given.tokens is not None else usual.tokens,
            cost=given.cost if given.cost is not None else usual.cost,
            seconds=given.seconds if given.seconds is not None else usual.seconds,
        )
    )
    return wanted if arguments.max_turns is None else replace(wanted, steps=arguments.max_turns)


async def session_of(assistant: "Assistant", arguments: argparse.Namespace, workspace: Path) -> "tuple[Session, bool]":
    """Return the session that is wanted, and whether it is a new one."""
    sessions = assistant.sessions
    if arguments.resume is not None:
        return await sessions.find(OWNER, arguments.resume), False
    if arguments.go_on is _LATEST:
        return await _latest(sessions, workspace), False
    if arguments.go_on is not None:
        return await sessions.find(OWNER, arguments.go_on), False
    return sessions.make(OWNER, source="cli", workspace=workspace, title=arguments.title), True


async def _latest(sessions: "Sessions", workspace: Path) -> "Session":
    """Return the latest session of this folder; where there is none, the latest of all, and say so."""
    for session in await sessions.recent(OWNER, limit=_LOOK_BACK):
        if session.workspace == str(workspace):
            return session
    found = await sessions.latest(OWNER)
    warn(f"no session was in {str(workspace)!r}; going on with {found.id}, the latest of all")
    return found


def of_session(session: "Session", workspace: Path) -> Path:
    """Return where to work: a session goes on where it was, unless that is gone."""
    before = Path(session.workspace or workspace)
    if before == workspace:
        return workspace
    if not before.is_dir():
        warn(f"{session.workspace!r}, where this session was, is gone; it goes on in {str(workspace)!r}")
        return workspace
    warn(f"this session goes on in {str(before)!r}, where it was (see --workspace)")
    return before


def _watcher(arguments: argparse.Namespace, way: Way) -> Lines | JsonLines | None:
    if arguments.output_format == "stream-json":
        return JsonLines(sys.stdout)
    if way.has_progress and arguments.output_format == "text":
        return Lines(to_standard_error(), is_verbose=way.is_verbose)
    return None


def _conclude(arguments: argparse.Namespace, way: Way, ended: "Ended", assistant: "Assistant") -> int:
    """Print what the turn came to, and judge it."""
    if arguments.output_format == "text":
        for notice in ended.notices:
            warn(notice)
        if ended.text:
            # A terminal would obey what stands in it; a file or a program gets it as it is.
            text = harmless(ended.text) if sys.stdout.isatty() else ended.text
            sys.stdout.write(text.rstrip("\n") + "\n")
            sys.stdout.flush()
        if ended.ending.reason and ended.error is None:
            warn(ended.ending.reason)
        if way.has_progress:
            sys.stderr.write(f"· session {ended.session.id}: {_spent(ended)}\n")
    else:
        told = _document(ended, assistant)
        sys.stdout.write(document(told) + "\n" if arguments.output_format == "json" else "")
        if arguments.output_format == "stream-json":
            JsonLines(sys.stdout).write(told)
    if ended.error is not None:
        return failed(ended.error) if arguments.output_format == "text" else exit_code(ended.error)
    return INTERRUPTED if ended.ending.state == "cancelled" else 0


def _spent(ended: "Ended") -> str:
    used = ended.usage
    cost = "" if not ended.cost else f", ${ended.cost / 1_000_000:.4f}"
    calls = f"{ended.ending.steps} model call{'' if ended.ending.steps == 1 else 's'}"
    return f"{calls}, {used.input:,} tokens in, {used.output:,} out{cost}"


def _document(ended: "Ended", assistant: "Assistant") -> dict[str, object]:
    used = ended.usage
    return {
        "type": "result",
        "session_id": ended.session.id,
        "run_id": ended.run,
        "state": ended.ending.state,
        "reason": ended.ending.reason,
        "result": ended.text,
        "error": None if ended.error is None else _error(ended.error),
        "model": assistant.model_name,
        "num_turns": ended.ending.steps,
        "usage": {
            "input_tokens": used.input,
            "output_tokens": used.output,
            "cache_read_tokens": used.cache_read,
            "cache_write_tokens": used.cache_write,
            "reasoning_tokens": used.reasoning,
        },
        "cost_usd": None if ended.cost is None else ended.cost / 1_000_000,
        "notices": list(ended.notices),
    }


def _error(error: HermesError) -> dict[str, str]:
    return {"type": type(error).__name__, "message": str(error)}


def _parts(arguments: argparse.Namespace, prompt: str) -> tuple[Part, ...]:
    said = prompt
    if (piped := _piped(is_prompt=prompt == "-")) is not None:
        said = piped if prompt in {"", "-"} else f"{prompt}\n\n<stdin>\n{piped}\n</stdin>"
    if arguments.retry and not (arguments.resume or arguments.go_on):
        raise Misconfigured("--retry asks again in a session; name it with --resume or --continue")
    if not said.strip() and not (arguments.resume or arguments.go_on):
        raise Misconfigured("there is nothing to ask; give a prompt, such as: hermes -z 'what is in this folder?'")
    pictures = tuple(picture(path) for path in arguments.image)
    return (*((TextPart(said),) if said.strip() else ()), *pictures)


def _piped(*, is_prompt: bool) -> str | None:
    """Read what was piped in. A standard input that is open and never says anything must not hold us up."""
    if sys.stdin is None or sys.stdin.isatty():
        if is_prompt:
            raise Misconfigured("'-' reads the prompt from standard input, and that is a terminal; pipe something in")
        return None
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if not (is_prompt or stat.S_ISREG(mode) or (stat.S_ISFIFO(mode) and _has_input())):
        return None
    raw = sys.stdin.buffer.read(_MOST_INPUT + 1)
    if len(raw) > _MOST_INPUT:
        raise Misconfigured(
            f"standard input is longer than {_MOST_INPUT:,} bytes; save it to a file and ask about the file"
        )
    found = raw.decode("utf-8", "replace").replace("\x00", "�")
    return found if found.strip() else None


def _has_input() -> bool:
    """Whether a pipe has something to read, or is closed, within a moment."""
    import select

    return bool(select.select([sys.stdin], [], [], 0.5)[0])


def picture(path: Path) -> ImagePart:
    """Read a picture. Raises Misconfigured for what is none."""
    import base64

    with path.open("rb") as file:
        raw = file.read(_MOST_PICTURE + 1)
    if len(raw) > _MOST_PICTURE:
        raise Misconfigured(f"{str(path)!r} is larger than {_MOST_PICTURE:,} bytes; make it smaller")
    kind = _kind_of(raw)
    if kind is None:
        raise Misconfigured(f"{str(path)!r} holds no picture, whatever its name; expected PNG, JPEG, GIF or WebP")
    return ImagePart(kind, base64.b64encode(raw).decode())


def _kind_of(raw: bytes) -> str | None:
    """Say what a picture is by how it begins; its name may be wrong."""
    if raw.startswith(b"RIFF") and raw[8:12] == b"WEBP":
        return "image/webp"
    begins = ((b"\x89PNG", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
    return next((kind for magic, kind in begins if raw.startswith(magic)), None)


def workspace_of(arguments: argparse.Namespace, settings: Settings) -> Path:
    """Return the folder to work in; where the current one cannot be one, a folder of Hermes's own."""
    from hermes.machines.workspace import checked

    user_home = Path.home()
    if arguments.workspace is not None:
        return checked(arguments.workspace.expanduser(), user_home, settings.home)
    try:
        return checked(Path.cwd(), user_home, settings.home)
    except Misconfigured:
        own = settings.home / "workspaces" / "default"
        own.mkdir(parents=True, exist_ok=True, mode=0o700)
        warn(f"{str(Path.cwd())!r} is no place to work in; working in {str(own)!r} (see --workspace)")
        return own


def texts(parts: Sequence[Part]) -> str:
    """Return the words of what was said."""
    return "".join(part.text for part in parts if isinstance(part, TextPart))
