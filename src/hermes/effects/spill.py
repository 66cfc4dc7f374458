"""Results that are too long for a model: the whole text in a file, its head, its tail and a pointer in the answer.

Invariant: no more than 50 KB and 2,000 lines reach the model, and nothing of what was cut is lost.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import anyio.to_thread
import msgspec

from hermes.domain.clock import Clock
from hermes.domain.event import JSON
from hermes.domain.records import dataclass
from hermes.domain.session import SessionId

MOST_BYTES = 50_000
MOST_LINES = 2_000
_HEAD_SHARE = 0.4
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600


@dataclass(frozen=True, slots=True)
class Clipped:
    """What is left of a long text, and how much of it was left out in the middle."""

    text: str
    left_out: int


def clip(text: str, most_bytes: int = MOST_BYTES, most_lines: int = MOST_LINES, *, where: str = "") -> Clipped | None:
    """Keep head and tail of a text and say in between what is missing; None when it is short enough."""
    raw = text.encode("utf-8", "surrogatepass")
    lines = raw.split(b"\n")
    if len(raw) <= most_bytes and len(lines) <= most_lines:
        return None
    head = b"\n".join(lines[: int(most_lines * _HEAD_SHARE)])[: int(most_bytes * _HEAD_SHARE)]
    rest = raw[len(head) :]
    tail_bytes, tail_lines = most_bytes - int(most_bytes * _HEAD_SHARE), most_lines - int(most_lines * _HEAD_SHARE)
    tail = b"\n".join(rest[-tail_bytes:].split(b"\n")[-tail_lines:])
    left_out = len(rest) - len(tail)
    pointer = f"; all of it: read_file {where}" if where else ""
    said = f"\n… {left_out:,} bytes left out{pointer} …\n"
    return Clipped(f"{_text(head)}{said}{_text(tail)}", left_out)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "ignore")


class Spill:
    """Keeps long texts in `sessions/<session>/results` of the home. Several may use the same home."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self._home = home
        self._clock = clock

    def folder(self, session: SessionId) -> Path:
        """Where the long texts of a session are; the model may read what is in there."""
        name = session if _PLAIN_NAME.fullmatch(session) else hashlib.sha256(_raw(session)).hexdigest()[:32]
        return self._home / "sessions" / name / "results"

    async def keep(self, session: SessionId, text: str, *, name: str = "result") -> Path:
        """Write a text down and return where."""
        return await anyio.to_thread.run_sync(self._write, self._place(session, name), _raw(text))

    async def adopt(self, session: SessionId, path: Path, *, name: str = "output") -> Path:
        """Take in a file that a machine has written, and return where the model can read it."""
        return await anyio.to_thread.run_sync(self._link, path, self._place(session, name))

    async def bounded(self, session: SessionId, text: str, *, name: str) -> str:
        """Return the text, or what takes its place when it is too long."""
        is_short = len(text) <= MOST_BYTES // 4
        if is_short or (len(_raw(text)) <= MOST_BYTES and _lines(text) <= MOST_LINES):
            return text
        whole = as_lines(text)
        path = await self.keep(session, whole, name=name)
        cut = clip(whole, MOST_BYTES * 3 // 5, MOST_LINES - 100, where=str(path))
        shown: Mapping[str, JSON] = {
            "truncated": True,
            "total_bytes": len(_raw(whole)),
            "total_lines": whole.count("\n") + 1,
            "file": str(path),
            "content": cut.text if cut else whole,
        }
        return _fitting(shown)

    def _place(self, session: SessionId, name: str) -> Path:
        plain = name if _PLAIN_NAME.fullmatch(name) else "result"
        return self.folder(session) / f"{plain}-{self._clock.new_id()}.txt"

    def _write(self, path: Path, raw: bytes) -> Path:
        path.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
        return path

    def _link(self, source: Path, path: Path) -> Path:
        path.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        with suppress(OSError):
            os.link(source, path, follow_symlinks=False)
            return path
        shutil.copyfile(source, path)
        return path


def as_lines(text: str) -> str:
    """Lay out a JSON answer so that it can be read line by line; other text stays."""
    if not text.startswith("{"):
        return text
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    parts = []
    for key, value in found.items():
        shown = value if isinstance(value, str) else msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
        parts.append(f"[{key}]\n{shown}")
    return "\n".join(parts)


def _lines(text: str) -> int:
    return text.count("\n") + text.count("\\n")


def _fitting(shown: Mapping[str, JSON]) -> str:
    """Escapes make a text longer: what does not fit is cut again."""
    content = str(shown["content"])
    encoded = msgspec.json.encode({**shown, "content": _text(_raw(content))})
    while len(encoded) > MOST_BYTES:
        cut = clip(content, len(_raw(content)) * 2 // 3, MOST_LINES, where=str(shown["file"]))
        content = cut.text if cut else content[: len(content) // 2]
        encoded = msgspec.json.encode({**shown, "content": _text(_raw(content))})
    return encoded.decode()


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
