"""What of a long conversation stays as it is, and what is summarised. Pure: messages in, a plan out.

Invariants: a call and its results are never parted; what the user asked for last stays word for word; the plan drops
nothing that it does not name.
"""

from collections.abc import Sequence
from dataclasses import replace

from hermes.domain.message import Message, Part, ResultPart
from hermes.domain.records import dataclass

LONG_RESULT = 2_000
"""Characters of a tool result above which an old one becomes a pointer."""
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Cut:
    """Three parts of one conversation, in its order. `request` is the user's last word when it is in the middle."""

    head: tuple[Message, ...]
    middle: tuple[Message, ...]
    tail: tuple[Message, ...]
    request: Message | None = None


def cut(messages: Sequence[Message], sizes: Sequence[int], *, first: int, last: int, tail_size: int) -> Cut:
    """Keep up to `first` messages of the beginning, and of the end `tail_size` bytes, but at least `last` messages
    unless these alone are more than four times that.
    """
    begin = _end_of_head(messages, first)
    start, kept = len(messages), 0
    while start > begin:
        kept += sizes[start - 1]
        is_enough = len(messages) - start >= last
        if kept > tail_size * (1 if is_enough else 4):
            break
        start -= 1
    start = _boundary(messages, start, begin)
    middle = tuple(messages[begin:start])
    asked = next((m for m in reversed(messages) if m.role == "user"), None)
    return Cut(tuple(messages[:begin]), middle, tuple(messages[start:]), asked if asked in middle else None)


def _end_of_head(messages: Sequence[Message], first: int) -> int:
    """The head ends before a message of the assistant that orders something, so that nothing is parted."""
    end = 0
    while end < min(first, len(messages)) and not messages[end].calls and messages[end].role != "tool":
        end += 1
    return end


def _boundary(messages: Sequence[Message], start: int, begin: int) -> int:
    """Go forward from a result to where something new begins; back, when there is nothing after it."""
    forward = start
    while forward < len(messages) and messages[forward].role == "tool":
        forward += 1
    if forward < len(messages):
        return forward
    while start > begin and messages[start - 1].role == "tool":
        start -= 1
    return max(start - 1, begin)


def with_pointers(messages: Sequence[Message], sizes: Sequence[int], *, keep: int) -> tuple[Message, ...]:
    """Replace long tool results by pointers to themselves, but for those in the last `keep` bytes."""
    recent, kept = len(messages), 0
    while recent > 0 and kept + sizes[recent - 1] <= keep:
        recent -= 1
        kept += sizes[recent]
    return (*map(_pointed, messages[:recent]), *messages[recent:])


def _pointed(message: Message) -> Message:
    if not any(len(result.text) > LONG_RESULT for result in message.results):
        return message
    return replace(message, parts=tuple(_pointer(message, part) for part in message.parts))


def _pointer(message: Message, part: Part) -> Part:
    if not isinstance(part, ResultPart) or len(part.text) <= LONG_RESULT:
        return part
    beginning = part.text[:_SHOWN]
    left = len(part.text) - _SHOWN
    return replace(
        part, text=f'{beginning}… [{left:,} more characters; all of it: recall(id="{original(message)}")]', images=()
    )


def original(message: Message) -> str:
    """Return the id under which a message was said first: a copy's id says it."""
    return message.id.partition("~")[0]
