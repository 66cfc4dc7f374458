"""The doorbell of one process: wakes whoever waits for news, and never carries the news itself."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import anyio


class LocalBell:
    """One listener. Rings that come while it is busy are remembered as one."""

    def __init__(self) -> None:
        self._rung = anyio.Event()

    def ring(self) -> None:
        """Wake the listener, now or at its next wait."""
        self._rung.set()

    async def wait(self, seconds: float) -> bool:
        """Return True when it has rung since the last wait, False when `seconds` have passed in silence."""
        with anyio.move_on_after(seconds):
            await self._rung.wait()
        was_rung = self._rung.is_set()
        if was_rung:
            self._rung = anyio.Event()
        return was_rung


class LocalDoorbell:
    """Rings for the tasks of this process. The store rings it after every commit, its own and other processes'."""

    def __init__(self) -> None:
        self._bells: dict[str, set[LocalBell]] = {}

    def ring(self, topics: Collection[str]) -> None:
        """Wake everybody who listens to one of `topics`."""
        for topic in topics:
            for bell in self._bells.get(topic, ()):
                bell.ring()

    @contextmanager
    def listen(self, topic: str) -> Iterator[LocalBell]:
        """Begin to listen; rings from now on are remembered until waited for."""
        bell = LocalBell()
        self._bells.setdefault(topic, set()).add(bell)
        try:
            yield bell
        finally:
            self._bells[topic].discard(bell)
