"""What of a person's own settings a session's home begins with, so that ordinary work goes on as they are used to.

Invariant: only values that name the person or a taste; never one that could run something or hold a key.
"""

import shutil
import subprocess
from collections.abc import Mapping

_SECONDS = 5.0
_HARMLESS = (
    r"^(user\.(name|email)|init\.defaultbranch|pull\.(rebase|ff)|push\.(default|autosetupremote)|core\.autocrlf)$"
)


def git(outer: Mapping[str, str], path: str) -> bytes:
    """Return a file of settings for git with the person's name and tastes; empty when there are none."""
    program = shutil.which("git", path=path)
    if program is None:
        return b""
    try:
        done = subprocess.run(
            [program, "config", "--global", "--null", "--get-regexp", _HARMLESS],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={name: outer[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in outer},
            cwd="/",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return b""
    lines = []
    for entry in done.stdout.split(b"\0"):
        name, newline, value = entry.partition(b"\n")
        section, dot, key = name.partition(b".")
        if newline and dot and b"\n" not in value:
            lines.append(b'[%s]\n\t%s = "%s"\n' % (section, key, value.replace(b"\\", b"\\\\").replace(b'"', b'\\"')))
    return b"".join(lines)
