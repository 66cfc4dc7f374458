"""A conversation as text for reading: by a model that summarises it, and by a person who exports it."""

from collections.abc import Iterator, Sequence

from hermes.domain.message import CallPart, ImagePart, Message, ReasoningPart, ResultPart, TextPart

_NAMES = {"user": "User", "assistant": "Assistant", "tool": "Tool"}


def lines(messages: Sequence[Message], *, longest: int) -> Iterator[str]:
    """Return one paragraph a message; what is longer than `longest` characters is cut in its middle."""
    for message in messages:
        said = "\n".join(_part(part, longest) for part in message.parts if not isinstance(part, ReasoningPart))
        mark = "" if message.status == "complete" else f" ({message.status})"
        yield f"[{message.id}] {_NAMES[message.role]}{mark}: {said}"


def _part(part: object, longest: int) -> str:
    match part:
        case TextPart(text):
            return clipped(text, longest)
        case CallPart(_, name, arguments):
            return f"→ {name} {clipped(arguments, longest)}"
        case ResultPart():
            return f"← {part.name}{' failed' if part.is_error else ''}: {clipped(part.text, longest)}"
        case ImagePart():
            return f"[picture, {part.media_type}]"
        case _:
            return ""


def clipped(text: str, longest: int) -> str:
    """Cut a long text in its middle, and say how much is missing."""
    if len(text) <= longest:
        return text
    head = longest * 2 // 3
    return f"{text[:head]} … [{len(text) - longest:,} characters] … {text[head - longest :]}"
