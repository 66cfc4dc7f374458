"""Server-sent events out of bytes that arrive in any pieces.

Invariant: the events do not depend on how the bytes were cut; no event is held that is longer than the bound, and
each byte is looked at a bounded number of times.
"""

from typing import TypeAlias

from hermes.domain.errors import LimitReached

Event: TypeAlias = tuple[bytes, bytes]
"""The event's name (empty when it has none) and its data."""

LONGEST = 16 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


class Events:
    """One stream of events. `feed` raises LimitReached for an event beyond the bound; use it no more then."""

    __slots__ = ("_longest", "_rest", "_skips_newline", "_start")

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._skips_newline = False
        self._start: bytes | None = b""

    def feed(self, data: bytes) -> list[Event]:
        """Take what has arrived, and return the events that are complete with it."""
        if self._start is not None:
            data = self._after_bom(data)
        if self._skips_newline and data:
            data = data.removeprefix(b"\n")
            self._skips_newline = False
        if b"\r" in data:
            # A lone CR ends a line too; the LF that may follow it in the next piece belongs to it.
            self._skips_newline = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        rest = self._rest
        if rest:
            is_ended = data.startswith(b"\n") and rest.endswith(b"\n")
            rest += data
            if not is_ended and b"\n\n" not in data:
                self._require_short(len(rest))
                return []
            data = bytes(rest)
            rest.clear()
        blocks = data.split(b"\n\n")
        if last := blocks.pop():
            rest += last
            self._require_short(len(last))
        events = []
        for block in blocks:
            self._require_short(len(block))
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append((b"", block[6:]))
            elif event := _parsed(block):
                events.append(event)
        return events

    def finish(self) -> list[Event]:
        """The stream has ended: return the last event when its blank line is missing."""
        event = _parsed(bytes(self._rest))
        self._rest.clear()
        return [event] if event else []

    def _require_short(self, length: int) -> None:
        if length > self._longest:
            raise LimitReached(
                f"one event of the answer is longer than {self._longest:,} bytes; it was not read further"
            )

    def _after_bom(self, data: bytes) -> bytes:
        data = (self._start or b"") + data
        if len(data) < len(_BOM) and _BOM.startswith(data):
            self._start = data
            return b""
        self._start = None
        return data.removeprefix(_BOM)


def _parsed(block: bytes) -> Event | None:
    """Read the lines of one event; None when it has no data."""
    name, data = b"", []
    for line in block.split(b"\n"):
        field, colon, value = line.partition(b":")
        if field == b"data":
            data.append(value[1:] if value.startswith(b" ") else value)
        elif field == b"event" and colon:
            name = value[1:] if value.startswith(b" ") else value
    return (name, b"\n".join(data)) if data else None
