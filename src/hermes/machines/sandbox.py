"""What a sandboxed command sees and may change, as the arguments of bubblewrap.

Invariant: the view begins empty. What is not named here is not there: no home, no sockets, no other process, no
network but the session's own. Nothing outside the workspace and the session's own folders can be written.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hermes.domain.machine import Mode
from hermes.domain.records import dataclass
from hermes.machines.workspace import Workspace

HOME = Path("/home/hermes")
USER = "1000"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu")
_OF_THE_PROCESSORS = ("/sys/devices/system/cpu", "/sys/devices/system/node")
_SHARED_MEMORY = 256 << 20
_TOOLS = (
    ".pyenv",
    ".nvm",
    ".rustup",
    ".cargo/bin",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/uv",
    ".local/share/mise",
    ".asdf",
    ".volta",
    ".bun/bin",
    ".deno/bin",
    ".sdkman/candidates",
    "go/bin",
)
"""Where people keep tools in their homes; there are no keys in these places."""
_ROOTS = {
    "PYENV_ROOT": ".pyenv",
    "NVM_DIR": ".nvm",
    "RUSTUP_HOME": ".rustup",
    "ASDF_DATA_DIR": ".asdf",
    "VOLTA_HOME": ".volta",
    "SDKMAN_DIR": ".sdkman",
    "MISE_DATA_DIR": ".local/share/mise",
    "UV_PYTHON_INSTALL_DIR": ".local/share/uv/python",
}
"""By which variable tools find their own place, when the home they see is another."""
_SECRET_NAMES = frozenset({".ssh", ".aws", ".gnupg", ".netrc", ".config", ".kube", ".docker", ".npmrc", ".pypirc"})
_PROC_HIDDEN = frozenset({"keys", "key-users", "timer_list", "timer_stats", "sched_debug", "latency_stats"})
"""What tells of others although everybody may read it."""
_PROC_FOLDERS_TO_READ = frozenset({"sys", "self", "thread-self", "net", "mounts"})


@dataclass(frozen=True, slots=True)
class View:
    """What the machine offers to every sandboxed command; found once, when the machine opens."""

    readable: tuple[Path, ...]
    links: tuple[tuple[str, str], ...]
    hidden_files: tuple[Path, ...]
    hidden_folders: tuple[Path, ...]
    proc_files: tuple[str, ...]
    proc_folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of one session on the disk of the machine."""

    home: Path
    temporary: Path


def survey(user_home: Path, hermes_home: Path, more: Iterable[str]) -> View:
    """Find what may be shown. What not everybody on this machine may read is hidden, also when we are root."""
    readable, links = [], []
    for name in _SYSTEM:
        path = Path(name)
        if path.is_symlink():
            links.append((str(path.readlink()), name))
        elif path.is_dir():
            readable.append(path)
    readable += [Path(name) for name in _OF_THE_PROCESSORS if os.path.isdir(name)]  # noqa: PTH112 - a plain text
    readable += [path for path in _tools(user_home) if not _is_below(path, readable)]
    readable += [Path(os.path.realpath(Path(name).expanduser())) for name in more]
    kept = Path(os.path.realpath(hermes_home))
    shown = tuple(dict.fromkeys(p for p in readable if not kept.is_relative_to(p) and not p.is_relative_to(kept)))
    files, folders = _private(Path("/etc"))
    proc_files, proc_folders = _of_proc()
    return View(shown, tuple(links), files, folders, proc_files, proc_folders)


def arguments(view: View, workspace: Workspace, folders: Folders, mode: Mode) -> Iterator[str]:
    """Return the words that follow `bwrap`, without the command."""
    yield from _namespaces()
    yield from _system(view)
    yield from ("--bind", str(folders.temporary), "/tmp", "--bind", str(folders.home), str(HOME))
    # No link: a workspace may lie below it.
    yield from ("--bind", str(folders.temporary), "/var/tmp")
    # What may be read there would be hidden by the session's own folder, such as an environment that was made in /tmp.
    for path in view.readable:
        if path.is_relative_to("/tmp") or path.is_relative_to("/var/tmp"):
            yield from ("--ro-bind", str(path), str(path))
    yield from _work(workspace, mode)
    yield from ("--remount-ro", "/")


