"""An engine that plays from a script behind the pipes of the embedded model: no weights, no process."""

import json
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from hermes.domain.errors import HermesError, LimitReached, Unavailable
from hermes.domain.model import ContextOverflow
from hermes.llm.local.frames import Ask, Done, Failed, Kind, Piece, Reading
from hermes.llm.local.link import Link
from hermes.llm.local.serving import Refused, Tell, serve
from hermes.testing.turn import Fail, Order, Say, Turn


class ScriptedEngine:
    """An Engine. A turn is written as steps, as a real one is held to."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        self._turns = deque(turns)
        self.asked: list[Ask] = []

    def add(self, *turns: Turn) -> None:
        """Put more turns at the end."""
        self._turns.extend(turns)

    def answer(self, ask: Ask, tell: Tell) -> Done:
        """Play the next turn."""
        self.asked.append(ask)
        if not self._turns:
            raise AssertionError(f"the engine was asked {len(self.asked)} times, more often than its script has turns")
        turn = self._turns.popleft()
        match turn:
            case str():
                return self._play(ask, Say(turn), tell)
            case Say():
                return self._play(ask, turn, tell)
            case Fail():
                if turn.after:
                    whole = "".join(_steps(ask, Say(turn.after)))
                    tell(Piece(ask.number, whole.removesuffix('"}')))
                raise Refused(Failed(ask.number, _kind(turn.error), str(turn.error)))

    def _play(self, ask: Ask, turn: Say, tell: Tell) -> Done:
        usage = turn.usage
        tell(Reading(ask.number, usage.input, usage.input))
        for text in _steps(ask, turn):
            for piece in turn.pieces(text):
                if turn.pause:
                    time.sleep(turn.pause)
                if tell(Piece(ask.number, piece)):
                    return Done(ask.number, "stopped", usage.input, 0)
        return Done(
            ask.number, "length" if turn.finish == "length" else "stop", usage.input, usage.output, usage.cache_read
        )

    @contextmanager
    def linked(self) -> Iterator[Link]:
        """Serve in a thread, at the other end of real pipes."""
        orders, telling = os.pipe()
        hearing, news = os.pipe()
        thread = threading.Thread(target=self._serve, args=(orders, news), daemon=True)
        thread.start()
        link = Link(hearing, telling, lambda: None)
        try:
            yield link
        finally:
            link.close()
            thread.join(10)
            os.close(orders)

    def _serve(self, orders: int, news: int) -> None:
        try:
            serve(lambda: self, orders, news, lambda: None)
        except OSError:
            # Nobody listens any more, which a test may want.
            self._turns.clear()
        finally:
            os.close(news)


def _steps(ask: Ask, turn: Say) -> Iterator[str]:
    if b'"final"' not in ask.schema:
        yield turn.text
        return
    if turn.reasoning:
        yield json.dumps({"think": turn.reasoning})
    if turn.text:
        # Half of the texts with escapes, half without, as models do.
        yield json.dumps({"final": turn.text}, ensure_ascii=len(turn.text) % 2 == 0)
    for order in turn.calls:
        yield json.dumps({"tool": order.name, **_arguments(order)})


def _arguments(order: Order) -> dict[str, object]:
    given = json.loads(order.arguments) if isinstance(order.arguments, str) else order.arguments
    return dict(given)


def _kind(error: HermesError) -> Kind:
    match error:
        case ContextOverflow():
            return "overflow"
        case LimitReached():
            return "limit"
        case Unavailable():
            return "unavailable"
        case _:
            return "request"
