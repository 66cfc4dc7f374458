"""The side of the model: reads questions from a pipe, has an engine answer them, and writes what comes of it.

Invariant: when the other side is gone, so is this process; a question that nobody waits for is stopped.
"""

import os
import queue
import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

import msgspec

from hermes.domain.errors import Unavailable
from hermes.llm.local.frames import Ask, Done, Failed, Frames, News, Piece, Reading, Ready, Stop, framed, order

_WAITING = 64
_CHUNK = 1 << 16

Tell: TypeAlias = Callable[[Reading | Piece], bool]
"""Called with what there is of an answer; returns True when it is to stop."""


class Refused(Exception):
    """The engine cannot answer; `failed` says why."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.text)
        self.failed = failed


class Engine(Protocol):
    """Goes on with texts, one at a time."""

    def answer(self, ask: Ask, tell: Tell) -> Done:
        """Answer a question, or raise Refused."""
        ...


def serve(load: Callable[[], Engine], reading: int, writing: int, gone: Callable[[], None]) -> None:
    """Load an engine and answer until the pipe is closed, then call `gone`. Runs in the thread of the caller."""
    asked: queue.Queue[Ask | None] = queue.Queue(_WAITING)
    stopped: set[int] = set()
    listener = threading.Thread(target=_listen, args=(reading, asked, stopped, gone), daemon=True)
    listener.start()

    def say(news: News) -> None:
        data = memoryview(framed(news))
        while data:
            data = data[os.write(writing, data) :]

    try:
        engine = load()
    except Refused as error:
        say(error.failed)
        return
    say(Ready())
    while (ask := asked.get()) is not None:
        say(_answer(engine, ask, say, stopped))
        stopped.discard(ask.number)


def _answer(engine: Engine, ask: Ask, say: Callable[[News], None], stopped: set[int]) -> News:
    def tell(news: Reading | Piece) -> bool:
        say(news)
        return ask.number in stopped

    if ask.number in stopped:
        return Done(ask.number, "stopped", 0, 0)
    try:
        return engine.answer(ask, tell)
    except Refused as error:
        return error.failed
    except Exception as error:  # noqa: BLE001 - the boundary of a question: it is told, and the next one is answered
        return Failed(ask.number, "unavailable", f"{type(error).__name__}: {error}")


def _listen(reading: int, asked: "queue.Queue[Ask | None]", stopped: set[int], gone: Callable[[], None]) -> None:
    frames = Frames()
    try:
        while data := os.read(reading, _CHUNK):
            for body in frames.feed(data):
                match order(body):
                    case Ask() as ask:
                        asked.put(ask)
                    case Stop(number):
                        stopped.add(number)
    except (OSError, Unavailable, msgspec.DecodeError):
        # Whoever is there speaks no language we know: as good as gone.
        asked.put(None)
    gone()
    asked.put(None)
