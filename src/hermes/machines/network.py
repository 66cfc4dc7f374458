"""The network of a session: a loopback of its own, with nobody there but a port of ours for each running command.

Invariant: the port belongs to one command at a time, and who connected to it before is gone when it gets another.
Descriptors of the network stay with us; commands are led into it and cannot lead anybody else.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace

import anyio
import anyio.to_thread

from hermes.domain.errors import Unavailable
from hermes.domain.records import dataclass
from hermes.machines import listening
from hermes.machines.ability import Ability, refuses

_SECONDS = 20.0
_LOCAL = "localhost,127.0.0.1,::1"


@dataclass(frozen=True, slots=True)
class Network:
    """What a command gets: `enter` are the words that lead into the network, `variables` tell programs of the proxy.

    Without `enter` it gets a network in which there is nobody at all.
    """

    enter: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    listener: socket.socket | None = None


@dataclass(slots=True)
class SessionNetwork:
    """One network, made with the first command of a session. `close` gives it back, after the last of them."""

    ability: Ability
    user: int = -1
    net: int = -1
    free: list[socket.socket] = field(default_factory=list)
    _making: anyio.Lock = field(default_factory=anyio.Lock)

    async def prepare(self) -> None:
        """See to it that there is a free port. Raises Unavailable."""
        async with self._making:
            if not self.free:
                await anyio.to_thread.run_sync(self.make)

    @contextmanager
    def lend(self) -> Iterator[Network]:
        """Give a prepared port to one command, until the block is left."""
        listener = self.free.pop()
        try:
            yield Network(self.enter(), _variables(listener.getsockname()[1]), listener)
        finally:
            _send_away(listener)
            self.free.append(listener)

    def close(self) -> None:
        """Give everything back."""
        for listener in self.free:
            listener.close()
        self.free.clear()
        if self.user >= 0:
            os.close(self.user)
            os.close(self.net)
            self.user = self.net = -1

    def enter(self) -> tuple[str, ...]:
        """Return the words that lead into the network."""
        # By our own list of descriptors, so that none of them is passed on.
        ours = f"/proc/{os.getpid()}/fd"
        return (
            self.ability.nsenter,
            "--preserve-credentials",
            f"--user={ours}/{self.user}",
            f"--net={ours}/{self.net}",
        )

    def make(self) -> None:
        """Add a port. Blocks for some milliseconds; raises Unavailable."""
        if self.user >= 0:
            listener, *again = hand_out(self.enter())
            for handle in again:
                os.close(handle)
        else:
            listener, self.user, self.net = hand_out(made(self.ability.bwrap))
        taken = socket.socket(fileno=listener)
        taken.setblocking(False)
        self.free.append(taken)


def attempt(ability: Ability, arguments: Sequence[str]) -> "tuple[Ability, SessionNetwork | None]":
    """Try a network with the sandbox's `arguments`; return it for the first session, and the ability corrected."""
    if ability.protection != "sandbox" or not ability.nsenter:
        return ability, None
    network = SessionNetwork(ability)
    try:
        network.make()
        refused = refuses([*network.enter(), ability.bwrap], arguments)
    except Unavailable as error:
        refused = str(error)
    if not refused:
        return ability, network
    network.close()
    said = f"sandboxed by bubblewrap: own files and processes, network none ({refused})"
    return replace(ability, nsenter="", said=said), None


def made(bwrap: str) -> tuple[str, ...]:
    """Return the words that make a network and run something in it."""
    return (bwrap, "--unshare-user", "--unshare-net", "--uid", "0", "--gid", "0", "--ro-bind", "/", "/", "--")


def hand_out(words: Sequence[str]) -> list[int]:
    """Listen in the network that `words` lead into; return the listener, and the network's two descriptors."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(_SECONDS)
        argv = [*words, sys.executable, "-I", "-S", listening.__file__, str(theirs.fileno())]
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={},
                cwd="/",
                timeout=_SECONDS,
                check=False,
                pass_fds=(theirs.fileno(),),
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"the network of a sandbox cannot be made: {error}; try again") from error
        theirs.close()
        with suppress(OSError):
            _, handles, _, _ = socket.recv_fds(ours, 1, 3)
            if len(handles) == 3:
                return handles
        said = done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}"
        raise Unavailable(f"the network of a sandbox cannot be made: {said}; try again")


def _variables(port: int) -> dict[str, str]:
    proxy = f"http://127.0.0.1:{port}"
    both = {name: proxy for low in ("http_proxy", "https_proxy", "all_proxy") for name in (low, low.upper())}
    # Newer versions of node heed the rest only when told to.
    return {**both, "no_proxy": _LOCAL, "NO_PROXY": _LOCAL, "NODE_USE_ENV_PROXY": "1"}


def _send_away(listener: socket.socket) -> None:
    with suppress(BlockingIOError):
        while True:
            listener.accept()[0].close()
