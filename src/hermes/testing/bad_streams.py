"""Ways in which a stream can be odd: of both wires first, then of one alone."""

import json
from collections.abc import Callable, Mapping
from itertools import count

import anyio
from anyio.abc import ByteStream

from hermes.domain.errors import HermesError, LimitReached, Unavailable
from hermes.domain.model import Cut
from hermes.testing.bad_transport import streamed
from hermes.testing.model_server import STREAM, Asked, Behave, chunk, good_events
from hermes.testing.model_wires import AnthropicScribe, ChatScribe
from hermes.testing.turn import Order, Say

Outcome = tuple[Behave, type[HermesError] | None]
_CHAT, _MESSAGES = ChatScribe("fake-model", 1), AnthropicScribe("fake-model", 1)
_END = b"0\r\n\r\n"
_DONE = b"data: [DONE]\n\n"


def joined(make: Callable[[bytes], list[bytes]]) -> Behave:
    """Write a good answer's bytes in the pieces that `make` cuts or turns them into."""
    return streamed(lambda events: [*(chunk(piece) for piece in make(b"".join(events)) if piece), _END])


def of(events: Callable[[], list[bytes]]) -> Behave:
    """Write these events and end well."""

    async def play(stream: ByteStream, _asked: Asked) -> None:
        await stream.send(STREAM + b"".join(chunk(event) for event in events()) + _END)

    return play


def endless(piece: Callable[[Asked], bytes], pause: float = 0.0) -> Behave:
    """Write the same again and again, for as long as anybody reads."""

    async def play(stream: ByteStream, asked: Asked) -> None:
        await stream.send(STREAM)
        data = chunk(piece(asked))
        while True:
            await stream.send(data)
            await anyio.sleep(pause)

    return play


def _text(asked: Asked, text: str) -> bytes:
    if asked.is_chat:
        return _CHAT.chunk({"content": text})
    return _MESSAGES.event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def _arguments(asked: Asked, text: str) -> bytes:
    if asked.is_chat:
        call = {"index": 0, "id": "c", "function": {"name": "shell", "arguments": text}}
        return _CHAT.chunk({"tool_calls": [call]})
    delta = {"type": "input_json_delta", "partial_json": text}
    return _MESSAGES.event("content_block_delta", index=0, delta=delta)


async def _huge_arguments(stream: ByteStream, asked: Asked) -> None:
    turn = Say(calls=(Order("shell", {"cmd": "x" * 3_000_000}),), piece=100_000)
    events = list(_CHAT.stream(turn)) if asked.is_chat else list(_MESSAGES.stream(turn))
    await stream.send(STREAM + b"".join(map(chunk, events)) + _END)


def _error(asked: Asked) -> bytes:
    error = {"type": "overloaded_error", "message": "Overloaded", "code": 529}
    return _CHAT.event({"error": error, "choices": []}) if asked.is_chat else _MESSAGES.event("error", error=error)


def _failing(at: int) -> Behave:
    async def play(stream: ByteStream, asked: Asked) -> None:
        events = [*good_events(asked)[:at], _error(asked)]
        await stream.send(STREAM + b"".join(map(chunk, events)) + _END)

    return play


