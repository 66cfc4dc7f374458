"""How a conversation is written for the embedded model: the format it was trained on, short enough to be read soon.

Invariant: the same prefix gives the same text, and what people and tools say can end no part of it.
"""

from collections.abc import Iterator, Sequence

import msgspec

from hermes.domain.message import ImagePart, Message
from hermes.domain.model import ContextOverflow
from hermes.domain.tool import ToolSpec
from hermes.llm.local.steps import FINAL, TOOL, Known, examples, known
from hermes.llm.wire.pieces import encoded

NAME = "local"
_BYTES_A_TOKEN = 3.0
"""On the safe side for code and English."""
_LONGEST_RESULT = 1500
_FORMAT = "Answer each time with ONE JSON object, one of:"
_WHEN = (
    "Use a tool only when the answer is on this computer: files, folders, programs, disk, date, git. "
    "General questions, writing, explaining and chatting: answer with final.\nExamples:"
)


class Fixed(msgspec.Struct, frozen=True, array_like=True):
    """What a prefix holds."""

    system: str
    tools: tuple[tuple[str, str, tuple[str, ...]], ...]

    @property
    def known(self) -> tuple[Known, ...]:
        """The tools."""
        return tuple(Known(*one) for one in self.tools)


class Said(msgspec.Struct, frozen=True, array_like=True):
    """What one message holds. A call is a name and arguments; a result is a name, a text and whether it failed."""

    role: str
    text: str
    calls: tuple[tuple[str, str], ...] = ()
    results: tuple[tuple[str, str, bool], ...] = ()
    pictures: int = 0


def prefix(system: str, tools: Sequence[ToolSpec]) -> bytes:
    """Encode what never changes within a context."""
    shown = [known(one.name, one.description, one.parameters) for one in tools]
    return encoded([system, [[one.name, one.summary, one.arguments] for one in shown]])


def encode(message: Message) -> bytes:
    """Encode one message."""
    calls = [[call.name, call.arguments] for call in message.calls]
    results = [[part.name, part.text, part.is_error] for part in message.results]
    pictures = sum(isinstance(part, ImagePart) for part in message.parts)
    return encoded([message.role, message.text, calls, results, pictures])


def fixed(data: bytes) -> Fixed:
    """Read a prefix."""
    return msgspec.json.decode(data, type=Fixed)


def said(data: bytes) -> Said:
    """Read a message."""
    return msgspec.json.decode(data, type=Said)


def beginning(given: Fixed) -> str:
    """Write what is read first, and stays the same."""
    words = [given.system] if given.system else []
    if given.tools:
        lines = [_tool(one) for one in given.known]
        lines.append('{"final":"..."} answers the user in words')
        words += [_FORMAT, *lines, _WHEN, *examples([one.name for one in given.known])]
    return _part("system", "\n".join(words)) if words else ""


def _tool(one: Known) -> str:
    fields = "".join(f',"{name}":"..."' for name in one.arguments)
    return f'{{"{TOOL}":"{one.name}"{fields}}} {one.summary}'


def rest(messages: Sequence[Said], *, has_tools: bool, tokens: int) -> str:
    """Write what was said, up to `tokens` of it: of what is too much the oldest is left out, and nothing of the last
    question of the user and what came after. Raises ContextOverflow when that alone is too much.
    """
    last = max((number for number, one in enumerate(messages) if one.role == "user"), default=0)
    needed = [_message(one, has_tools=has_tools) for one in messages[last:]]
    room = tokens * _BYTES_A_TOKEN - sum(len(one.encode()) for one in needed)
    if room < 0:
        raise ContextOverflow(
            f"the question is too long for the small local model, which reads about {tokens:,} tokens; "
            "ask about less, or connect a provider (`hermes model list`)"
        )
    for one in reversed(messages[:last]):
        text = _message(one, has_tools=has_tools)
        room -= len(text.encode())
        if room < 0:
            break
        needed.insert(0, text)
    return "".join(needed) + "<|im_start|>assistant\n"


def _message(one: Said, *, has_tools: bool) -> str:
    match one.role:
        case "assistant":
            return _part("assistant", "\n".join(_steps(one, has_tools=has_tools)))
        case "tool":
            lines = [
                f"{name} {'failed' if is_error else 'gave'}:\n{_short(text)}" for name, text, is_error in one.results
            ]
            return _part("user", "\n".join(lines))
        case _:
            unseen = f"\n({one.pictures} pictures, which you cannot see)" if one.pictures else ""
            return _part("user", one.text + unseen)


def _steps(one: Said, *, has_tools: bool) -> Iterator[str]:
    if not has_tools:
        yield one.text
        return
    if one.text:
        yield encoded({FINAL: one.text}).decode()
    for name, arguments in one.calls:
        try:
            given = msgspec.json.decode(arguments, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeError):
            given = {}
        yield encoded({TOOL: name, **given}).decode()


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_RESULT else f"{text[:_LONGEST_RESULT]}\n… {len(text):,} characters in all"


def _part(role: str, text: str) -> str:
    # A mark of the format inside a text would end it.
    return f"<|im_start|>{role}\n{text.replace('<|', '< |')}<|im_end|>\n"
