"""The shell around a command: what it is started with, and what it leaves behind for the next one of its session.

Invariant: what a command says about its state is data from an untrusted hand. It reaches only later commands of the
same session and mode; it is parsed strictly, and what does not parse is as if nothing had been said.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from hermes.domain.errors import LimitReached
from hermes.domain.records import dataclass

LONGEST_TEXT = 100_000
"""The kernel takes arguments of up to 128 KiB."""
STATE_LIMIT = 1_000_000
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_VALUE = 32_768
_LONGEST_PATH = 4_096

OURS = frozenset({"PWD", "SHLVL", "_", "HOME", "TMPDIR", "USER", "LOGNAME", "BASH_ENV", "ENV", "HERMES_COMMAND"})
"""Variables that are set anew for each command, or that would run something before it."""

BEGUN = b"\1"
"""What the shell says first: from here on it is the command that prints and ends."""

_STATE = (
    "printf '\\001' >/dev/fd/@FD@\n"
    'trap \'hermes_code=$?; trap - EXIT; (pwd -P && printf "\\0" && exec /usr/bin/env -0) '
    "2>/dev/null >/dev/fd/@FD@; exit $hermes_code' EXIT\n"
)
_SCRIPT = """\
hermes_text=$OLDPWD
cd -- "$2" 2>/dev/null || { cd -- "$3" && echo "hermes: $2 is gone; this runs in $3" >&2; }
unset OLDPWD
export OLDPWD
[ -z "$hermes_text" ] || OLDPWD=$hermes_text
hermes_text=$1
set --
eval "
$hermes_text"
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one process of a command may use at most."""

    memory: int
    processes: int
    file_bytes: int

    def script(self) -> str:
        """Lower the limits for good; a shell that does not know one of them goes on without it."""
        return (
            "ulimit -c 0 2>/dev/null\n"
            f"ulimit -f {self.file_bytes // 1024} 2>/dev/null\n"
            f"ulimit -d {self.memory // 1024} 2>/dev/null\n"
            f"ulimit -u {self.processes} 2>/dev/null || ulimit -p {self.processes} 2>/dev/null\n"
        )


@dataclass(frozen=True, slots=True)
class ShellState:
    """Where the last command of a session left off."""

    cwd: Path
    environment: Mapping[bytes, bytes] = field(default_factory=dict)


def arguments(text: str, cwd: Path, fallback: Path, limits: Limits, *, state: int | None) -> list[str]:
    """Return what follows the name of the shell; `state` is the descriptor that is told how the shell was left."""
    if len(text.encode("utf-8", "surrogateescape")) > LONGEST_TEXT:
        raise LimitReached(
            f"the command is longer than {LONGEST_TEXT:,} bytes; write it to a file in the workspace and run that"
        )
    told = _STATE.replace("@FD@", str(state)) if state is not None else ""
    # What is printed to both outputs comes in one stream, in order.
    return ["-c", "exec 2>&1\n" + limits.script() + told + _SCRIPT, "hermes", text, str(cwd), str(fallback)]


def parse_state(said: bytes) -> ShellState | None:
    """Read what a shell left behind; None when it is not exactly of the expected form."""
    place, end, rest = said.removeprefix(BEGUN).partition(b"\n\0")
    if not end or not place.startswith(b"/") or b"\0" in place or len(place) > _LONGEST_PATH:
        return None
    if rest and not rest.endswith(b"\0"):
        return None
    environment = {}
    for entry in rest.split(b"\0")[:-1]:
        name, equals, value = entry.partition(b"=")
        is_ours = name.decode("ascii", "replace") in OURS or name.lower().endswith(b"_proxy")
        if not equals or is_ours or not _NAME.fullmatch(name) or len(value) > _LONGEST_VALUE:
            continue
        environment[name] = value
    return ShellState(Path(_decoded(place)), environment)


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
