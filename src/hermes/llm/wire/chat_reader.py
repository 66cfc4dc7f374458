"""Chat completions: how an answer is read, streamed or whole.

Invariant: what a server sends beyond the format is ignored, what it leaves out has a default, and what cannot be
understood is an error that says so; none of it raises anything else.
"""

import json
from typing import Any

import msgspec

from hermes.domain.clock import Clock
from hermes.domain.errors import Unavailable
from hermes.domain.message import Message
from hermes.domain.model import Finish, Usage
from hermes.llm.tolerant import whole_characters
from hermes.llm.wire.answer import Answer, Call, ended
from hermes.llm.wire.failing import Complaint, complaint_in
from hermes.llm.wire.pieces import encoded

_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
}
_MOST_DETAILS = 10_000


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _Call(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    tool_calls: list[_Call] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None
    index: int | None = None


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None
    model: str | None = None


_DECODE = msgspec.json.Decoder(_Chunk).decode


class ChatReader:
    """Reads one answer. `complaint` is set when the server reports an error in the middle of it."""

    def __init__(self, answer: Answer, returns: str) -> None:
        self.answer = answer
        self.model = ""
        self.usage = Usage()
        self.complaint: Complaint | None = None
        self.is_done = False
        self._returns = returns
        self._finish = ""
        self._refusal = False
        self._by_index: dict[int, Call] = {}
        self._details: list[dict[str, Any]] = []
        self._thoughts: list[str] = []

    @property
    def has_ended(self) -> bool:
        """Whether the server said that this is all."""
        return self.is_done or bool(self._finish)

    def take(self, _name: bytes, data: bytes) -> None:
        """Take one event of the stream."""
        if data == b"[DONE]":
            self.is_done = True
            return
        try:
            chunk = _DECODE(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            chunk = _leniently(data)
        choices = chunk.choices
        if choices:
            choice = choices[0]
            delta = choice.delta
            if delta is not None and not choice.index:
                if delta.content:
                    self.answer.say(delta.content)
                if delta.tool_calls is not None or delta.content is None or delta.refusal:
                    self._rarer(delta)
            elif choice.message is not None and not choice.index:
                self._message(choice.message)
            if choice.finish_reason:
                self._finish = choice.finish_reason
        if chunk.usage is not None:
            self.usage = _counted(chunk.usage)
        if chunk.model is not None and not self.model:
            self.model = chunk.model
        if chunk.error:
            self.complaint = complaint_in({"error": chunk.error})

    def whole(self, body: bytes) -> None:
        """Take an answer that was not streamed."""
        try:
            chunk = _DECODE(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            chunk = _leniently(body)
        if chunk.choices and chunk.choices[0].message is not None:
            self._message(chunk.choices[0].message)
            self._finish = chunk.choices[0].finish_reason or "stop"
        self.usage = _counted(chunk.usage) if chunk.usage is not None else self.usage
        self.model = chunk.model or ""
        self.is_done = True
        if chunk.error:
            self.complaint = complaint_in({"error": chunk.error})

    def _message(self, message: _Delta) -> None:
        """Take all of an answer at once."""
        self._rarer(message)
        if message.content:
            self.answer.say(message.content)

    def _rarer(self, delta: _Delta) -> None:
        """Take what a token of plain text does not have."""
        if thought := delta.reasoning_content or delta.reasoning:
            if delta.reasoning_content and self._returns == "reasoning_content":
                self._thoughts.append(thought)
            self.answer.think(thought)
        if delta.reasoning_details and self._returns == "reasoning_details":
            self._keep(delta.reasoning_details)
        if delta.refusal:
            self._refusal = True
            self.answer.say(delta.refusal)
        for call in delta.tool_calls or ():
            self._order(call)

    def _order(self, piece: _Call) -> None:
        """Calls come in pieces that an index holds together; some servers give none, or the same to all."""
        function = piece.function or _Function()
        known = self.answer.calls
        index = piece.index if piece.index is not None else (len(known) if piece.id or not known else len(known) - 1)
        call = self._by_index.get(index)
        is_another = call is not None and piece.id and call.id and piece.id != call.id and function.name
        if call is None or is_another:
            call = self.answer.order(piece.id or "", function.name or "")
            self._by_index[index] = call
        elif function.name:
            self.answer.name(call, function.name)
        if piece.id and not call.id:
            call.id = piece.id
        if function.arguments:
            self.answer.add(call, function.arguments)

    def _keep(self, details: list[dict[str, Any]]) -> None:
        """Join the pieces of one thought, so that it goes back as a server that does not stream would give it."""
        for piece in details[:_MOST_DETAILS]:
            last = self._details[-1] if self._details else None
            if last is not None and last.get("type") == piece.get("type") and last.get("index") == piece.get("index"):
                for key, value in piece.items():
                    is_text = key in {"text", "summary", "data"} and isinstance(value, str)
                    if is_text and isinstance(last.get(key), str):
                        last[key] += value
                    elif value is not None:
                        last[key] = value
            elif len(self._details) < _MOST_DETAILS:
                self._details.append(dict(piece))

    def partial(self, clock: Clock) -> Message | None:
        """Return what had arrived when the answer broke off."""
        return self.answer.partial(clock)

    def result(self, clock: Clock, *, reads_calls: bool) -> tuple[Message, Finish]:
        """Return the answer and why it ended."""
        opaque = {}
        if self._details:
            opaque["chat"] = encoded({"reasoning_details": self._details}).decode()
        elif self._thoughts:
            opaque["chat"] = encoded({"reasoning_content": "".join(self._thoughts)}).decode()
        is_cut = _FINISHES.get(self._finish) == "length"
        message = self.answer.message(clock, opaque, is_cut=is_cut, reads_calls=reads_calls)
        if self._refusal and not message.calls:
            return message, "refusal"
        return message, ended(self._finish or "stop", _FINISHES, has_calls=bool(message.calls))


def _counted(usage: _Usage) -> Usage:
    read = usage.prompt_tokens_details or _Details()
    wrote = usage.completion_tokens_details or _Details()
    return Usage(
        input=usage.prompt_tokens or 0,
        output=usage.completion_tokens or 0,
        cache_read=read.cached_tokens or usage.prompt_cache_hit_tokens or 0,
        cache_write=read.cache_write_tokens or 0,
        reasoning=wrote.reasoning_tokens or 0,
    )


def _leniently(data: bytes) -> _Chunk:
    """Read what is JSON but not quite of this format, or not quite UTF-8."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        start = whole_characters(data[:80].decode("utf-8", "replace"))
        raise Unavailable(f"the answer is not JSON: it begins with {start!r}") from None
    if not isinstance(value, dict):
        raise Unavailable(f"the answer is not a JSON object: {str(value)[:80]!r}")
    choices = [_choice(one) for one in _list(value.get("choices")) if isinstance(one, dict)]
    usage = value.get("usage")
    counted = _usage(usage) if isinstance(usage, dict) else None
    return _Chunk(choices, counted, value.get("error"), _text(value.get("model")))


def _choice(value: dict[str, Any]) -> _Choice:
    delta, message = value.get("delta"), value.get("message")
    return _Choice(
        _delta(delta) if isinstance(delta, dict) else None,
        _delta(message) if isinstance(message, dict) else None,
        _text(value.get("finish_reason")),
        value["index"] if isinstance(value.get("index"), int) else None,
    )


def _delta(value: dict[str, Any]) -> _Delta:
    content = value.get("content")
    thoughts = []
    if isinstance(content, list):
        # Some send their thoughts and words as parts.
        parts = [part for part in content if isinstance(part, dict)]
        thoughts = [str(inner.get("text", "")) for part in parts for inner in _list(part.get("thinking"))]
        content = "".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")
    return _Delta(
        content=_text(content) or None,
        tool_calls=[_piece(one) for one in _list(value.get("tool_calls")) if isinstance(one, dict)] or None,
        reasoning=_text(value.get("reasoning")),
        reasoning_content=_text(value.get("reasoning_content")) or "".join(thoughts) or None,
        reasoning_details=[one for one in _list(value.get("reasoning_details")) if isinstance(one, dict)] or None,
        refusal=_text(value.get("refusal")),
    )


def _piece(value: dict[str, Any]) -> _Call:
    function = value.get("function")
    inner = function if isinstance(function, dict) else {}
    arguments = inner.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    index = value.get("index")
    name = _text(inner.get("name"))
    return _Call(index if isinstance(index, int) else None, _text(value.get("id")), _Function(name, arguments))


def _usage(value: dict[str, Any]) -> _Usage:
    try:
        return msgspec.convert(value, _Usage, strict=False)
    except msgspec.ValidationError:
        return _Usage()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
