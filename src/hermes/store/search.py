"""Full-text search over everything that was said. The index is derived: made when somebody searches, off the hot path.

Invariant: what is not indexed yet is indexed before an answer is given, a bounded number of messages at a time; text
of scripts without spaces is found by any two neighbouring characters.
"""

import re
from datetime import datetime
from typing import NamedTuple

from hermes.domain.clock import from_micros
from hermes.domain.message import MessageId
from hermes.domain.principal import Principal
from hermes.domain.protocols import Row, Tx
from hermes.domain.session import SessionId
from hermes.store.scope import require_system, within

BATCH = 2000
_CANDIDATES = 400
_LONGEST = 100_000
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_UNSPACED}]+")
_TERM = re.compile(r'(-?)(?:"([^"]*)"|(\S+))')
_WORD = re.compile(r"\w+")


class Hit(NamedTuple):
    """One message that was found, and the part of it that shows why."""

    session: SessionId
    message: MessageId
    role: str
    at: datetime
    snippet: str
    title: str | None


class _Term(NamedTuple):
    words: tuple[str, ...]
    is_prefix: bool
    is_wanted: bool


def index_more(tx: Tx, principal: Principal, *, limit: int = BATCH) -> int:
    """Index messages that are not yet; return how many were looked at: fewer than `limit` says that all are."""
    require_system(principal, "index messages")
    _ensure(tx)
    mark = tx.all(_MARK[tx.dialect])[0][0]
    rows = tx.all(
        "SELECT number, content FROM messages WHERE number > ? AND copy_of IS NULL ORDER BY number LIMIT ?",
        (mark, limit),
    )
    for number, content in rows:
        tx.execute(_ADD[tx.dialect], (number, _spaced(content[:_LONGEST].replace("\x00", " "))))
    return len(rows)


def rebuild(tx: Tx, principal: Principal) -> None:
    """Forget the index; the next search makes it again."""
    require_system(principal, "forget the index")
    tx.execute("DROP TABLE IF EXISTS messages_fts")
    _ensure(tx)


def find(tx: Tx, principal: Principal, query: str, *, limit: int = 20, session: SessionId | None = None) -> list[Hit]:
    """Return messages that hold every word, phrase ("…") and prefix (…*) of a query and nothing it excludes (-…).

    Among the newest that match, those come first in which the words stand more often and closer to the beginning.
    """
    terms = _terms(query)
    if not any(term.is_wanted for term in terms):
        return []
    where, parameters = within(principal)
    scope = where.replace("tenant", "m.tenant")
    if session is not None:
        scope, parameters = f"{scope} AND m.conversation_id = ?", (*parameters, session)
    rows = tx.all(
        "SELECT m.number, m.conversation_id, m.id, m.role, m.timestamp, m.content FROM messages_fts f "
        f"JOIN messages m ON m.number = f.{_KEY[tx.dialect]} WHERE {_MATCH[tx.dialect]} AND {scope} "
        f"ORDER BY f.{_KEY[tx.dialect]} DESC LIMIT ?",
        (_MATCHING[tx.dialect](terms), *parameters, _CANDIDATES),
    )
    patterns = [_pattern(term) for term in terms if term.is_wanted]
    best = sorted(rows, key=lambda row: _score(row, patterns), reverse=True)[:limit]
    return [_hit(tx, row, patterns) for row in best]


def _spaced(text: str) -> str:
    """Write each run of a script without spaces as pairs of neighbouring characters."""
    return _RUN.sub(lambda run: f" {' '.join(_pairs(run[0]))} ", text)


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[i : i + 2] for i in range(len(run) - 1)]


def _ensure(tx: Tx) -> None:
    for statement in _CREATE[tx.dialect]:
        tx.execute(statement)


def _terms(query: str) -> list[_Term]:
    terms = []
    for minus, phrase, word in _TERM.findall(query):
        text = phrase or word
        words = tuple(_WORD.findall(_spaced(text).lower()))
        if words:
            terms.append(_Term(words, word.endswith("*"), not minus))
    return terms


def _for_sqlite(terms: list[_Term]) -> str:
    wanted = [_quoted(term) for term in terms if term.is_wanted]
    unwanted = [_quoted(term) for term in terms if not term.is_wanted]
    return " NOT ".join([f"({' AND '.join(wanted)})", *unwanted])


