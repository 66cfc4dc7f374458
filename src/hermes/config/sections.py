"""The settings of Hermes, section by section: what each is for, its default, its bounds and its variables."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from hermes.config.schema import About, setting
from hermes.config.secret import Url


def _known_zone(name: str) -> None:
    if name == "UTC":
        return
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError("expected a time zone such as UTC or Europe/Berlin") from None


@dataclass(frozen=True, slots=True)
class Database:
    """Where everything is kept."""

    url: Url | None = setting(
        None,
        About(
            "The database: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME. Without it, state.db in the home.",
            names=("DATABASE_URL", "HERMES_DB_URI"),
        ),
    )
    synchronous: Literal["full", "normal"] = setting(
        "full",
        About("SQLite only. full: a commit survives a power cut; normal: the last commits may be lost in one."),
    )
    busy_timeout: timedelta = setting(
        timedelta(seconds=5),
        About("How long to wait for another process that holds the database.", at_least=timedelta(0)),
    )
    queue_limit: int = setting(10_000, About("How many writes may wait before a new one is refused.", at_least=1))
    readers: int = setting(4, About("How many reads run at once.", at_least=1, at_most=256))


@dataclass(frozen=True, slots=True)
class Redis:
    """Not used yet. Will wake other machines at once and never hold the truth; today they notice within a second."""

    url: Url | None = setting(
        None,
        About("Not used yet. The Redis server: redis://:PASSWORD@HOST:6379/0.", names=("REDIS_URL", "HERMES_BUS_URL")),
    )


@dataclass(frozen=True, slots=True)
class Jobs:
    """How intentions are worked off."""

    workers: int = setting(8, About("How many jobs are done at once.", at_least=1, at_most=10_000))
    lease: timedelta = setting(
        timedelta(seconds=30),
        About(
            "How long a worker that says nothing keeps its job; then another takes it.", at_least=timedelta(seconds=1)
        ),
    )
    poll: timedelta = setting(
        timedelta(seconds=1),
        About("How often to look for work when nothing rings.", at_least=timedelta(milliseconds=10)),
    )
    keep_done: timedelta = setting(
        timedelta(days=30),
        About("How long finished jobs can be looked at before they are deleted.", at_least=timedelta(0)),
    )


@dataclass(frozen=True, slots=True)
class Events:
    """How long facts are kept."""

    keep: timedelta = setting(
        timedelta(days=90), About("How long events can be read again before they are deleted.", at_least=timedelta(0))
    )


@dataclass(frozen=True, slots=True)
class Logging:
    """What is written to logs/hermes.jsonl in the home."""

    level: Literal["debug", "info", "warning", "error"] = setting("info", About("The least level that is written."))
    max_bytes: int = setting(
        10_000_000, About("How large the log may grow before a new one is begun.", at_least=10_000)
    )
    backups: int = setting(5, About("How many old logs are kept.", at_least=1, at_most=1_000))
    to_stderr: bool = setting(False, About("Whether the same lines also go to standard error."))


@dataclass(frozen=True, slots=True)
class Time:
    """How times are shown and schedules read when they do not say."""

    zone: str = setting("UTC", About("The time zone, by its name in the IANA list.", check=_known_zone))
