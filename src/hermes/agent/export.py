"""A session on paper: as lines of JSON for programs, as Markdown for people, and as the log beside the database.

Invariant: what is written is derived; the database stays the truth, and a file that is lost can be written again.
"""

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from hermes.agent.transcript import clipped
from hermes.domain.message import CallPart, ImagePart, Message, MessageId, ReasoningPart, ResultPart, TextPart
from hermes.domain.records import dataclass
from hermes.domain.session import Session

_encode = msgspec.json.Encoder().encode
_END = b"\n]}\n"
_PRIVATE = 0o600
_LONGEST_RESULT = 4_000


def plain(message: Message) -> dict[str, object]:
    """Return a message in the form of chat completions, which other programs read."""
    said: dict[str, object] = {"id": message.id, "role": message.role, "timestamp": message.at.isoformat()}
    if message.status != "complete":
        said["status"] = message.status
    for result in message.results:
        return {**said, "tool_call_id": result.call, "name": result.name, "content": result.text}
    pictures = [part for part in message.parts if isinstance(part, ImagePart)]
    said["content"] = _content(message, pictures) if pictures else message.text or None
    if message.reasoning:
        said["reasoning"] = message.reasoning
    if message.calls:
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    return said


def _content(message: Message, pictures: Sequence[ImagePart]) -> list[dict[str, object]]:
    parts: list[dict[str, object]] = [{"type": "text", "text": message.text}] if message.text else []
    for picture in pictures:
        url = picture.url or f"data:{picture.media_type};base64,{picture.data}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


def as_jsonl(session: Session, said: Sequence[Message], gone: Collection[MessageId] = ()) -> Iterator[str]:
    """Return one line for the session, then one for each message; `gone` were gone back from."""
    yield _encode(_head(session)).decode()
    for message in said:
        mark = {"undone": True} if message.id in gone else {}
        yield _encode({**plain(message), **mark}).decode()


def as_markdown(session: Session, said: Sequence[Message], gone: Collection[MessageId] = ()) -> Iterator[str]:
    """Return the session for reading; `gone` were gone back from."""
    yield f"# {session.title or session.id}\n"
    yield f"Session `{session.id}`, begun {session.created_at:%Y-%m-%d %H:%M} UTC, {len(said)} messages.\n"
    for message in said:
        mark = "" if message.status == "complete" else f" ({message.status})"
        mark += " (undone)" if message.id in gone else ""
        if message.role != "tool":
            yield f"## {message.role.capitalize()}{mark}\n"
        for part in message.parts:
            yield from _paragraph(part)


def _paragraph(part: object) -> Iterator[str]:
    match part:
        case TextPart(text) if text.strip():
            yield f"{text}\n"
        case ReasoningPart(text) if text.strip():
            yield "\n".join(f"> {line}" for line in text.splitlines()) + "\n"
        case CallPart(_, name, arguments):
            yield f"**{name}**\n\n{_fenced(arguments, 'json')}\n"
        case ResultPart():
            word = "failed" if part.is_error else "answered"
            yield f"**{part.name}** {word}\n\n{_fenced(clipped(part.text, _LONGEST_RESULT), '')}\n"
        case ImagePart():
            yield f"*[picture, {part.media_type}]*\n"
        case _:
            return


def _fenced(text: str, language: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _head(session: Session) -> dict[str, object]:
    return {
        "session_id": session.id,
        "session_key": f"agent:main:{session.source}:{session.owner}",
        "platform": session.source,
        "title": session.title,
        "parent_session_id": session.parent,
        "workspace": session.workspace,
        "session_start": session.created_at.isoformat(),
    }


@dataclass(frozen=True, slots=True)
class JsonLog:
    """Writes what is said in a session to `session_<id>.json` of a folder. Blocks for a moment.

    A file grows at its end; one that is not as it was left is begun anew with what is in hand.
    """

    folder: Path

    def path(self, session: Session) -> Path:
        """Where a session is logged."""
        return self.folder / f"session_{session.id}.json"

    def add(self, session: Session, said: Sequence[Message]) -> None:
        """Add messages. Raises OSError."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(self.path(session), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        with os.fdopen(handle, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            is_whole = size > len(_END) and os.pread(handle, len(_END), size - len(_END)) == _END
            if is_whole:
                file.seek(size - len(_END))
            else:
                file.truncate(0)
                file.seek(0)
                file.write(_encode(_head(session))[:-1] + b',"messages":[')
            separator = b",\n" if is_whole else b"\n"
            for message in said:
                file.write(separator + _encode(plain(message)))
                separator = b",\n"
            file.write(_END)