BOTH: Mapping[str, Outcome] = {
    "good": (joined(lambda raw: [raw]), None),
    "each byte alone": (joined(lambda raw: [raw[at : at + 1] for at in range(len(raw))]), None),
    "cut within characters": (joined(lambda raw: [raw[at : at + 3] for at in range(0, len(raw), 3)]), None),
    "byte order mark": (joined(lambda raw: [b"\xef\xbb", b"\xbf" + raw]), None),
    "CRLF": (joined(lambda raw: [raw.replace(b"\n", b"\r\n")]), None),
    "CRLF cut in two": (joined(lambda raw: raw.replace(b"\n", b"\r\0\n").split(b"\0")), None),
    "CR alone": (joined(lambda raw: [raw.replace(b"\n", b"\r")]), None),
    "all line ends": (joined(lambda raw: [raw.replace(b"\n\n", b"\r\n\r"), b"\n"]), None),
    "no blank after data": (joined(lambda raw: [raw.replace(b"data: ", b"data:")]), None),
    "data on two lines": (joined(lambda raw: [raw.replace(b"data: {", b"data: {\ndata: ")]), None),
    "last event without blank line": (joined(lambda raw: [raw.rstrip(b"\n")]), None),
    "comments between": (joined(lambda raw: [raw.replace(b"\n\n", b"\n\n: ping\n\n")]), None),
    "comments without end": (endless(lambda _: b": ping\n\n", 0.01), Unavailable),
    "blank lines without end": (endless(lambda _: b"\n\n\n", 0.01), Unavailable),
    "one event without end": (endless(lambda _: b"data: " + b"x" * 500_000), LimitReached),
    "words without end": (endless(lambda asked: _text(asked, "word " * 100_000)), LimitReached),
    "arguments without end": (endless(lambda asked: _arguments(asked, "x" * 500_000)), LimitReached),
    "huge arguments": (_huge_arguments, None),
    "malformed UTF-8": (joined(lambda raw: [raw.replace(b"Hello", b"Hell\xff\xfe")]), None),
    "half JSON": (streamed(lambda events: [*(chunk(e) for e in events[:-3]), chunk(b'data: {"choi\n\n')]), Cut),
    "half JSON first": (streamed(lambda _: [chunk(b'data: {"choi\n\n')]), Unavailable),
    "words instead of JSON": (streamed(lambda _: [chunk(b"data: Internal error\n\n")]), Unavailable),
    "a number instead of an object": (streamed(lambda _: [chunk(b"data: 7\n\n"), _END]), Unavailable),
    "null instead of an object": (streamed(lambda _: [chunk(b"data: null\n\n"), _END]), Unavailable),
    "error first": (_failing(0), Unavailable),
    "error in mid stream": (_failing(-3), Cut),
    "no end": (streamed(lambda events: [*(chunk(e) for e in events[:-3]), _END]), Cut),
    "more after the end": (joined(lambda raw: [raw, raw]), None),
}


def _calls(*pieces: object) -> Behave:
    """Chat: write pieces of calls, one event each, and end."""
    return of(
        lambda: [
            *(_CHAT.chunk({"tool_calls": [piece]}) for piece in pieces),
            _CHAT.chunk({}, finish="tool_calls"),
            _DONE,
        ]
    )


def _piece(index: int | None, call_id: str | None, name: str | None, arguments: object) -> dict[str, object]:
    piece: dict[str, object] = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return piece | ({"index": index} if index is not None else {}) | ({"id": call_id} if call_id is not None else {})


def _hello(*, finish: str | None = "stop") -> list[bytes]:
    return [_CHAT.chunk({"content": "Hello"}), *([_CHAT.chunk({}, finish=finish)] if finish else []), _DONE]


