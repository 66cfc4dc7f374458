"""What a small model is not asked, as it would answer badly: code says who it is, shows what a tool gave, and refuses.

Invariant: what is said here is true whatever the model is; a tool that worked is not run again for the same question.
"""

import re
from collections.abc import Iterator, Sequence

import msgspec

from hermes.domain.clock import Clock
from hermes.domain.errors import Unsupported
from hermes.domain.message import Message, MessageId, TextPart
from hermes.domain.model import Delta, Reply, Request, Show, Usage
from hermes.domain.tool import ToolSpec
from hermes.llm.local import prompt
from hermes.llm.local.prompt import Said
from hermes.llm.local.provider import Local

CONNECT = (
    "connect a provider for real work: set OPENROUTER_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY, "
    "or see `hermes model list`"
)
_MOST_TRIES = 3
_WORDS = re.compile(r"[\w']+")
_GREETINGS = frozenset({"hi", "hello", "hey", "hallo", "moin", "servus", "greetings", "good morning", "good evening"})
_ABOUT = frozenset(
    {
        "who are you",
        "what are you",
        "what is your name",
        "what's your name",
        "what can you do",
        "help",
        "what model are you",
        "which model are you",
        "who made you",
        "who created you",
        "wer bist du",
        "was kannst du",
    }
)
_THANKS = frozenset({"thanks", "thank you", "danke", "many thanks"})
_ADDRESSED = re.compile(r"\b(?:there|hermes|please|bitte)\b")
_LINE_NUMBER = re.compile(r"^\d+\|", re.MULTILINE)
_OUTPUTS = ("output", "content")


class Mannered:
    """A Provider around the embedded model, as people meet it."""

    def __init__(self, inside: Local, clock: Clock) -> None:
        self._inside = inside
        self._clock = clock

    @property
    def name(self) -> str:
        """Vendor and model."""
        return self._inside.name

    @property
    def wire(self) -> str:
        """The name of the wire format."""
        return self._inside.wire

    @property
    def window(self) -> int:
        """How many tokens the model can read."""
        return self._inside.window

    def prefix(self, system: str, tools: Sequence[ToolSpec]) -> bytes:
        """Encode what never changes within a context."""
        return self._inside.prefix(system, tools)

    def encode(self, message: Message) -> bytes:
        """Encode one message."""
        return self._inside.encode(message)

    async def call(self, request: Request, show: Show) -> Reply:
        """Answer from code where that is better, else ask the model. Raises Unsupported for pictures."""
        given = [prompt.said(one) for one in request.messages]
        asked = max((number for number, one in enumerate(given) if one.role == "user"), default=None)
        if asked is None or request.schema is not None or not prompt.fixed(request.prefix).tools:
            return await self._inside.call(request, show)
        if given[asked].pictures:
            raise Unsupported(f"the small local model sees no pictures; {CONNECT}")
        turn = given[asked + 1 :]
        words = small_talk(given[asked].text, self.name) if not turn else shown(turn)
        if words is not None:
            return self._reply(words, show)
        reply = await self._inside.call(request, show)
        return self._reply(_again(turn), show) if _is_repetition(reply, turn) else reply

    def _reply(self, words: str, show: Show) -> Reply:
        show(Delta("text", words))
        message = Message(MessageId(self._clock.new_id()), "assistant", (TextPart(words),), self._clock.now())
        return Reply(message, self.encode(message), "stop", Usage(), self.name.partition("/")[2])


def small_talk(text: str, model: str) -> str | None:
    """Return what code answers to a greeting or a question about itself; None for anything else."""
    plain = " ".join(_WORDS.findall(_ADDRESSED.sub(" ", text.lower())))
    if plain in _GREETINGS:
        return "Hello. I am Hermes, with a small local model. Ask me for files here, or for a command to run."
    if plain in _ABOUT:
        return (
            f"I am Hermes. A small model answers on this machine, {model.partition('/')[2]}, without a key and without "
            "a network. It can list and read files here, run a command, and say a few words; it is often wrong beyond "
            f"that. To do more, {CONNECT}."
        )
    return "You are welcome." if plain in _THANKS else None


def shown(turn: Sequence[Said]) -> str | None:
    """Return what a tool gave, for a person, when there is nothing more to be tried; None when the model goes on."""
    last = turn[-1]
    if last.role != "tool":
        return None
    tries = sum(one.role == "tool" for one in turn)
    texts, has_failed = [], False
    for name, text, is_error in last.results:
        output, failed = _output(text)
        has_failed = has_failed or failed or is_error
        texts.append(_block(name, output))
    if has_failed and tries < _MOST_TRIES:
        return None
    said = "\n\n".join(texts)
    return f"That did not work, and I do not know how it would:\n\n{said}" if has_failed else said


def _output(text: str) -> tuple[str, bool]:
    """Return what a result says, and whether it tells of a failure."""
    try:
        fields = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError):
        return text, False
    has_failed = bool(fields.get("error")) or fields.get("exit_code") not in {None, 0}
    output = next((str(fields[name]) for name in _OUTPUTS if name in fields), None)
    if output is None:
        return str(fields.get("error") or text), has_failed
    if "content" in fields:
        output = _LINE_NUMBER.sub("", output)
    if fields.get("error"):
        output = f"{output}\n{fields['error']}".strip()
    return output, has_failed


def _block(name: str, output: str) -> str:
    output = output.rstrip("\n")
    if not output.strip():
        return f"`{name}` is done; it printed nothing."
    fence = "```"
    while fence in output:
        fence += "`"
    return f"{fence}\n{output}\n{fence}"


def _is_repetition(reply: Reply, turn: Sequence[Said]) -> bool:
    before = {call for one in turn for call in one.calls}
    return any((call.name, call.arguments) in before for call in reply.message.calls)


def _again(turn: Sequence[Said]) -> str:
    """Return what is said instead of doing the same again."""
    outputs = "\n\n".join(_block(name, _output(text)[0]) for name, text, _ in _last_results(turn))
    return f"That did not work, and I would only try the same again:\n\n{outputs}"


def _last_results(turn: Sequence[Said]) -> Iterator[tuple[str, str, bool]]:
    last = next((one for one in reversed(turn) if one.role == "tool"), None)
    yield from last.results if last is not None else ()
