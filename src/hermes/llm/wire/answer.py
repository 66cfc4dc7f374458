"""What both wires put an answer together with while it streams.

Invariant: what is held of an answer is bounded, and every piece was shown in the order it came.
"""

from collections.abc import Collection, Mapping

from hermes.domain.clock import Clock
from hermes.domain.errors import LimitReached
from hermes.domain.message import Message, MessageId, Part, ReasoningPart, TextPart
from hermes.domain.model import Delta, Finish, Show
from hermes.domain.records import dataclass
from hermes.llm.repair import Draft, as_cut, calls_in, mend
from hermes.llm.tolerant import whole_characters
from hermes.llm.wire.thinking import Curtain, Splitter, unopened

LONGEST = 4 * 1024 * 1024
"""How many characters an answer may have, its arguments and thoughts included."""


@dataclass(slots=True)
class Call:
    """A call that is still coming in."""

    id: str
    name: str
    arguments: list[str]
    is_shown: bool = False


class Answer:
    """One answer. `reads_tags` is for models that write thoughts and calls into their text."""

    def __init__(self, show: Show, names: Collection[str], *, reads_tags: bool) -> None:
        self._show = show
        self._names = names
        self._reads_tags = reads_tags
        self._words: list[str] = []
        self._thoughts: list[str] = []
        self._size = 0
        self.calls: list[Call] = []
        self._splitter: Splitter | None = Splitter(self._give) if reads_tags else None
        self._curtain: Curtain | None = Curtain(self._word) if reads_tags and names else None

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all was said."""
        return not (self._words or self._thoughts or self.calls)

    def say(self, piece: str) -> None:
        """The model says something."""
        if self._splitter is None:
            self._grow(piece)
            self._words.append(piece)
            if self._curtain is None:
                self._show(Delta("text", piece))
            else:
                self._curtain.take(piece)
        else:
            self._splitter.take(piece)
            if self._splitter.is_through:
                self._splitter = None

    def think(self, piece: str) -> None:
        """The model thinks aloud."""
        self._give("reasoning", piece)

    def _give(self, kind: str, piece: str) -> None:
        self._grow(piece)
        if kind == "text":
            self._words.append(piece)
            if self._curtain is None:
                self._word(piece)
            else:
                self._curtain.take(piece)
        else:
            self._thoughts.append(piece)
            self._show(Delta("reasoning", piece))

    def _word(self, piece: str) -> None:
        self._show(Delta("text", piece))

    def order(self, call_id: str, name: str) -> Call:
        """The model begins to order a tool."""
        if len(self.calls) >= 1024:
            raise LimitReached("the answer orders more than 1,024 tools at once; it was not read further")
        call = Call(call_id, "", [])
        self.calls.append(call)
        self.name(call, name)
        return call

    def name(self, call: Call, name: str) -> None:
        """The name of a tool comes in, whole, in pieces or again."""
        if not name or call.name == name:
            return
        if not call.arguments:
            self._grow(name)
            call.name += name
        if not call.is_shown:
            call.is_shown = True
            self._show(Delta("call", name))

    def add(self, call: Call, arguments: str) -> None:
        """More of a call's arguments."""
        self._grow(arguments)
        call.arguments.append(arguments)

    def _grow(self, piece: str) -> None:
        self._size += len(piece)
        if self._size > LONGEST:
            raise LimitReached(f"the answer is longer than {LONGEST:,} characters; it was not read further")

    def finish(self) -> None:
        """No more pieces will come."""
        if self._splitter is not None:
            self._splitter.finish()
            self._splitter = None

    def _reveal(self, *, is_call: bool) -> None:
        if self._curtain is not None:
            self._curtain.finish(is_call=is_call)

    def partial(self, clock: Clock) -> Message | None:
        """Return what was said before the answer broke off; calls that may lack their end are no part of it."""
        self.finish()
        self._reveal(is_call=False)
        parts = _said(self._thoughts, self._words)
        if not parts:
            return None
        return Message(MessageId(clock.new_id()), "assistant", parts, clock.now(), status="interrupted")

    def message(self, clock: Clock, opaque: Mapping[str, str], *, is_cut: bool, reads_calls: bool) -> Message:
        """Return the whole answer. `is_cut` says that the vendor ended it at a limit."""
        self.finish()
        drafts = [Draft(c.id, c.name, whole_characters("".join(c.arguments))) for c in self.calls]
        if is_cut and drafts:
            drafts[-1] = as_cut(drafts[-1])
        text = "".join(self._words)
        if self._reads_tags:
            thought, text = unopened(text)
            if thought:
                self._thoughts.append(thought)
            if reads_calls and not drafts:
                text, drafts = calls_in(text, self._names)
            self._reveal(is_call=bool(drafts) and not self.calls)
            for draft in drafts[len(self.calls) :]:
                self._show(Delta("call", draft.name))
        parts = _said(self._thoughts, [text])
        return Message(
            MessageId(clock.new_id()),
            "assistant",
            (*parts, *mend(drafts, self._names, clock.new_id)),
            clock.now(),
            opaque=opaque,
        )


def _said(thoughts: list[str], words: list[str]) -> tuple[Part, ...]:
    parts: list[Part] = []
    if thought := whole_characters("".join(thoughts)):
        parts.append(ReasoningPart(thought))
    if text := whole_characters("".join(words)):
        parts.append(TextPart(text))
    return tuple(parts)


def ended(word: str, finishes: Mapping[str, Finish], *, has_calls: bool) -> Finish:
    """Translate a vendor's reason for the end; a reason nobody knows is `other`."""
    finish = finishes.get(word, "other")
    return (
        "tool_calls"
        if has_calls and finish in {"stop", "tool_calls", "other"}
        else "stop"
        if finish == "tool_calls"
        else finish
    )
