"""What can hold a command back on this machine, found out by trying once.

Invariant: `sandbox` is said only after a sandbox has been made with the arguments that commands get.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from hermes.domain.machine import Protection
from hermes.domain.records import dataclass
from hermes.machines import landlock, seccomp

_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Ability:
    """What was found. `said` is a line for people; `bwrap` and `nsenter` are paths."""

    protection: Protection
    said: str
    bwrap: str = ""
    nsenter: str = ""
    shell: str = "/bin/sh"
    setsid: str = ""


def find(arguments: Sequence[str], path: str) -> Ability:
    """Try the sandbox with the arguments of a command; `path` is where programs are looked for."""
    bwrap, nsenter, setsid = (shutil.which(name, path=path) or "" for name in ("bwrap", "nsenter", "setsid"))
    shell = shutil.which("bash", path=path) or "/bin/sh"
    if sys.platform != "linux":
        return Ability("none", f"unsandboxed: nothing holds commands back on {sys.platform}", shell=shell)
    missing = "install the package bubblewrap"
    if bwrap:
        refused = refuses([bwrap, "--unshare-net"], arguments)
        if not refused:
            return Ability("sandbox", _described(nsenter), bwrap, nsenter, shell, setsid)
        missing = f"bubblewrap is here and cannot be used ({refused}); allow user namespaces"
    if landlock.version() > 0:
        said = f"confined: writes are held by Landlock, reading and the network are not; {missing} for a sandbox"
        return Ability("confined", said, shell=shell, setsid=setsid)
    return Ability("none", f"unsandboxed: nothing holds commands back here; {missing}", shell=shell, setsid=setsid)


def _described(nsenter: str) -> str:
    network = "one host at a time" if nsenter else "none (install the package util-linux)"
    calls = "" if seccomp.filter_for() else "; system calls are not filtered on this processor"
    return f"sandboxed by bubblewrap: own files and processes, network {network}{calls}"


def refuses(bwrap: Sequence[str], arguments: Sequence[str]) -> str:
    """Return why a sandbox cannot be made with these words, empty when it can."""
    filtered = seccomp.filter_for()
    passed = seccomp.as_descriptor(filtered) if filtered else None
    words = ["--seccomp", str(passed)] if passed is not None else []
    try:
        done = subprocess.run(
            [*bwrap, *words, *arguments, "/bin/sh", "-c", "exit 0"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={},
            cwd="/",
            timeout=_SECONDS,
            check=False,
            pass_fds=() if passed is None else (passed,),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    finally:
        if passed is not None:
            os.close(passed)
    return "" if done.returncode == 0 else done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}"
