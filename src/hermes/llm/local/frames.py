"""What is said between Hermes and the process of the model: frames of a length and a message.

Invariant: one question at a time; every question ends with `Done` or `Failed` of its number, whatever happens between.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from hermes.domain.errors import Unavailable

MOST = 16 << 20
Kind = Literal["overflow", "limit", "unavailable", "request", "load"]
Finish = Literal["stop", "length", "stopped"]
_LENGTH = 4


class Ask(msgspec.Struct, tag=True, frozen=True):
    """Go on with a text: `prefix`, which stays the same, then `rest`. `schema` is JSON of what the answer must be."""

    number: int
    prefix: str
    rest: str
    schema: bytes = b""
    most: int = 256
    temperature: float = 0.0


class Stop(msgspec.Struct, tag=True, frozen=True):
    """Nobody waits for this answer any more."""

    number: int


class Ready(msgspec.Struct, tag=True, frozen=True):
    """The model is loaded."""


class Reading(msgspec.Struct, tag=True, frozen=True):
    """So many tokens of the text are read."""

    number: int
    done: int
    total: int


class Piece(msgspec.Struct, tag=True, frozen=True):
    """A piece of the answer."""

    number: int
    text: str


class Done(msgspec.Struct, tag=True, frozen=True):
    """The answer is complete, or was stopped. Tokens: those of the text, of the answer, and of the text those that had
    been read before.
    """

    number: int
    finish: Finish
    input: int
    output: int
    known: int = 0


class Failed(msgspec.Struct, tag=True, frozen=True):
    """There is no answer, or no more of it; number 0 is for the model that could not be loaded."""

    number: int
    kind: Kind
    text: str


Order: TypeAlias = Ask | Stop
News: TypeAlias = Ready | Reading | Piece | Done | Failed

_ENCODER = msgspec.msgpack.Encoder()
_ORDERS: msgspec.msgpack.Decoder[Order] = msgspec.msgpack.Decoder(Ask | Stop)
_NEWS: msgspec.msgpack.Decoder[News] = msgspec.msgpack.Decoder(Ready | Reading | Piece | Done | Failed)


def framed(message: Order | News) -> bytes:
    """Write a frame."""
    body = _ENCODER.encode(message)
    return len(body).to_bytes(_LENGTH) + body


class Frames:
    """Cuts what comes through a pipe into the bodies of frames. Raises Unavailable for what is no frame."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take what came, and give what is whole."""
        self._held += data
        while len(self._held) >= _LENGTH:
            length = int.from_bytes(self._held[:_LENGTH])
            if length > MOST:
                raise Unavailable(f"a frame of {length:,} bytes came from a pipe, and at most {MOST:,} are expected")
            if len(self._held) < _LENGTH + length:
                return
            body = bytes(self._held[_LENGTH : _LENGTH + length])
            del self._held[: _LENGTH + length]
            yield body


def order(body: bytes) -> Order:
    """Read an order."""
    return _ORDERS.decode(body)


def news(body: bytes) -> News:
    """Read what the process has to say. Raises Unavailable."""
    try:
        return _NEWS.decode(body)
    except msgspec.DecodeError as error:
        raise Unavailable(f"the process of the local model says what nobody understands: {error}") from error
