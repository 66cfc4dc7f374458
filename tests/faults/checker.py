"""Judges what a victim left behind. Shares no code with the product: it reads the tables and the outside logs itself.

Every rule is one function from a State to sentences of complaint; no complaint means that the promise was kept.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from target import Word, acknowledged, effects, words

Row = dict[str, Any]
TABLES = ("events", "streams", "cursors", "jobs", "attempts", "schedules")
OVER = {"done", "dead", "cancelled"}
WITNESSED = {"work.done", "direct.published"}


@dataclass
class State:
    """Everything that can be seen after the victim came to rest."""

    events: list[Row]
    streams: list[Row]
    cursors: list[Row]
    jobs: list[Row]
    attempts: list[Row]
    schedules: list[Row]
    integrity: list[str]
    acknowledged: list[tuple[str, str]] = field(default_factory=list)
    effects: set[str] = field(default_factory=set)
    words: list[Word] = field(default_factory=list)


def look(folder: Path, url: str = "", database: str = "state.db") -> State:
    """Read the database (that nobody else has open) and the logs beside it."""
    tables, integrity = _postgres(url) if url else _sqlite(folder / database)
    return State(
        **tables,
        integrity=integrity,
        acknowledged=acknowledged(folder / "acknowledged.log"),
        effects=effects(folder),
        words=words(folder),
    )


def _sqlite(path: Path) -> tuple[dict[str, list[Row]], list[str]]:
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        try:
            integrity = [row[0] for row in db.execute("PRAGMA integrity_check")]
            tables = {name: [dict(row) for row in db.execute(f"SELECT * FROM {name}")] for name in TABLES}
        except sqlite3.DatabaseError as error:
            return {name: [] for name in TABLES}, [str(error)]
    return tables, [] if integrity == ["ok"] else integrity


def _postgres(url: str) -> tuple[dict[str, list[Row]], list[str]]:
    import psycopg
    from psycopg.rows import dict_row

    with psycopg.connect(url, row_factory=dict_row) as db:
        return {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in TABLES}, []


def check(state: State) -> list[str]:
    """Return every complaint of every rule."""
    return [complaint for rule in RULES for complaint in rule(state)]


def file_is_sound(state: State) -> Iterator[str]:
    for line in state.integrity:
        yield f"integrity: {line}"


def nothing_acknowledged_is_lost(state: State) -> Iterator[str]:
    there = {"job": {row["id"] for row in state.jobs}, "event": {row["id"] for row in state.events}}
    for kind, name in state.acknowledged:
        if name not in there[kind]:
            yield f"lost: the acknowledged {kind} {name}"


def every_job_ended_once(state: State) -> Iterator[str]:
    ends = Counter(row["subject"] for row in state.events if row["stream"] == "jobs")
    for job in state.jobs:
        if job["state"] not in OVER:
            yield f"unended: the job {job['id']} is {job['state']} at rest"
        elif job["state"] != "done":
            yield f"unended: the job {job['id']} is {job['state']}: {job['error']}"
        elif ends[job["id"]] != 1:
            yield f"doubled: the job {job['id']} ended {ends[job['id']]} times by its events"


def every_effect_was_made_once(state: State) -> Iterator[str]:
    made = Counter(word.key for word in state.words if word.what == "made")
    said = Counter(job_of(row) for row in state.events if row["type"] == "work.done")
    works = {job["id"] for job in state.jobs if job["kind"] == "victim.work"}
    for name in works:
        if name not in state.effects:
            yield f"unmade: the job {name} is over without its effect"
        if made[name] > 1:
            yield f"doubled: the effect of the job {name} was made {made[name]} times"
        if said[name] != 1:
            yield f"doubled: the job {name} published its event {said[name]} times"
    for name in state.effects - works:
        yield f"lost: the effect of {name} has no job"


def job_of(event: Row) -> str:

    return str(json.loads(event["data"])["job"])


def streams_have_no_gap(state: State) -> Iterator[str]:
    found: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in state.events:
        found[row["tenant"], row["stream"]].append(row["seq"])
    forgotten = {(row["tenant"], row["name"]): row["seq"] for row in state.streams}
    for key, numbers in found.items():
        first = forgotten.get(key, 0) + 1
        if sorted(numbers) != list(range(first, first + len(numbers))):
            yield f"gap: the stream {key[1]} is not {first}..{first + len(numbers) - 1}"


def numbers_and_positions_agree(state: State) -> Iterator[str]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(state.events, key=lambda row: row["position"]):
        found[row["stream"]].append(row)
    for stream, rows in found.items():
        if any(first["seq"] > second["seq"] for first, second in pairwise(rows)):
            yield f"order: the positions of {stream} are not in the order of its numbers"


def witness_saw_each_once_in_order(state: State) -> Iterator[str]:

    seen = [json.loads(row["data"]) for row in sorted(state.events, key=_seq) if row["type"] == "witness.saw"]
    counts = Counter(one["event"] for one in seen)
    wanted = {row["id"] for row in state.events if row["type"] in WITNESSED}
    for name in wanted - counts.keys():
        yield f"unseen: the event {name} never reached the witness"
    for name, count in counts.items():
        if count > 1:
            yield f"doubled: the witness saw the event {name} {count} times"
        if name not in wanted:
            yield f"lost: the witness saw the event {name}, which is not there"
    if any(first["position"] >= second["position"] for first, second in pairwise(seen)):
        yield "order: the witness did not see the events in their order"


def _seq(row: Row) -> int:
    return int(row["seq"])


def attempts_have_ends(state: State) -> Iterator[str]:
    running = {(row["id"], row["fence"]) for row in state.jobs if row["state"] == "running"}
    for row in state.attempts:
        if row["ended_at"] is None and (row["job"], row["fence"]) not in running:
            yield f"open: attempt {row['number']} of the job {row['job']} has no end"
        if row["ended_at"] is not None and row["ended_at"] < row["started_at"]:
            yield f"open: attempt {row['number']} of the job {row['job']} ended before it began"


def lanes_do_not_overlap(state: State) -> Iterator[str]:
    lane_of = {row["id"]: row["lane"] for row in state.jobs}
    tries: dict[str, list[Row]] = defaultdict(list)
    for row in state.attempts:
        if lane_of.get(row["job"]) is not None:
            tries[lane_of[row["job"]]].append(row)
    for lane, rows in tries.items():
        for first, second in pairwise(sorted(rows, key=lambda row: (row["started_at"], row["ended_at"] or 1 << 62))):
            if first["ended_at"] is None or first["ended_at"] > second["started_at"]:
                yield f"overlap: in the lane {lane} {second['job']} began before {first['job']} ended"


def lanes_do_not_overlap_outside(state: State) -> Iterator[str]:
    """By the target's own log; what a killed process had begun has no end there."""
    open_in: dict[tuple[str, str], str] = {}
    for word in state.words:
        place = word.life, word.lane
        if word.lane == "-":
            continue
        if word.what == "begin":
            if place in open_in:
                yield f"overlap: outside, {word.key} began in the lane {word.lane} before {open_in[place]} ended"
            open_in[place] = word.key
        elif word.what == "end":
            open_in.pop(place, None)