def _quoted(term: _Term) -> str:
    return f'"{" ".join(term.words)}"{"*" if term.is_prefix else ""}'


def _for_postgres(terms: list[_Term]) -> str:
    said = []
    for term in terms:
        words = [f"'{word}'" for word in term.words]
        if term.is_prefix:
            words[-1] += ":*"
        said.append(f"{'' if term.is_wanted else '!'}({' <-> '.join(words)})")
    return " & ".join(said)


_WORDS_OF_SQLITE = (
    "CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts USING fts5("
    "text, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2', prefix='2 3')"
)
_FORGET = (
    "CREATE TRIGGER IF NOT EXISTS messages_fts_forget AFTER DELETE ON messages BEGIN "
    "DELETE FROM messages_fts WHERE rowid = old.number; END"
)
_WORDS_OF_POSTGRES = (
    "CREATE TABLE IF NOT EXISTS messages_fts (number BIGINT PRIMARY KEY REFERENCES messages (number) "
    "ON DELETE CASCADE, words TSVECTOR NOT NULL)"
)
_CREATE = {
    "sqlite": (_WORDS_OF_SQLITE, _FORGET),
    "postgres": (
        _WORDS_OF_POSTGRES,
        "CREATE INDEX IF NOT EXISTS messages_fts_words ON messages_fts USING gin (words)",
    ),
}
_MARK = {
    "sqlite": "SELECT coalesce(max(id), 0) FROM messages_fts_docsize",
    "postgres": "SELECT coalesce(max(number), 0) FROM messages_fts",
}
_ADD = {
    "sqlite": "INSERT INTO messages_fts (rowid, text) VALUES (?, ?)",
    "postgres": "INSERT INTO messages_fts (number, words) VALUES (?, to_tsvector('simple', ?))",
}
_KEY = {"sqlite": "rowid", "postgres": "number"}
_MATCH = {"sqlite": "messages_fts MATCH ?", "postgres": "f.words @@ to_tsquery('simple', ?)"}
_MATCHING = {"sqlite": _for_sqlite, "postgres": _for_postgres}


def _pattern(term: _Term) -> "re.Pattern[str]":
    """Find in the text as it was written what the index knows in pairs."""
    if _RUN.match(term.words[0]):
        run = term.words[0] + "".join(pair[-1] for pair in term.words[1:] if _RUN.match(pair))
        return re.compile(re.escape(run))
    return re.compile(r"\b" + r"\W+".join(map(re.escape, term.words)), re.IGNORECASE)


def _score(row: Row, patterns: "list[re.Pattern[str]]") -> float:
    content: str = row[5][:_LONGEST]
    score = 0.0
    for pattern in patterns:
        places = [match.start() for _, match in zip(range(5), pattern.finditer(content), strict=False)]
        score += len(places) / 5 + (1 / (1 + places[0] / 200) if places else 0.0)
    return score / (1 + len(content) / 20_000) + (0.5 if row[3] == "user" else 0.0) + float(row[0]) * 1e-12


def _hit(tx: Tx, row: Row, patterns: "list[re.Pattern[str]]") -> Hit:
    # The principal was judged when the messages were found; a session's title goes with its messages.
    title = tx.one(
        "SELECT s.title FROM sessions s JOIN messages m ON m.tenant = s.tenant AND m.conversation_id = s.id "
        "WHERE m.number = ?",
        (row[0],),
    )
    return Hit(
        session=SessionId(row[1]),
        message=MessageId(row[2]),
        role=row[3],
        at=from_micros(row[4]),
        snippet=_snippet(row[5], patterns),
        title=None if title is None else title[0],
    )


def _snippet(content: str, patterns: "list[re.Pattern[str]]", *, around: int = 70) -> str:
    """Cut out what stands around the first place, with the words that were found in brackets."""
    first = next((match for pattern in patterns if (match := pattern.search(content))), None)
    start = max(0, first.start() - around) if first else 0
    end = min(len(content), (first.end() if first else 0) + around)
    cut = content[start:end]
    for pattern in patterns:
        cut = pattern.sub(lambda match: f"»{match[0]}«", cut, count=3)
    return f"{'…' if start else ''}{' '.join(cut.split())}{'…' if end < len(content) else ''}"