def _system(view: View) -> Iterator[str]:
    for path in view.readable:
        yield from ("--ro-bind", str(path), str(path))
    for target, name in view.links:
        yield from ("--symlink", target, name)
    for path in view.hidden_files:
        yield from ("--ro-bind", "/dev/null", str(path))
    for path in view.hidden_folders:
        yield from ("--perms", "0555", "--size", "4096", "--tmpfs", str(path), "--remount-ro", str(path))
    yield from ("--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys")
    for name in view.proc_files:
        yield from ("--ro-bind", "/dev/null", f"/proc/{name}")
    for name in view.proc_folders:
        yield from ("--size", "4096", "--tmpfs", f"/proc/{name}", "--remount-ro", f"/proc/{name}")
    yield from ("--dev", "/dev", "--perms", "1777", "--size", str(_SHARED_MEMORY), "--tmpfs", "/dev/shm")
    yield from ("--remount-ro", "/dev")


def _work(workspace: Workspace, mode: Mode) -> Iterator[str]:
    folder = str(workspace.folder)
    for path in workspace.beside:
        yield from ("--ro-bind", str(path), str(path))
    if mode == "read-only":
        yield from ("--ro-bind", folder, folder)
        return
    yield from ("--bind", folder, folder)
    for path in workspace.pinned:
        yield from ("--bind", str(path), str(path))
    for path in (*workspace.read_only, *workspace.missing, *_of_hermes(workspace.folder)):
        yield from ("--ro-bind", str(path), str(path))


def _of_hermes(folder: Path) -> Iterator[Path]:
    """What runs as Hermes, outside the sandbox, must not be written from inside."""
    for place in (sys.prefix, os.path.dirname(os.path.dirname(__file__))):  # noqa: PTH120
        path = Path(os.path.realpath(place))
        if path.is_relative_to(folder):
            yield path


def trial(view: View) -> Iterator[str]:
    """Return the words that try whether all of this can be done, without a workspace."""
    yield from _namespaces()
    yield from _system(view)
    yield from ("--remount-ro", "/", "--")


def environment(outer: Mapping[str, str], user_home: Path) -> dict[str, str]:
    """Return the variables a command begins with: a short list, and nothing that could hold a key."""
    chosen = {name: outer[name] for name in ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "COLORTERM") if outer.get(name)}
    chosen["TERM"] = outer.get("TERM") or "xterm-256color"
    chosen["PATH"] = outer.get("PATH") or "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    roots = {name: outer.get(name) or str(user_home / place) for name, place in _ROOTS.items()}
    return chosen | {name: place for name, place in roots.items() if os.path.isdir(place)}  # noqa: PTH112 - a plain text


def _namespaces() -> Iterator[str]:
    yield from ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
    yield from ("--uid", USER, "--gid", USER, "--hostname", "hermes", "--cap-drop", "ALL", "--disable-userns")
    yield from ("--die-with-parent", "--new-session")


def _tools(user_home: Path) -> Iterator[Path]:
    for prefix in dict.fromkeys((sys.base_prefix, sys.prefix)):
        path = Path(os.path.realpath(prefix))
        if not any(name in _SECRET_NAMES for name in path.parts) and path != user_home:
            yield path
    for name in _TOOLS:
        path = user_home / name
        if path.is_dir():
            yield path


def _is_below(path: Path, others: Iterable[Path]) -> bool:
    return any(path.is_relative_to(other) for other in others)


def _private(root: Path) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    files, folders = [], []
    for place, below, names in os.walk(root):
        for name in (*below, *names):
            path = Path(place, name)
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode) and mode & 0o005 != 0o005:
                folders.append(path)
                below.remove(name)
            elif stat.S_ISREG(mode) and not mode & 0o004:
                files.append(path)
    return tuple(files), tuple(folders)


def _of_proc() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what of /proc speaks of the whole machine and is not for everybody: an owner's rights do not hold it
    back when Hermes is root.
    """
    files, folders = [], []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() or entry.is_symlink() or entry.name in _PROC_FOLDERS_TO_READ:
            continue
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            folders.append(entry.name)
        elif not mode & 0o004 or mode & 0o222 or entry.name in _PROC_HIDDEN:
            files.append(entry.name)
    return tuple(files), tuple(folders)
