"""When a schedule is due: pure arithmetic on what people write.

    */15 9-17 * * MON-FRI     a cron line (five fields, or six with seconds first), in the schedule's time zone
    every 10m                 an interval, from when the schedule was made
    30m                       once, that long from now
    2027-03-01T09:00          once, at that moment in the schedule's time zone

Daylight saving follows Debian's cron: a job at a fixed hour that the clock skips runs right after the gap, and one in
an hour that comes twice runs once; `*` and `*/n` hours follow the real time.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from hermes.domain.errors import Misconfigured
from hermes.domain.schedule import Schedule

GRACE = timedelta(seconds=60)
"""A due time is missed when it is older than this."""
MOST_AT_ONCE = 1000
"""So many missed times are made up for in one go; the rest follows in the next."""

_INTERVAL = re.compile(r"(?P<every>every\s+)?(?P<number>\d+)\s*(?P<unit>s|m|h|d|w)", re.ASCII)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_EXAMPLES = "'0 9 * * MON-FRI', 'every 10m', '30m' or '2027-03-01T09:00'"


class Due(NamedTuple):
    """The times to make jobs for now, and when to look again (None: never)."""

    times: list[datetime]
    next_at: datetime | None


def zone(name: str) -> ZoneInfo:
    """Return a time zone by name."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Misconfigured(f"there is no time zone {name!r}; write one such as 'UTC' or 'Europe/Berlin'") from error


def first(rule: str, zone_name: str, now: datetime) -> tuple[str, datetime]:
    """Check a rule and return it in the form that is stored, with its first due time after `now`."""
    rule = " ".join(rule.split())
    zone(zone_name)
    interval = _INTERVAL.fullmatch(rule)
    if interval:
        length = _length(interval)
        return (rule, now + length) if interval["every"] else ((now + length).isoformat(), now + length)
    moment = _moment(rule, zone_name)
    if moment is not None:
        if moment <= now:
            raise Misconfigured(f"the moment {rule!r} has passed; write one to come")
        return moment.isoformat(), moment
    due = following(rule, zone_name, now)
    if due is None:
        raise Misconfigured(f"the rule {rule!r} never comes due; write {_EXAMPLES}")
    return rule, due


def following(rule: str, zone_name: str, after: datetime) -> datetime | None:
    """Return the first due time later than `after`, or None when there is none. `every` counts from `after`."""
    interval = _INTERVAL.fullmatch(rule)
    if interval:
        return after + _length(interval) if interval["every"] else None
    if _moment(rule, zone_name) is not None:
        return None
    return _cron(rule, zone_name, after, is_backwards=False)


def due(schedule: Schedule, now: datetime) -> Due:
    """Decide what a schedule whose time has come makes now, by its policy for missed times."""
    if schedule.next_at is None or schedule.next_at > now:
        return Due([], schedule.next_at)
    if schedule.missed == "all":
        return _each(schedule, schedule.next_at, now)
    latest = _latest(schedule, schedule.next_at, now)
    wanted = schedule.missed == "once" or now - latest <= GRACE
    return Due([latest] if wanted else [], following(schedule.rule, schedule.zone, latest))


def _each(schedule: Schedule, at: datetime | None, now: datetime) -> Due:
    times: list[datetime] = []
    while at is not None and at <= now and len(times) < MOST_AT_ONCE:
        times.append(at)
        at = following(schedule.rule, schedule.zone, at)
    return Due(times, at)


def _latest(schedule: Schedule, at: datetime, now: datetime) -> datetime:
    """Return the last due time up to `now`, without walking through all that were missed."""
    interval = _INTERVAL.fullmatch(schedule.rule)
    if interval:
        return at + (now - at) // _length(interval) * _length(interval)
    if _moment(schedule.rule, schedule.zone) is not None:
        return at
    # Backwards from just after now, since the search leaves out its beginning.
    found = _cron(schedule.rule, schedule.zone, now + timedelta(seconds=1), is_backwards=True)
    return at if found is None else max(at, found)


def _cron(rule: str, zone_name: str, start: datetime, *, is_backwards: bool) -> datetime | None:
    try:
        search = CronSim(rule.upper(), start.astimezone(zone(zone_name)), reverse=is_backwards)
    except CronSimError as error:
        raise Misconfigured(f"{rule!r} is no schedule ({error}); write {_EXAMPLES}") from error
    try:
        return next(search).astimezone(UTC)
    except StopIteration:
        return None


def _length(interval: "re.Match[str]") -> timedelta:
    try:
        length = timedelta(**{_UNITS[interval["unit"]]: int(interval["number"])})
    except OverflowError as error:
        raise Misconfigured(f"{interval[0]!r} is too long for an interval") from error
    if not timedelta(seconds=1) <= length <= timedelta(days=3660):
        raise Misconfigured(f"the interval {interval[0]!r} is not between a second and ten years")
    return length


def _moment(rule: str, zone_name: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(rule)
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=zone(zone_name))).astimezone(UTC)
