"""Time, identifiers and chance come in through a Clock, so that a test can own all three.

Wall time is for schedules and for people; durations are measured on the monotonic clock.
"""

import os
import random
import time
from datetime import UTC, datetime, timedelta
from typing import NewType, Protocol

Micros = NewType("Micros", int)
"""Microseconds since 1970 in UTC: how time is written in the database."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """What tells time and makes up names. Every method returns at once and never raises."""

    def now(self) -> datetime:
        """Wall time in UTC. It may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds that only grow."""
        ...

    def new_id(self) -> str:
        """Return a name nobody else has; names sort by the millisecond they were made in, within one in no order."""
        ...

    def chance(self) -> float:
        """Return a number in [0, 1)."""
        ...


class SystemClock:
    """The real time of this machine."""

    def now(self) -> datetime:
        """Wall time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that only grow."""
        return time.monotonic()

    def new_id(self) -> str:
        """UUID version 7: 48 bits of milliseconds, then 74 random bits."""
        return uuid7(time.time_ns() // 1_000_000, os.urandom(10))

    def chance(self) -> float:
        """Return a number in [0, 1)."""
        return random.random()


def uuid7(milliseconds: int, entropy: bytes) -> str:
    """Lay out a UUID version 7 from a time and ten random bytes."""
    number = (milliseconds & (1 << 48) - 1) << 80 | int.from_bytes(entropy, "big")
    number = number & ~(0xF << 76) | 7 << 76
    number = number & ~(0x3 << 62) | 2 << 62
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def to_micros(at: datetime) -> Micros:
    """Turn an aware datetime into what the database holds."""
    return Micros((at - _EPOCH) // _MICROSECOND)


def from_micros(micros: int) -> datetime:
    """Turn what the database holds into an aware datetime in UTC."""
    return _EPOCH + timedelta(microseconds=micros)