def lanes_keep_their_order(state: State) -> Iterator[str]:
    first_try: dict[str, int] = {}
    for row in sorted(state.attempts, key=lambda row: row["fence"]):
        first_try.setdefault(row["job"], row["started_at"])
    lanes: dict[str, list[Row]] = defaultdict(list)
    for row in sorted(state.jobs, key=lambda row: row["number"]):
        if row["lane"] is not None:
            lanes[row["lane"]].append(row)
    for lane, rows in lanes.items():
        for first, second in pairwise(row for row in rows if row["id"] in first_try):
            if first_try[first["id"]] > first_try[second["id"]]:
                yield f"order: in the lane {lane} {second['id']} began before {first['id']}"
            if (first["finished_at"] or 0) > (second["finished_at"] or 0):
                yield f"order: in the lane {lane} {second['id']} ended before {first['id']}"


def due_time(job: Row) -> datetime:
    """Return the time a job was made for; when it is to run changes with each try."""
    return datetime.fromisoformat(job["dedupe_key"].partition("@")[2])


def schedules_made_each_time_once(state: State) -> Iterator[str]:
    for schedule in (row for row in state.schedules if row["name"] == "tick"):
        made = sorted(due_time(row) for row in state.jobs if row["cause"] == schedule["id"])
        for at, count in Counter(made).items():
            if count > 1:
                yield f"doubled: the schedule {schedule['name']} made {count} jobs of one time {at}"
        for first, second in pairwise(made):
            if second - first > timedelta(seconds=1):
                yield f"lost: the schedule {schedule['name']} left out the time after {first}"


RULES: Sequence[Callable[[State], Iterator[str]]] = (
    file_is_sound,
    nothing_acknowledged_is_lost,
    every_job_ended_once,
    every_effect_was_made_once,
    streams_have_no_gap,
    numbers_and_positions_agree,
    witness_saw_each_once_in_order,
    attempts_have_ends,
    lanes_do_not_overlap,
    lanes_do_not_overlap_outside,
    lanes_keep_their_order,
    schedules_made_each_time_once,
)


def figures(complaints: Sequence[str]) -> str:
    """Count complaints by their first word."""
    counts = Counter(complaint.partition(":")[0] for complaint in complaints)
    return ", ".join(f"{counts[word]} {word}" for word in ("lost", "doubled", "gap", "overlap", "order"))
