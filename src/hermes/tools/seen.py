"""What of which file a model has read or written in a session, so that nothing newer is overwritten unseen.

Invariant: bounded; what was forgotten counts as never seen.
"""

import hashlib
from collections import OrderedDict
from pathlib import Path

from hermes.domain.machine import FileStatus
from hermes.domain.records import dataclass
from hermes.domain.session import SessionId

_MOST = 2_000


@dataclass(frozen=True, slots=True)
class Sight:
    """A file as it was when the model last saw it. `part` is what of it was shown last, and whether again."""

    modified: float
    size: int
    digest: bytes
    part: tuple[int, int] | None = None
    is_repeated: bool = False

    def is_first_repetition(self, status: FileStatus, part: tuple[int, int]) -> bool:
        """Whether the same part of the same file is asked for a second time."""
        is_same = (self.modified, self.size) == (status.modified, status.size)
        return is_same and self.part == part and not self.is_repeated


class Seen:
    """The files that sessions have seen. Used on one event loop."""

    def __init__(self) -> None:
        self._sights: OrderedDict[tuple[SessionId, Path], Sight] = OrderedDict()

    def get(self, session: SessionId, path: Path) -> Sight | None:
        """Return what was seen last, None when nothing was."""
        return self._sights.get((session, path))

    def note(self, session: SessionId, path: Path, sight: Sight) -> None:
        """Remember what was seen."""
        self._sights[session, path] = sight
        self._sights.move_to_end((session, path))
        while len(self._sights) > _MOST:
            self._sights.popitem(last=False)

    def forget(self, session: SessionId, path: Path) -> None:
        """The file is gone."""
        self._sights.pop((session, path), None)

    def is_stale(self, session: SessionId, path: Path, content: bytes) -> bool:
        """Whether the model has seen the file, and other content than this."""
        sight = self.get(session, path)
        return sight is not None and sight.digest != digest(content)


def digest(content: bytes) -> bytes:
    """Name a content."""
    return hashlib.blake2b(content, digest_size=16).digest()


def sight(status: FileStatus | None, content: bytes, part: tuple[int, int] | None = None) -> Sight:
    """Note a file's state and content."""
    modified = status.modified if status is not None else 0.0
    return Sight(modified, len(content), digest(content), part)
