"""Our side of the process of the model: starts it, talks with it through pipes, and ends it.

Invariant: every wait has a deadline; a process that keeps silent longer is ended, and so is one that nobody owns.
"""

import os
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import anyio

from hermes.domain.errors import Unavailable
from hermes.llm.local.frames import Frames, News, Order, framed, news

_CHUNK = 1 << 16
_END_SECONDS = 5.0
_GONE = "the process of the local model has ended by itself; when memory is short, close other programs"


class Link:
    """Two pipes to somebody who serves a model. `end` ends them, and may be called more than once."""

    def __init__(self, reading: int, writing: int, end: Callable[[], None], *, pid: int = 0) -> None:
        self.pid = pid
        self._reading = reading
        self._writing = writing
        self._end = end
        self._frames = Frames()
        self._heard: deque[News] = deque()
        self._is_open = True
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)

    @property
    def is_open(self) -> bool:
        """Whether somebody is there, as far as we know."""
        return self._is_open

    async def send(self, order: Order, seconds: float) -> None:
        """Say something. Raises Unavailable, and closes, when nobody takes it."""
        rest = memoryview(framed(order))
        try:
            with anyio.fail_after(seconds):
                while rest:
                    await anyio.wait_writable(self._writing)
                    rest = rest[os.write(self._writing, rest[:4096]) :]
        except (OSError, TimeoutError, anyio.ClosedResourceError) as error:
            self.close()
            raise Unavailable("the process of the local model is gone; it is started again at the next try") from error

    async def receive(self, seconds: float) -> News:
        """Return the next thing that is said. Raises Unavailable, and closes, when nothing comes for so long."""
        try:
            with anyio.fail_after(seconds):
                while not self._heard:
                    await anyio.wait_readable(self._reading)
                    data = os.read(self._reading, _CHUNK)
                    if not data:
                        break
                    self._heard.extend(news(body) for body in self._frames.feed(data))
        except TimeoutError:
            self.close()
            raise Unavailable(f"the local model said nothing for {seconds:g} s and was ended; ask again") from None
        except (OSError, anyio.ClosedResourceError) as error:
            self.close()
            raise Unavailable(_GONE) from error
        if not self._heard:
            self.close()
            raise Unavailable(_GONE)
        return self._heard.popleft()

    def close(self) -> None:
        """End it."""
        if self._is_open:
            self._is_open = False
            os.close(self._reading)
            os.close(self._writing)
            self._end()


def _nothing() -> None:
    """Nothing is to be done."""


def start(words: Sequence[str], environment: Mapping[str, str], afterwards: Callable[[], None] = _nothing) -> Link:
    """Start a process that serves a model; do something when it has ended. Raises Unavailable when it cannot start."""
    try:
        process = subprocess.Popen(
            list(words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            start_new_session=True,
        )
    except OSError as error:
        afterwards()
        raise Unavailable(f"the process of the local model cannot be started: {error.strerror}; try again") from error
    if process.stdin is None or process.stdout is None:
        raise AssertionError("both were asked for")
    reading, writing = os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno())
    process.stdin.close()
    process.stdout.close()

    def end() -> None:
        # The pipe is closed, at which it goes; what hangs is ended.
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_END_SECONDS)
        afterwards()

    return Link(reading, writing, end, pid=process.pid)
