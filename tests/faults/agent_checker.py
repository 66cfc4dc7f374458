"""Judges what a killed assistant has left, by the rows of its database alone; shares no code with Hermes."""

import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Left:
    """What is there: every message, the way to the head, every run, and what was really done and acknowledged."""

    messages: dict[str, dict[str, object]]
    path: list[str]
    runs: dict[str, str]
    done: Counter[str]
    finished: set[str]
    ended_runs: set[str]
    integrity: str
    uncertain: int


def look(folder: Path) -> Left:
    with closing(sqlite3.connect(folder / "state.db")) as database:
        rows = database.execute("SELECT id, role, status, content, parts, parent, copy_of FROM messages").fetchall()
        messages = {row[0]: _message(row) for row in rows}
        head = database.execute("SELECT head FROM contexts ORDER BY number DESC LIMIT 1").fetchone()[0]
        runs = dict(database.execute("SELECT id, state FROM runs"))
        integrity = database.execute("PRAGMA integrity_check").fetchone()[0]
    path = []
    while head is not None:
        path.append(head)
        head = messages[head]["parent"]
    done = Counter(word for kind, word in _lines(folder / "effects.log") if kind == "mark")
    acknowledged = _lines(folder / "acknowledged.log")
    return Left(
        messages,
        path[::-1],
        runs,
        done,
        {word for kind, word in acknowledged if kind == "mark"},
        {word for kind, word in acknowledged if kind == "run"},
        integrity,
        sum(m["status"] == "uncertain" for m in messages.values()),
    )


def _message(row: tuple[str, ...]) -> dict[str, object]:
    _, role, status, content, parts, parent, copy_of = row
    found = json.loads(parts) if parts else []
    calls = {p["id"]: (p["name"], json.loads(p["arguments"])["number"]) for p in found if p["t"] == "call"}
    results = {p["call"]: p.get("text", content) for p in found if p["t"] == "result"}
    return {"role": role, "status": status, "calls": calls, "results": results, "parent": parent, "copy": copy_of}


def _lines(path: Path) -> list[tuple[str, str]]:
    if not path.exists():
        return []
    # The last line may have been cut by the kill.
    whole = [line.split() for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return [(words[0], words[1]) for words in whole if len(words) >= 2]


def check(left: Left) -> list[str]:
    complaints = [] if left.integrity == "ok" else [f"integrity: {left.integrity}"]
    complaints += [f"done {count} times: {number}" for number, count in left.done.items() if count > 1]
    said = {n: m for n, m in left.messages.items() if m["copy"] is None}
    calls: dict[str, tuple[str, str]] = {}
    results: dict[str, list[tuple[str, str]]] = {}
    for message in said.values():
        calls |= message["calls"]  # type: ignore[operator]
        for call, text in message["results"].items():  # type: ignore[attr-defined]
            results.setdefault(call, []).append((str(message["status"]), text))
    for call, (name, number) in calls.items():
        found = results.get(call, [])
        if len(found) != 1:
            complaints.append(f"{len(found)} results: {name} {number}")
            continue
        complaints += _judge_result(left, name, number, *found[0])
    complaints += [f"lost: {number}" for number in left.finished if not _is_told(calls, results, number)]
    complaints += _judge_path(left)
    complaints += [f"not ended: {run}" for run, state in left.runs.items() if state == "running"]
    complaints += [f"lost run: {run}" for run in left.ended_runs if left.runs.get(run) != "done"]
    return complaints


def _judge_result(left: Left, name: str, number: str, status: str, text: str) -> list[str]:
    if name == "look":
        return [] if text.startswith("saw") else [f"a look without a view: {text[:80]}"]
    if text.startswith("marked"):
        return [] if left.done[number] == 1 and status == "complete" else [f"said and not done: {number}"]
    if status == "uncertain" and text.startswith("uncertain"):
        return []
    if status == "complete" and text.startswith("not done") and not left.done[number]:
        return []
    return [f"neither done nor uncertain: {number} {status} {text[:80]}"]


def _is_told(calls: dict[str, tuple[str, str]], results: dict[str, list[tuple[str, str]]], number: str) -> bool:
    return any(
        text == f"marked {number}"
        for call, (_, given) in calls.items()
        if given == number
        for _, text in results.get(call, [])
    )


def _judge_path(left: Left) -> list[str]:
    """On the way to the head each call is answered before anything else is said."""
    open_calls: set[str] = set()
    complaints = []
    for name in left.path:
        message = left.messages[name]
        if message["role"] != "tool" and open_calls:
            complaints.append(f"unanswered before {name}: {sorted(open_calls)}")
        open_calls |= set(message["calls"])  # type: ignore[call-overload]
        for call in message["results"]:  # type: ignore[attr-defined]
            if call not in open_calls:
                complaints.append(f"an answer to nothing: {call}")
            open_calls.discard(call)
    return complaints + [f"unanswered: {call}" for call in open_calls]
