"""A server that speaks like a model's vendor, on loopback: both wires, streamed and whole, well or badly behaved.

The official clients accept it (tests/peers); so what our adapters accept from it is what vendors send.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import anyio
from anyio.abc import ByteStream, SocketAttribute

from hermes.domain.errors import LimitReached
from hermes.domain.model import ContextOverflow
from hermes.testing.model_wires import AnthropicScribe, ChatScribe, wrong_in_anthropic, wrong_in_chat
from hermes.testing.turn import Fail, Say, Turn

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    raw: bytes
    body: dict[str, Any]

    @property
    def is_chat(self) -> bool:
        """Whether it speaks chat completions."""
        return self.path.endswith("/chat/completions")


Behave: TypeAlias = Callable[[ByteStream, Asked], Awaitable[None]]
"""Writes whatever it likes to one request. Returning closes the connection unless the stream can take another."""


class Closed(Exception):
    """The connection is not to be used any more."""


class ModelServer:
    """Plays its turns in order, whoever asks. Each of `behaviours` is used first, once."""

    def __init__(self, turns: Iterable[Turn] = (), *, key: str = "sk-fake") -> None:
        self._turns = list(turns)
        self._key = key
        self._number = 0
        self.behaviours: list[Behave] = []
        self.asked: list[Asked] = []
        self.connections = 0
        self.port = 0

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def add(self, *turns: Turn) -> None:
        """Put more turns at the end."""
        self._turns += turns

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["ModelServer"]:
        """Listen for the length of a block."""
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        self.port = int(listener.extra(SocketAttribute.local_port))  # noqa: S610 - of anyio, no database
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, self._serve)
            yield self
            group.cancel_scope.cancel()

    async def _serve(self, stream: ByteStream) -> None:
        self.connections += 1
        buffer = bytearray()
        async with stream:
            try:
                while (asked := await self._receive(stream, buffer)) is not None:
                    self.asked.append(asked)
                    if self.behaviours:
                        await self.behaviours.pop(0)(stream, asked)
                    else:
                        await self._answer(stream, asked)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, Closed):
                return

    async def _receive(self, stream: ByteStream, buffer: bytearray) -> Asked | None:
        try:
            while b"\r\n\r\n" not in buffer:
                buffer += await stream.receive()
            head, _, _ = bytes(buffer).partition(b"\r\n\r\n")
            lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            length = len(head) + 4 + int(headers.get("content-length", "0"))
            while len(buffer) < length:
                buffer += await stream.receive()
        except anyio.EndOfStream:
            return None
        raw = bytes(buffer[len(head) + 4 : length])
        del buffer[:length]
        return Asked(lines[0].split(" ")[1], headers, raw, json.loads(raw) if raw else {})

    async def _answer(self, stream: ByteStream, asked: Asked) -> None:
        if asked.path.endswith("/models"):
            await send_json(stream, 200, {"object": "list", "data": [{"id": "fake-model", "object": "model"}]})
            return
        given = asked.headers.get("x-api-key") or asked.headers.get("authorization", "").removeprefix("Bearer ")
        if given != self._key:
            await self._refuse(stream, asked, 401, "invalid_api_key", "authentication_error", "the key is wrong")
            return
        if not asked.path.endswith(("/chat/completions", "/v1/messages")):
            await send_json(stream, 404, {"error": {"message": f"nothing at {asked.path}", "type": "not_found_error"}})
            return
        wrong = wrong_in_chat(asked.body) if asked.is_chat else wrong_in_anthropic(asked.body)
        if wrong:
            await self._refuse(stream, asked, 400, "invalid_request", "invalid_request_error", wrong)
            return
        self._number += 1
        if not self._turns:
            raise AssertionError(f"the model was asked {self._number} times, more often than its script has turns")
        turn = self._turns.pop(0)
        if isinstance(turn, Fail):
            await self._fail(stream, asked, turn)
        else:
            await play(stream, asked, Say(turn) if isinstance(turn, str) else turn, self._number)

    async def _fail(self, stream: ByteStream, asked: Asked, turn: Fail) -> None:
        """Say in the vendor's way what the turn says in ours."""
        match turn.error:
            case ContextOverflow():
                words = "prompt is too long: 9 tokens > 8 maximum"
                await self._refuse(stream, asked, 400, "context_length_exceeded", "invalid_request_error", words)
            case LimitReached():
                await self._refuse(stream, asked, 402, "insufficient_quota", "billing_error", "no credit is left")
            case _ if turn.after:
                await play(stream, asked, Say(turn.after), self._number, is_cut=True)
                raise Closed
            case _:
                await self._refuse(stream, asked, 529, "overloaded", "overloaded_error", str(turn.error))

    async def _refuse(self, stream: ByteStream, asked: Asked, status: int, code: str, kind: str, words: str) -> None:
        chat = {"error": {"message": words, "type": kind, "code": code, "param": None}}
        other = {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_fake"}
        await send_json(stream, status, chat if asked.is_chat else other)


async def play(stream: ByteStream, asked: Asked, turn: Say, number: int, *, is_cut: bool = False) -> None:
    """Write one good answer, or most of one that breaks off before its end."""
    model = str(asked.body.get("model"))
    scribe = ChatScribe(model, number) if asked.is_chat else AnthropicScribe(model, number)
    if not asked.body.get("stream"):
        await send_json(stream, 200, scribe.whole(turn))
        return
    if isinstance(scribe, ChatScribe):
        options = asked.body.get("stream_options") or {}
        events = list(scribe.stream(turn, with_usage=bool(options.get("include_usage"))))
    else:
        events = list(scribe.stream(turn))
    await stream.send(STREAM)
    for event in events[: -3 if is_cut else None]:
        if turn.pause:
            await anyio.sleep(turn.pause)
        await stream.send(chunk(event))
    if not is_cut:
        await stream.send(b"0\r\n\r\n")


def good_events(asked: Asked) -> list[bytes]:
    """Return the events of a good answer on the wire that was asked on: "Hello" and a few words."""
    turn = Say("Hello from the fake model.", piece=5)
    scribe = ChatScribe("fake-model", 1) if asked.is_chat else AnthropicScribe("fake-model", 1)
    return list(scribe.stream(turn))


def chunk(data: bytes) -> bytes:
    """Write one chunk of a body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


async def send_json(stream: ByteStream, status: int, value: object, headers: str = "") -> None:
    """Write an answer that is one JSON document."""
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} Status\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    await stream.send(head.encode() + body)
