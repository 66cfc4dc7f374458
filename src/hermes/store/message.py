"""Messages: appended, never changed; each knows the one before it, so that a session is a tree and a context a path.

Invariant: appending again is nothing; what is appended becomes the head of its context in the same transaction.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from hermes.domain.clock import from_micros, to_micros
from hermes.domain.errors import NotFound
from hermes.domain.message import (
    CallId,
    CallPart,
    ImagePart,
    Message,
    MessageId,
    Part,
    ReasoningPart,
    ResultPart,
    TextPart,
)
from hermes.domain.principal import Principal
from hermes.domain.protocols import Row, Tx
from hermes.domain.session import RunId, SessionId
from hermes.store.scope import within

_COLUMNS = "id, role, content, parts, timestamp, status, parent, opaque"
_INSERT = (
    "INSERT INTO messages (tenant, id, conversation_id, parent, copy_of, run, role, status, content, parts, opaque, "
    "timestamp) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, id) DO NOTHING"
)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.decode


def append(
    tx: Tx,
    principal: Principal,
    session: SessionId,
    context: int,
    messages: Sequence[Message],
    *,
    run: RunId | None = None,
    copy_of: Sequence[MessageId] = (),
) -> None:
    """Store messages in their order and make the last one the head of the context.

    `copy_of` names the originals of messages that a new context begins with; these are not counted again.
    """
    where, parameters = within(principal)
    tx.order()
    row = tx.one(f"SELECT tenant FROM sessions WHERE {where} AND id = ?", (*parameters, session))
    if row is None:
        raise NotFound(f"there is no session {session!r}; `hermes sessions list` shows those there are")
    tenant, count = row[0], 0
    for number, message in enumerate(messages):
        original = copy_of[number] if copy_of else None
        count += tx.execute(_INSERT, (tenant, message.id, session, message.parent, original, run, *_values(message)))
    if not count:
        return
    tx.execute(
        "UPDATE contexts SET head = ? WHERE tenant = ? AND session = ? AND number = ?",
        (messages[-1].id, tenant, session, context),
    )
    tx.execute(
        "UPDATE sessions SET message_count = message_count + ?, updated_at = ? WHERE tenant = ? AND id = ?",
        (0 if copy_of else count, tx.now(), tenant, session),
    )


def path(tx: Tx, principal: Principal, head: MessageId | None) -> list[Message]:
    """Return the messages from the first to `head`."""
    if head is None:
        return []
    where, parameters = within(principal)
    rows = tx.all(
        f"WITH RECURSIVE path(id, parent, tenant, depth) AS ("
        f"SELECT id, parent, tenant, 0 FROM messages WHERE {where} AND id = ? UNION ALL "
        "SELECT m.id, m.parent, m.tenant, path.depth + 1 FROM path JOIN messages m "
        "ON m.tenant = path.tenant AND m.id = path.parent) "
        f"SELECT {', '.join('m.' + name for name in _COLUMNS.split(', '))} FROM path "
        "JOIN messages m ON m.tenant = path.tenant AND m.id = path.id ORDER BY path.depth DESC",
        (*parameters, head),
    )
    return [_parse(row) for row in rows]


def get(tx: Tx, principal: Principal, message: MessageId) -> Message | None:
    """Return one message."""
    where, parameters = within(principal)
    row = tx.one(f"SELECT {_COLUMNS} FROM messages WHERE {where} AND id = ?", (*parameters, message))
    return None if row is None else _parse(row)


def is_opening(tx: Tx, principal: Principal, message: MessageId) -> bool:
    """Whether a run began with this message: it then has the name of the run."""
    where, parameters = within(principal)
    row = tx.one(
        f"SELECT 1 FROM messages WHERE {where} AND id = ? AND run = id AND copy_of IS NULL", (*parameters, message)
    )
    return row is not None


def session_of(tx: Tx, principal: Principal, message: MessageId) -> SessionId | None:
    """Return the session in which a message was said."""
    where, parameters = within(principal)
    row = tx.one(f"SELECT conversation_id FROM messages WHERE {where} AND id = ?", (*parameters, message))
    return None if row is None else SessionId(row[0])


def said(
    tx: Tx, principal: Principal, session: SessionId, *, after: int = 0, limit: int = 1000
) -> list[tuple[int, Message]]:
    """Return all that was said in a session in its order, also what was gone back from, but no copies."""
    where, parameters = within(principal)
    rows = tx.all(
        f"SELECT number, {_COLUMNS} FROM messages WHERE {where} AND conversation_id = ? AND copy_of IS NULL "
        "AND number > ? ORDER BY number LIMIT ?",
        (*parameters, session, after, limit),
    )
    return [(row[0], _parse(row[1:])) for row in rows]


def first_of_user(tx: Tx, principal: Principal, session: SessionId) -> str:
    """Return how a session began, to recognise it by."""
    where, parameters = within(principal)
    row = tx.one(
        f"SELECT substr(content, 1, 200) FROM messages WHERE {where} AND conversation_id = ? AND role = 'user' "
        "ORDER BY number LIMIT 1",
        (*parameters, session),
    )
    return "" if row is None else str(row[0])


def _values(message: Message) -> tuple[object, ...]:
    content, parts = _flattened(message)
    opaque = _encode(message.opaque).decode() if message.opaque else None
    return (message.role, message.status, content, parts, opaque, to_micros(message.at))


def _flattened(message: Message) -> tuple[str, str | None]:
    """Return the words to read and search, and the parts where words alone do not say it."""
    match message.parts:
        case (TextPart(text),):
            return text, None
        case (ResultPart() as result,):
            return result.text, _encode([_result(result, with_text=False)]).decode()
        case parts:
            return message.text, _encode([_plain(part) for part in parts]).decode()


def _plain(part: Part) -> dict[str, Any]:
    match part:
        case TextPart(text):
            return {"t": "text", "text": text}
        case ReasoningPart(text):
            return {"t": "reasoning", "text": text}
        case CallPart(id_, name, arguments):
            return {"t": "call", "id": id_, "name": name, "arguments": arguments}
        case ImagePart():
            return {"t": "image", **_image(part)}
        case ResultPart():
            return _result(part, with_text=True)


def _result(part: ResultPart, *, with_text: bool) -> dict[str, Any]:
    plain: dict[str, Any] = {"t": "result", "call": part.call, "name": part.name}
    if with_text:
        plain["text"] = part.text
    if part.is_error:
        plain["error"] = True
    if part.images:
        plain["images"] = [_image(image) for image in part.images]
    return plain


def _image(image: ImagePart) -> dict[str, str]:
    return {"type": image.media_type, "data": image.data, "url": image.url}


def _parse(row: Row) -> Message:
    return Message(
        id=MessageId(row[0]),
        role=row[1],
        parts=(TextPart(row[2]),) if row[3] is None else tuple(_parts(row[3], row[2])),
        at=from_micros(row[4]),
        status=row[5],
        parent=row[6],
        opaque={} if row[7] is None else _decode(row[7]),
    )


def _parts(text: str, content: str) -> Iterator[Part]:
    for plain in _decode(text):
        match plain["t"]:
            case "text":
                yield TextPart(plain["text"])
            case "reasoning":
                yield ReasoningPart(plain["text"])
            case "call":
                yield CallPart(CallId(plain["id"]), plain["name"], plain["arguments"])
            case "image":
                yield _to_image(plain)
            case _:
                images = tuple(_to_image(image) for image in plain.get("images", ()))
                said = plain.get("text", content)
                yield ResultPart(CallId(plain["call"]), plain["name"], said, plain.get("error", False), images)


def _to_image(plain: dict[str, str]) -> ImagePart:
    return ImagePart(plain["type"], plain["data"], plain["url"])
