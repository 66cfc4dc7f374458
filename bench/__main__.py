"""Take the measures that are named (all without names) and print the table."""

import platform
import sys
from pathlib import Path

from bench import harness
from bench.harness import Measure
from hermes.store.sqlite import driver

HERMES = Path(sys.executable).parent / "hermes"
APPENDS = {"normal": "3000", "full": "1000"}
_last: dict[tuple[str, str, str], dict[str, float]] = {}
_slowest: list[float] = []


def version() -> tuple[float, float]:
    bare = harness.cpu_of([sys.executable, "-c", "pass"], 15)
    return harness.cpu_of([HERMES, "--version"], 15) * 1000, bare * 1000


def append_rate(what: str, synchronous: str) -> tuple[float, float]:
    for who in ("bare", "ours"):
        _last[who, what, synchronous] = harness.worker(who, what, synchronous, APPENDS[synchronous], "1")
    _slowest.append(_last["ours", what, synchronous]["slowest_ms"])
    return _last["ours", what, synchronous]["per_second"], _last["bare", what, synchronous]["per_second"]


def append_cpu(what: str, synchronous: str) -> tuple[float, float]:
    """CPU of the runs that `append_rate` has just made, as a rate, so that larger is better there and here."""
    ours, bare = (1e6 / _last[who, what, synchronous]["cpu_us"] for who in ("ours", "bare"))
    return ours, bare


def many_writers(what: str) -> tuple[float, float]:
    bare = harness.worker("bare", what, "full", APPENDS["full"], "1")
    return harness.worker("ours", what, "full", "19200", "64")["per_second"], bare["per_second"]


def model_call(what: str, count: int, history: int) -> tuple[float, float]:
    """CPU of a token or of a call; the server's is not counted."""
    words = (what, str(count), str(history))
    ours, floor = (harness.worker(who, *words, module="bench.model")["cpu_us"] for who in ("ours", "httpx"))
    return ours, floor


def model_calls(history: int, count: int, *, must: float, aim: float) -> Measure:
    name = f"model call, {history:,} messages, CPU"
    return Measure(name, "httpx2 + json", "us", "small", must, aim, lambda: model_call("calls", count, history))


def appends(what: str, synchronous: str, *, must: float | None, aim: float | None) -> list[Measure]:
    name = f"{what}: append + commit, {synchronous.upper()}"
    return [
        Measure(name, "bare sqlite3", "/s", "large", must, aim, lambda: append_rate(what, synchronous)),
        Measure(f"{name}, CPU", "bare sqlite3", "/s CPU", "large", must, aim, lambda: append_cpu(what, synchronous)),
    ]


MEASURES = (
    Measure("hermes --version, CPU", "bare python", "ms", "small", 3, 1.5, version),
    *appends("message", "normal", must=0.4, aim=0.7),
    *appends("message", "full", must=0.4, aim=0.7),
    Measure("row: 64 writers, FULL", "one by one", "/s", "large", 8, 20, lambda: many_writers("row")),
    Measure("message: 64 writers, FULL", "one by one", "/s", "large", None, None, lambda: many_writers("message")),
    Measure("event: 64 writers, FULL", "one by one", "/s", "large", None, None, lambda: many_writers("event")),
    *appends("event", "normal", must=None, aim=None),
    *appends("event", "full", must=None, aim=None),
    Measure("streamed token, CPU", "httpx2", "us", "small", 0.5, 0.25, lambda: model_call("tokens", 20, 3)),
    model_calls(10, 400, must=0.4, aim=0.2),
    model_calls(1000, 100, must=0.4, aim=0.15),
    model_calls(5000, 40, must=0.4, aim=0.15),
)


def main(words: list[str]) -> int:
    wanted = [m for m in MEASURES if not words or any(word in m.name for word in words)]
    sys.stdout.write(
        f"Python {platform.python_version()}, SQLite {driver.sqlite_version}, {harness.ROUNDS} interleaved rounds; "
        "medians, spread is half the range.\n100,000 messages are stored. A message has a full-text index, a row has "
        "not; an event is what `publish` stores,\nits floor is its bare row. No bound: for information.\n\n"
    )
    figures = harness.run_rounds(wanted)
    sys.stdout.write(harness.table(figures) + "\n")
    if _slowest:
        sys.stdout.write(f"\nslowest single append of all rounds: {max(_slowest):.1f} ms (must: no stall over 50 ms)\n")
    return int(any(f.verdict() == "MISSED" for f in figures))


sys.exit(main(sys.argv[1:]))