CHAT: Mapping[str, Outcome] = {
    "no [DONE]": (of(lambda: _hello()[:-1]), None),
    "[DONE] without a reason": (of(lambda: _hello(finish=None)), None),
    "[DONE] and nothing else": (of(lambda: [_DONE]), Unavailable),
    "usage missing": (of(_hello), None),
    "usage null": (of(lambda: [_CHAT.event({"choices": [], "usage": None}), *_hello()]), None),
    "usage of odd types": (of(lambda: [*_hello()[:-1], _CHAT.event({"usage": {"prompt_tokens": "9"}}), _DONE]), None),
    "empty choices": (of(lambda: [_CHAT.event({"choices": []}), *_hello()]), None),
    "null choices": (of(lambda: [_CHAT.event({"choices": None}), *_hello()]), None),
    "null deltas": (of(lambda: [_CHAT.event({"choices": [{"delta": None}]}), *_hello()]), None),
    "null members": (of(lambda: [_CHAT.chunk({"content": None, "tool_calls": None, "role": None}), *_hello()]), None),
    "unknown reason": (of(lambda: _hello(finish="aliens")), None),
    "no ids, no model": (of(lambda: [b'data: {"choices":[{"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\n']), None),
    "another id in each event": (
        of(lambda: [e.replace(b"chatcmpl-1", b"other-%d" % n) for n, e in zip(count(), _hello(), strict=False)]),
        None,
    ),
    "a second choice": (of(lambda: [_CHAT.event({"choices": [{"index": 1, "delta": {"content": "NO"}}]}), *_hello()]), None),
    "content in parts": (of(lambda: [_CHAT.chunk({"content": [{"type": "text", "text": "Hello"}]}), *_hello()[1:]]), None),
    "half characters": (of(lambda: [b'data: {"choices":[{"delta":{"content":"Hello \\ud83d"}}]}\n\n', *_hello()[1:]]), None),
    "whole answer instead of a stream": (
        of(lambda: [b"data: " + json.dumps(_CHAT.whole(Say("Hello"))).encode() + b"\n\n", _DONE]),
        None,
    ),
    "duplicate tool ids": (_calls(_piece(0, "c", "shell", "{}"), _piece(1, "c", "shell", "{}")), None),
    "no tool ids": (_calls(_piece(0, None, "shell", "{}"), _piece(1, None, "shell", "{}")), None),
    "call without a name": (_calls(_piece(0, "c", None, "{}")), None),
    "name in capitals with a prefix": (_calls(_piece(0, "c", "functions.Shell", "{}")), None),
    "arguments as an object": (_calls(_piece(0, "c", "shell", {"cmd": "ls"})), None),
    "arguments null": (_calls(_piece(0, "c", "shell", None)), None),
    "arguments broken": (_calls(_piece(0, "c", "shell", "{'cmd': 'ls',}")), None),
    "no indices": (_calls(_piece(None, "a", "shell", '{"cmd"'), _piece(None, None, None, ': "ls"}')), None),
    "the same index for all": (_calls(_piece(0, "a", "shell", "{}"), _piece(0, "b", "shell", "{}")), None),
    "interleaved indices": (
        _calls(
            _piece(1, "b", "shell", '{"cm'), _piece(0, "a", "shell", '{"cmd":'), _piece(1, None, None, 'd": "b"}'),
            _piece(0, None, None, ' "a"}'),
        ),
        None,
    ),
}  # fmt: skip


def _block(index: int, start: Mapping[str, object], *deltas: dict[str, str]) -> list[bytes]:
    return list(_MESSAGES.block(index, start, list(deltas)))


def _messages(*inside: bytes, reason: str | None = "end_turn") -> Behave:
    """Anthropic: write blocks between a good beginning and a good end."""
    begin, end = list(_MESSAGES.stream(Say()))[:2], _MESSAGES.event("message_stop")
    delta = _MESSAGES.event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 3})
    return of(lambda: [*begin, *inside, delta, end])


_HELLO = _block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hello"})
MESSAGES: Mapping[str, Outcome] = {
    "unknown reason": (_messages(*_HELLO, reason="aliens"), None),
    "no reason": (_messages(*_HELLO, reason=None), None),
    "unknown events": (_messages(_MESSAGES.event("novelty", x=1), *_HELLO), None),
    "unknown blocks": (_messages(*_block(0, {"type": "novelty"}, {"type": "novelty_delta"}), *_HELLO), None),
    "no start of a block": (_messages(*_HELLO[1:]), None),
    "text in the start of a block": (_messages(*_block(0, {"type": "text", "text": "Hello"})), None),
    "thinking without a signature": (_messages(*_block(0, {"type": "thinking", "thinking": "hm"}), *_HELLO), None),
    "hidden thinking": (_messages(*_block(0, {"type": "redacted_thinking", "data": "eA=="}), *_HELLO), None),
    "call without a name": (_messages(*_block(0, {"type": "tool_use", "id": "a", "input": {}})), None),
    "duplicate tool ids": (
        _messages(*_block(0, {"type": "tool_use", "id": "a", "name": "shell"}), *_block(1, {"type": "tool_use", "id": "a", "name": "shell"})),
        None,
    ),
    "members of odd types": (_messages(_MESSAGES.event("content_block_delta", index="0", delta=[]), *_HELLO), None),
    "usage of odd types": (_messages(_MESSAGES.event("message_delta", delta={}, usage=[1]), *_HELLO), None),
    "no message in the start": (_messages(_MESSAGES.event("message_start"), *_HELLO), None),
}  # fmt: skip
