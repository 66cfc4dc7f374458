"""What a command prints: the last part kept at hand, all of it in a file when it is much."""

import os
from collections import deque
from pathlib import Path

from hermes.domain.machine import Output

_PRIVATE = 0o600


class Capture:
    """Takes output as it comes. Owned by one command; `close` gives back the file.

    Until more than `limit` bytes have come there is no file. The file ends at `most` bytes, the kept part goes on.
    """

    def __init__(self, path: Path, *, limit: int, most: int, show: Output | None = None) -> None:
        self._path = path
        self._limit, self._most, self._show = limit, most, show
        self._parts: deque[bytes] = deque()
        self._kept = 0
        self._file: int | None = None
        self._written = 0
        self.total = 0

    @property
    def tail(self) -> bytes:
        """The last `limit` bytes."""
        return b"".join(self._parts)[-self._limit :]

    @property
    def spilled(self) -> Path | None:
        """The file with all of it, when there was more than is kept."""
        return self._path if self._file is not None else None

    def take(self, data: bytes) -> None:
        """Note what has come. Raises OSError when the disk is full."""
        self.total += len(data)
        if self._file is None and self.total > self._limit:
            self._spill()
        self._write(data)
        self._parts.append(data)
        self._kept += len(data)
        while self._kept - len(self._parts[0]) >= self._limit:
            self._kept -= len(self._parts.popleft())
        if self._show is not None:
            self._show(data)

    def close(self) -> None:
        """Close the file; it stays."""
        if self._file is not None:
            os.close(self._file)

    def _spill(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
        for part in self._parts:
            self._write(part)

    def _write(self, data: bytes) -> None:
        if self._file is None or self._written >= self._most:
            return
        rest = memoryview(data)[: self._most - self._written]
        while rest:
            count = os.write(self._file, rest)
            self._written += count
            rest = rest[count:]
