"""How soon a key is seen on the chat screen: while nothing goes on, and while 10,000 tokens stream in at 500 a second.

    python -m bench.screen [TOKENS] [TOKENS_A_SECOND]

The terminal is a pseudo-terminal that this process reads; a key is seen when its letter comes back.
"""

import contextlib
import fcntl
import os
import pty
import re
import resource
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from hermes.testing.model_server import ModelServer
from hermes.testing.turn import Say

HERMES = Path(sys.executable).parent / "hermes"
KEYS = b"ABDEFGIJKLMNOPQRSTUVWXYZ"
"""Letters that nothing else on the screen has, each once until the line is emptied: what is drawn anew is no echo."""
EVERY = 0.1
_ESCAPE = re.compile(rb"\x1b(\[[0-9;?]*([A-Za-z]|$)|$)")
SECONDS = 30.0
PARAGRAPH = "some **words** and `code` in a paragraph of an answer that goes on for a while, line after line.\n"
CODE = "```python\ndef function(argument):\n    return argument + other\n```\n\n"


class Screen:
    """`hermes` in a pseudo-terminal of 100 columns."""

    def __init__(self, url: str, home: str) -> None:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(home)
            environment = {
                "PATH": os.environ["PATH"],  # noqa: TID251 - passed on
                "HOME": str(Path(home).parent),
                "HERMES_HOME": f"{home}/.hermes",
                "TERM": "xterm-256color",
                "LANG": "C.UTF-8",
                "OPENAI_API_KEY": "sk-fake",
                "OPENAI_BASE_URL": f"{url}/v1",
            }
            os.execve(HERMES, [str(HERMES)], environment)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    def until(self, word: bytes) -> float:
        """Read until a word has come; return the seconds that took."""
        began, seen = time.monotonic(), b""
        while word not in _ESCAPE.sub(b"", seen):
            left = began + SECONDS - time.monotonic()
            assert left > 0, f"{word!r} did not come: {seen[-300:]!r}"
            if select.select([self._terminal], [], [], left)[0]:
                seen = seen[-200:] + os.read(self._terminal, 65_536)
        return time.monotonic() - began

    def drain(self, seconds: float) -> None:
        """Read what comes for a while."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                os.read(self._terminal, 65_536)

    def press(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def latencies(self, seconds: float) -> list[float]:
        """Press a key now and then, and see how soon it is shown."""
        found, until = [], time.monotonic() + seconds
        while time.monotonic() < until:
            number = len(found) % len(KEYS)
            if number == 0:
                self.press(b"\x15")
                self.drain(EVERY)
            key = KEYS[number : number + 1]
            self.press(key)
            found.append(self.until(key) * 1000)
            self.drain(EVERY)
        self.press(b"\x15")
        self.drain(EVERY)
        return found

    def leave(self) -> float:
        """Leave; return the seconds of CPU that it has taken."""
        self.press(b"\x04")
        with contextlib.suppress(OSError):  # the other end is closed
            self.drain(SECONDS)
        os.waitpid(self._pid, 0)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime


def shown(name: str, found: list[float]) -> str:
    ordered = sorted(found)
    worst = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return (
        f"{name:<12} {len(ordered):>4} keys   median {statistics.median(ordered):6.1f} ms   "
        f"95 % {worst:6.1f} ms   worst {ordered[-1]:6.1f} ms"
    )


def main(tokens: int = 10_000, rate: int = 500) -> None:
    text = ""
    while len(text) < tokens * 5:
        text += PARAGRAPH * 4 + "\n" + CODE
    server = ModelServer([Say(text[: tokens * 5], piece=5, pause=1 / rate)])
    with (
        tempfile.TemporaryDirectory() as home,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(server.opened()),
    ):
        work = Path(home) / "work"
        work.mkdir()
        screen = Screen(server.url, str(work))
        screen.until(b"workspace")
        screen.drain(1.0)
        idle = screen.latencies(5)
        screen.press(b"go\r")
        screen.until(b"writing")
        began = time.monotonic()
        busy = screen.latencies(tokens / rate * 0.9)
        seconds = time.monotonic() - began
        screen.drain(tokens / rate * 0.5)
        cpu = screen.leave()
    print(shown("idle", idle))
    print(shown("streaming", busy))
    print(f"{tokens:,} tokens at {rate} a second, {seconds:.0f} s; CPU of all {cpu:.1f} s")


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
