"""Commands about how the assistant works and looks, for this sitting; /config changes it for good."""

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import cast, get_args

from hermes.commands.port import Busy, Detail, Port
from hermes.commands.words import choice, money
from hermes.config.changes import Editor, named
from hermes.config.settings import SCHEMA
from hermes.domain.errors import Misconfigured, NotFound, Unsupported
from hermes.domain.machine import Mode
from hermes.effects.budget import Limits, parse_limits
from hermes.llm.catalogue.vendors import VENDORS
from hermes.llm.choice import configured

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
MODES = cast("tuple[Mode, ...]", get_args(Mode))
BUSY = cast("tuple[Busy, ...]", get_args(Busy))
DETAILS = cast("tuple[Detail, ...]", get_args(Detail))
_LONGEST_MANNER = 20_000
_WHAT_MODES_ALLOW = {
    "read-only": "commands write nothing",
    "workspace": "commands write in the workspace and /tmp, inside the sandbox",
    "full": "commands run WITHOUT a sandbox, with all your rights",
}


async def model(port: Port, rest: str) -> None:
    """Show or change the model of this sitting."""
    assistant = port.seat.assistant
    if rest:
        await assistant.use_model(rest)
        port.say(f"{assistant.model_name} from now on; `/config model.default {rest}` makes it the usual one")
        return
    port.say(f"{assistant.model_name}, reads {assistant.window:,} tokens")
    ready = {one.name for one in configured(assistant.settings)}
    rows = [(one.name, f"{one.name}/{one.model}", one.summary) for one in VENDORS if one.name in ready and one.model]
    if rows:
        port.table(("provider", "model", "what it is"), rows)
    port.say("/model PROVIDER/NAME changes it; `hermes model list PROVIDER` asks for all names")


async def reasoning(port: Port, rest: str) -> None:
    """Show or change how long the model thinks, and whether that is shown."""
    look = port.look
    if rest in {"show", "hide"}:
        if look is None:
            raise Unsupported("what the model thinks is shown in a terminal only")
        look.shows_reasoning = rest == "show"
        port.say("what the model thinks aloud is shown" if look.shows_reasoning else "what it thinks is not shown")
        return
    if rest:
        port.seat.effort = choice(rest, EFFORTS)
    usual = port.seat.assistant.settings.model.reasoning_effort or "as the model likes"
    port.say(f"effort: {port.seat.effort or usual}")


async def personality(port: Port, rest: str) -> None:
    """Choose how the assistant speaks: a file of personalities/ in the home, such as pirate.md."""
    seat, folder = port.seat, port.seat.assistant.settings.home / "personalities"
    names = sorted(path.stem for path in folder.glob("*.md")) if folder.is_dir() else []
    if not rest:
        port.say(f"now: {seat.personality or 'that of SOUL.md'}; there is {', '.join(names) or 'no other'}")
        port.say(f"each file {folder / 'NAME.md'} is one; /personality none goes back")
        return
    if rest in {"none", "default"}:
        seat.personality = seat.manner = ""
        port.say("speaks as SOUL.md says")
        return
    seat.personality, seat.manner = _manner(folder, rest, names)
    port.say(f"speaks as {seat.personality} from now on")


def _manner(folder: Path, word: str, names: Sequence[str]) -> tuple[str, str]:
    if word not in names:
        raise NotFound(f"there is no personality {word!r}; there is {', '.join(names) or 'none'}")
    try:
        text = (folder / f"{word}.md").read_text("utf-8", "replace").strip()
    except OSError as error:
        raise Misconfigured(f"{str(folder / word)!r} cannot be read: {error.strerror}") from error
    if not text or len(text) > _LONGEST_MANNER:
        raise Misconfigured(f"{word!r} has {len(text):,} characters; expected 1 to {_LONGEST_MANNER:,}")
    return word, text


async def mode(port: Port, rest: str) -> None:
    """Show or change what tools may write."""
    if rest:
        port.seat.mode = cast("Mode", choice(rest, MODES))
    port.say(f"{port.seat.mode}: {_WHAT_MODES_ALLOW[port.seat.mode]}")


async def budget(port: Port, rest: str) -> None:
    """Show or change what one turn may use."""
    seat = port.seat
    if rest == "none":
        seat.limits = Limits(steps=seat.limits.steps)
    elif rest:
        try:
            given = parse_limits(rest)
        except ValueError as error:
            raise Misconfigured(f"{error}; or none") from None
        changed = {one.name: value for one in fields(given) if (value := getattr(given, one.name)) is not None}
        seat.limits = replace(seat.limits, **changed)
    port.say(f"one turn may take {_limits(seat.limits)}")
    kept = seat.assistant.settings.budget
    for name, most in (("this session", kept.session_cost), ("24 hours", kept.day_cost)):
        if most is not None:
            port.say(f"{name} may cost {money(int(most * 1_000_000))}")


def _limits(limits: Limits) -> str:
    said = [] if limits.steps is None else [f"{limits.steps:,} model calls"]
    said += [] if limits.cost is None else [money(limits.cost)]
    said += [] if limits.tokens is None else [f"{limits.tokens:,} tokens"]
    said += [] if limits.seconds is None else [f"{limits.seconds:,.0f} seconds"]
    return ", ".join(said) or "as much as it needs"


async def verbose(port: Port, rest: str) -> None:
    """Change how much is shown of the work."""
    look = port.look
    if look is None:
        raise Unsupported("/verbose is for a terminal")
    step = DETAILS[(DETAILS.index(look.detail) + 1) % len(DETAILS)]
    look.detail = cast("Detail", choice(rest, DETAILS)) if rest else step
    says = {"off": "nothing of the work", "tools": "a line for each tool", "all": "each tool and what it printed"}
    port.say(f"shown: {says[look.detail]}")


async def skin(port: Port, rest: str) -> None:
    """Change colours and words of the screen."""
    look = port.look
    if look is None:
        raise Unsupported("/skin is for a terminal")
    if rest:
        look.wear(rest)
    port.say(f"{look.skin}; there is {', '.join(look.skins())}")


async def config(port: Port, rest: str) -> None:
    """Show, explain or change a setting in the home."""
    settings = port.seat.assistant.settings
    key, _, value = rest.partition(" ")
    if not key:
        rows = [
            (name, one.kind.show(settings.value(name)), str(settings.origin(name)))
            for name, one in SCHEMA.settings.items()
            if settings.given.get(name)
        ]
        if rows:
            port.table(("setting", "value", "from"), rows)
        port.say(f"/config KEY explains one, /config KEY VALUE sets it; files are in {settings.home}")
        return
    one = named(key)
    if not value.strip():
        port.say(f"{key} = {one.kind.show(settings.value(key)) or '-'} ({settings.origin(key)}): {one.about.doc}")
        return
    if one.kind.is_secret:
        raise Unsupported(f"{key} is a secret, and this line is kept; use: hermes config set {key}")
    for line in Editor(settings.home).put(key, value.strip()):
        port.say(line)
    port.say("it counts from the next start on")


async def busy(port: Port, rest: str) -> None:
    """Show or change what happens to words that are said while the assistant works."""
    look = port.look
    if look is None:
        raise Unsupported("/busy is for a terminal")
    if rest:
        look.busy = cast("Busy", choice(rest, BUSY))
    does = {"interrupt": "it stops and reads them", "queue": "they wait", "steer": "it reads them at its next step"}
    port.say(f"{look.busy}: when you say something while it works, {does[look.busy]}")
