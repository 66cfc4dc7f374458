"""What may be done, by whom, where: one table, and one pure function that reads it.

Invariant: an effect that no row describes is refused. A verdict names its rule, never a switch.
"""

import os.path
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal, assert_never

from hermes.domain.effect import CallTool, Connect, Effect, ReadPath, RunCommand, WritePath
from hermes.domain.machine import Mode, Protection
from hermes.domain.principal import Principal
from hermes.domain.records import dataclass
from hermes.effects import places, shell
from hermes.effects.places import Grounds

Choice = Literal["allow", "ask", "deny"]

Zone = Literal[
    "inside",
    "public",
    "known-host",
    "reading-command",
    "full-mode",
    "unheld-command",
    "full-access",
    "kept",
    "started-outside",
    "outside-read",
    "outside-write",
    "other-host",
    "unseen-tool",
    "read-only",
    "device",
    "secret",
    "own-files",
    "private-address",
    "not-entitled",
]
"""Where an effect falls; also the id of the rule that decides about it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: what happens while somebody can be asked, what when nobody is there, and why, in words for everybody."""

    attended: Choice
    unattended: Choice
    why: str


TABLE: Mapping[Zone, Rule] = {
    "inside": Rule("allow", "allow", "it stays inside the workspace"),
    "public": Rule("allow", "allow", "everybody on this machine may read it"),
    "known-host": Rule("allow", "allow", "the host is on the list"),
    "reading-command": Rule("allow", "allow", "it only reads, and only inside the workspace"),
    "full-mode": Rule("allow", "allow", "the person has chosen full mode, which holds nothing back on this machine"),
    "unheld-command": Rule("ask", "deny", "nothing on this machine holds a command inside the workspace"),
    "full-access": Rule("ask", "deny", "it would run outside the sandbox"),
    "kept": Rule("ask", "deny", "a person's own tools, or Hermes, would run what is written there"),
    "started-outside": Rule("ask", "deny", "programs of the person run it or are set up by it"),
    "outside-read": Rule("ask", "deny", "it is outside the workspace"),
    "outside-write": Rule("ask", "deny", "it is outside the workspace"),
    "other-host": Rule("ask", "deny", "the host is not on the list"),
    "unseen-tool": Rule("ask", "deny", "what this tool does cannot be seen from here"),
    "read-only": Rule("deny", "deny", "nothing may be written in this session"),
    "device": Rule("deny", "deny", "it is a device, no file"),
    "secret": Rule("deny", "deny", "keys and passwords are kept there"),
    "own-files": Rule("deny", "deny", "it belongs to Hermes itself"),
    "private-address": Rule("deny", "deny", "it is an address inside a private network"),
    "not-entitled": Rule("deny", "deny", "whoever this is done for may not do it"),
}

FULL_MODE_OPENS: frozenset[Zone] = frozenset({"kept", "started-outside", "outside-read", "outside-write", "other-host"})
"""What full mode allows: a command could do it as well. Keys, Hermes's own files and private networks stay closed."""

EACH_TIME: frozenset[Zone] = frozenset({"kept", "started-outside"})
"""What is asked about every time, whatever was said before."""

SCOPES: Mapping[type[Effect], str] = {
    RunCommand: "tools:run",
    ReadPath: "tools:read",
    WritePath: "tools:write",
    Connect: "tools:connect",
    CallTool: "tools:call",
}
"""What a principal must hold for each kind of effect."""


