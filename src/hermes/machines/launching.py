"""From a command to what is started for it: the sandbox's arguments, the environment, the shell around it.

Invariant: in a mode that promises a sandbox the command is started in one, or it is refused when one is required.
"""

import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hermes.config import Settings
from hermes.config.sections import Terminal
from hermes.domain.errors import Denied, Misconfigured, Unavailable
from hermes.domain.machine import Command, Mode
from hermes.domain.records import dataclass
from hermes.machines import ability, cgroup, landlock, network, person, sandbox, seccomp, shell, workspace
from hermes.machines.ability import Ability
from hermes.machines.cgroup import Cgroups
from hermes.machines.child import Launch
from hermes.machines.family import MARK
from hermes.machines.guard import Guard
from hermes.machines.network import Network, SessionNetwork
from hermes.machines.placeholders import Placeholders
from hermes.machines.repositories import Repositories
from hermes.machines.sandbox import Folders, View
from hermes.machines.session import Session
from hermes.machines.workspace import Workspace

_log = logging.getLogger("hermes.machines")
_OF_A_PERSON = ("HOME", "USER", "LOGNAME", "SHELL", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK")
_SECRET_NAME = re.compile(r"KEY$|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|(^|_)(AUTH|PAT|PASS|KEYS)(_|$)")
_ALWAYS_WRITABLE = ("/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm")


@dataclass(frozen=True, slots=True)
class Launcher:
    """What was found out once about this machine, to start commands with."""

    settings: Settings
    outer: Mapping[str, str]
    user_home: Path
    view: View
    ability: Ability
    placeholders: Placeholders
    cgroups: Cgroups | None
    git: bytes
    """What of the person's own settings of git goes into the home of each session."""
    spare: list[SessionNetwork]
    """Holds the network that was made to try it, until a session wants one."""

    @classmethod
    def find(cls, settings: Settings, outer: Mapping[str, str]) -> "Launcher":
        """Look at the machine, and try its sandbox. Blocks for some milliseconds."""
        passed_on(settings.terminal)
        user_home = Path(os.path.realpath(outer.get("HOME") or Path.home()))
        view = sandbox.survey(user_home, settings.home, settings.sandbox.readable)
        path = outer.get("PATH") or os.defpath
        words = list(sandbox.trial(view))
        found, spare = network.attempt(ability.find(words, path), words)
        groups = cgroup.find()
        return cls(
            settings,
            outer,
            user_home,
            view,
            found,
            Placeholders(settings.home / "machines" / "local" / "placeholders"),
            groups,
            person.git(outer, path),
            [spare] if spare else [],
        )

    def describe(self) -> str:
        """One line for people: what holds a command back here, and what bounds it."""
        each = "memory and processes are bounded for each command"
        how = each if self.cgroups else f"{each} by looking (no control groups are ours)"
        return f"{self.ability.said}; {how}"

    def guard(self, command: Command, session: Session) -> Guard:
        """Say what to look at while a command runs."""
        held = self.settings.sandbox
        places = (command.workspace, session.folder)
        if self.cgroups:
            return Guard(places, held.free_bytes)
        return Guard(places, held.free_bytes, held.memory, held.processes)

    def network(self) -> SessionNetwork | None:
        """Return a network for a session, None where none can be made."""
        if self.spare:
            return self.spare.pop()
        return SessionNetwork(self.ability) if self.ability.protection == "sandbox" and self.ability.nsenter else None

    def is_sandboxed(self, mode: Mode) -> bool:
        """Whether a command of this mode runs in a sandbox."""
        return mode != "full" and self.ability.protection == "sandbox"

    @contextmanager
    def launch(
        self,
        command: Command,
        session: Session,
        *,
        mark: str,
        told: int | None,
        network: Network,
        tell: Callable[[str], None],
        has_stdin: bool = False,
    ) -> Iterator[Launch]:
        """Say how to start a command; leave the block when it has ended. `told` hears how its shell was left, `tell`
        what was done about what it has left.

        Raises Misconfigured for a workspace that cannot be one, Denied when a required sandbox is missing.
        """
        if mode_needs(command.mode, self.ability, is_required=self.settings.sandbox.required):
            raise Denied(f"commands run only in a sandbox here, and there is none: {self.ability.said}")
        folder = workspace.checked(command.workspace, self.user_home, self.settings.home)
        is_sandboxed = self.is_sandboxed(command.mode)
        state = session.begin(command, is_sandboxed=is_sandboxed)
        words = [self.ability.shell, *shell.arguments(command.text, state.cwd, folder, self._limits(), state=told)]
        if command.is_pty and self.ability.setsid:
            words = [self.ability.setsid, "-c", "-w", *words]
        passed = [] if told is None else [told]
        with ExitStack() as stack:
            if is_sandboxed:
                there = session.repositories.get(folder) or Repositories(folder)
                session.repositories[folder] = there
                found = workspace.inspect(folder, there.known)
                if command.mode == "workspace":
                    stack.callback(_disarm, there, tell)
                stack.enter_context(self.placeholders.of(found if command.mode == "workspace" else None))
                held = self._sandboxed(found, session.folders, command.mode, stack, passed)
                alone = () if network.enter else ("--unshare-net",)
                words = [*network.enter, self.ability.bwrap, *alone, *held, *words]
            else:
                # What a person has let out of the sandbox is theirs from then on.
                stack.callback(session.repositories.pop, folder, None)
            if not is_sandboxed and self.ability.protection == "confined" and command.mode != "full":
                words = [*self._confined(folder, session.folders, command.mode), *words]
            words = [*self._grouped(mark, stack), *words]
            yield Launch(
                argv=words,
                environment=self._environment(command, session.folders, mark, network, state.environment),
                cwd="/" if is_sandboxed else str(folder),
                mark=mark,
                is_sandboxed=is_sandboxed,
                is_pty=command.is_pty,
                has_stdin=bool(command.stdin) or has_stdin,
                passed=tuple(passed),
            )

    def _sandboxed(
        self, found: Workspace, folders: Folders, mode: Mode, stack: ExitStack, passed: list[int]
    ) -> Iterator[str]:
        yield from sandbox.arguments(self.view, found, folders, mode)
        filtered = seccomp.filter_for()
        if filtered is not None:
            descriptor = seccomp.as_descriptor(filtered)
            stack.callback(os.close, descriptor)
            passed.append(descriptor)
            yield from ("--seccomp", str(descriptor))
        yield "--"

    def _grouped(self, mark: str, stack: ExitStack) -> tuple[str, ...]:
        if self.cgroups is None:
            return ()
        held = self.settings.sandbox
        try:
            return stack.enter_context(self.cgroups.of(mark, memory=held.memory, processes=held.processes))
        except OSError as error:
            raise Unavailable(f"the limits of the command cannot be set: {error.strerror}; try again") from error

    def _confined(self, folder: Path, folders: Folders, mode: Mode) -> Iterator[str]:
        yield from (sys.executable, "-I", "-S", landlock.__file__)
        yield from (place for place in _ALWAYS_WRITABLE if Path(place).exists())
        yield from (str(folders.home), str(folders.temporary))
        if mode == "workspace":
            yield str(folder)
        yield "--"

    def _environment(
        self, command: Command, folders: Folders, mark: str, network: Network, exported: Mapping[bytes, bytes]
    ) -> dict[bytes, bytes]:
        """Return the variables: ours to begin with, then what a command before exported, then what nobody overrules."""
        begin = sandbox.environment(self.outer, self.user_home)
        begin |= {name: self.outer[name] for name in passed_on(self.settings.terminal) if name in self.outer}
        if self.is_sandboxed(command.mode):
            own = {"HOME": str(sandbox.HOME), "USER": "hermes", "LOGNAME": "hermes", "TMPDIR": "/tmp"}
        elif command.mode != "full" and self.ability.protection == "confined":
            own = {"HOME": str(folders.home), "TMPDIR": str(folders.temporary)}
        else:
            own = {name: self.outer[name] for name in _OF_A_PERSON if name in self.outer}
        own |= {**command.environment, **network.variables, MARK: mark}
        return {**_encoded(begin), **exported, **_encoded(own)}

    def _limits(self) -> shell.Limits:
        held = self.settings.sandbox
        return shell.Limits(held.memory, held.processes, held.file_bytes)


def _disarm(there: Repositories, tell: Callable[[str], None]) -> None:
    for line in there.disarm():
        _log.warning("a repository was disarmed", extra={"fields": {"what": line}})
        tell(line)


def passed_on(given: Terminal) -> tuple[str, ...]:
    """Return the variables of the person's that commands see; raise Misconfigured for a secret that is only listed
    among the others.
    """
    for name in given.env_passthrough:
        if name not in given.env_secrets and _SECRET_NAME.search(name.upper()):
            raise Misconfigured(
                f"terminal.env_passthrough lists {name!r}, which looks like a secret: commands, and all that they "
                "download and run, could read it. Take it out, or list it in terminal.env_secrets if that is meant"
            )
    return (*given.env_passthrough, *given.env_secrets)


def mode_needs(mode: Mode, found: Ability, *, is_required: bool) -> bool:
    """Whether a command must be refused because nothing would hold it."""
    return is_required and mode != "full" and found.protection != "sandbox"


def _encoded(variables: Mapping[str, str]) -> dict[bytes, bytes]:
    return {name.encode(): value.encode("utf-8", "surrogateescape") for name, value in variables.items()}