@dataclass(frozen=True, slots=True)
class Situation:
    """In what a verdict is found. `readable` are files of Hermes that were shown to the model, such as long results."""

    principal: Principal
    mode: Mode
    protection: Protection
    is_attended: bool
    workspace: Path
    grounds: Grounds
    readable: tuple[Path, ...] = ()

    @property
    def is_held(self) -> bool:
        """Whether a sandbox holds the commands."""
        return self.protection == "sandbox" and self.mode != "full"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided. `pattern` is what a wider yes would cover; empty when there is no such yes."""

    decision: Choice
    rule: Zone
    why: str
    pattern: str = ""


def judge(effect: Effect, situation: Situation, granted: Collection[str] = ()) -> Verdict:
    """Decide about one effect. `granted` are patterns that a person has said yes to."""
    zone = _zone(effect, situation)
    if situation.mode == "full" and zone in FULL_MODE_OPENS:
        zone = "full-mode"
    rule = TABLE[zone]
    decision = rule.attended if situation.is_attended else rule.unattended
    if decision == "allow" or rule.attended == "deny":
        return Verdict(decision, zone, rule.why)
    pattern = "" if zone in EACH_TIME else pattern_of(effect)
    return Verdict("allow" if pattern and pattern in granted else decision, zone, rule.why, pattern)


def pattern_of(effect: Effect) -> str:
    """Name what a wider yes to an effect covers: never everything that an interpreter could be told."""
    match effect:
        case RunCommand():
            found = shell.inspect(effect.command)
            words = found.pattern() if found else ""
            where = "outside the sandbox" if effect.is_full else "on this machine"
            return f"run {where} in {effect.cwd}: {words}" if words else ""
        case ReadPath():
            if effect.is_deep:
                return f"read {effect.path}/**"
            # What is hidden is not what somebody means who says yes to the files beside it.
            return f"read {effect.path}" if effect.path.name.startswith(".") else f"read {effect.path.parent}/*"
        case WritePath():
            return f"write {effect.path}"
        case Connect():
            return f"connect {places.plain(effect.host)}:{effect.port}"
        case CallTool():
            return f"call {effect.tool}"
        case _:
            assert_never(effect)


def outside(effect: Effect, situation: Situation) -> Path | None:
    """Return the file outside the workspace that an effect writes."""
    if isinstance(effect, WritePath) and not effect.path.is_relative_to(situation.workspace):
        return effect.path
    return None


def is_write(effect: Effect, situation: Situation) -> bool:
    """Whether files of the workspace may be other ones afterwards."""
    match effect:
        case RunCommand():
            may_write = effect.is_full or situation.mode != "read-only"
            return may_write and not _only_reads(effect, situation)
        case WritePath() | CallTool():
            return True
        case _:
            return False


def _zone(effect: Effect, situation: Situation) -> Zone:
    if not situation.principal.may(SCOPES[type(effect)]):
        return "not-entitled"
    match effect:
        case RunCommand():
            return _zone_of_command(effect, situation)
        case ReadPath():
            return _zone_of_reading(effect.path, situation)
        case WritePath():
            return _zone_of_writing(effect.path, situation)
        case Connect():
            return _zone_of_host(effect, situation)
        case CallTool():
            return "unseen-tool"
        case _:
            assert_never(effect)


def _zone_of_command(effect: RunCommand, situation: Situation) -> Zone:
    if situation.mode == "full":
        return "full-mode"
    if effect.is_full:
        return "full-access"
    if situation.is_held:
        return "inside"
    return "reading-command" if _only_reads(effect, situation) else "unheld-command"


def _only_reads(effect: RunCommand, situation: Situation) -> bool:
    found = shell.inspect(effect.command)

    def may_read(word: str) -> bool:
        path = Path(os.path.realpath(effect.cwd / word)) if "\0" not in word and not word.startswith("~") else Path("/")
        return _zone_of_reading(path, situation) == "inside"

    return found is not None and may_read(".") and found.is_read_only(may_read)


def _zone_of_reading(path: Path, situation: Situation) -> Zone:
    if any(path.is_relative_to(place) for place in situation.readable):
        return "inside"
    if situation.grounds.is_own(path):
        return "own-files"
    if situation.grounds.is_device(path, situation.workspace):
        return "device"
    if situation.grounds.is_secret(path, situation.workspace):
        return "secret"
    if path.is_relative_to(situation.workspace):
        return "inside"
    if situation.grounds.holds_secrets(path):
        return "secret"
    return "public" if situation.grounds.is_public_reading(path) else "outside-read"


def _zone_of_writing(path: Path, situation: Situation) -> Zone:
    if situation.grounds.is_own(path):
        return "own-files"
    if situation.grounds.is_device(path, situation.workspace):
        return "device"
    if situation.grounds.is_secret(path, situation.workspace):
        return "secret"
    if situation.mode == "read-only":
        return "read-only"
    if not path.is_relative_to(situation.workspace):
        return "started-outside" if situation.grounds.is_started(path) else "outside-write"
    return "kept" if situation.grounds.is_kept(path, situation.workspace) else "inside"


def _zone_of_host(effect: Connect, situation: Situation) -> Zone:
    host = places.plain(effect.host)
    if situation.grounds.is_listed(host, effect.port):
        return "known-host"
    if places.is_private(host):
        return "private-address"
    return "known-host" if situation.grounds.is_known_host(host) else "other-host"
