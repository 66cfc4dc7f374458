"""Take the measures that are named (all without names) and print the table."""

import platform
import sys
import tempfile
from pathlib import Path

from bench import agent as agents
from bench import harness
from bench.harness import Measure
from hermes.store.sqlite import driver

HERMES = Path(sys.executable).parent / "hermes"
APPENDS = {"normal": "3000", "full": "1000"}
_last: dict[tuple[str, str, str], dict[str, float]] = {}
_slowest: list[float] = []
_many: list[dict[str, float]] = []
_search: list[float] = []


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


def agent(who: str, what: str, first: int, second: int) -> dict[str, float]:
    return harness.worker(who, what, str(first), str(second), module="bench.agent")


def agent_turns(history: int, count: int) -> tuple[float, float]:
    ours, floor = (agent(who, "turns", count, history)["cpu_us"] for who in ("ours", "httpx"))
    return ours, floor


def agent_steps(name: str, history: int, count: int, *, must: float, aim: float) -> Measure:
    what = f"agent: model call + tool{name}, stored, CPU"
    return Measure(what, "httpx2 loop", "us", "small", must, aim, lambda: agent_turns(history, count))


def many_agents() -> tuple[float, float]:
    _many.append(agent("ours", "many", 500, 3))
    return _many[-1]["per_second"], agent("socket", "many", 500, 3)["per_second"]


def peak_of_many() -> tuple[float, float]:
    """The memory of the run that `many_agents` has just made."""
    return _many[-1]["mb"], 150.0


def cold() -> tuple[float, float]:
    """CPU from the command to the answer, without tools; the database is there, as it is at the second question."""
    with agents.serving() as port, tempfile.TemporaryDirectory() as home:
        own = {"HERMES_HOME": home, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/0/v1"}
        command = [HERMES, "-z", "hello", "--workspace", str(Path(home) / "workspaces" / "bench")]
        (Path(home) / "workspaces" / "bench").mkdir(parents=True)
        ours = harness.cpu_of(command, 9, {**harness.ENVIRONMENT, **own})
    return ours * 1000, harness.cpu_of([sys.executable, "-c", "pass"], 9) * 1000


def searched() -> tuple[float, float]:
    """The slowest of seven kinds of queries among a million messages, the median of 15; measured once."""
    if not _search:
        _search.append(agent("ours", "search", 1_000_000, 1)["ms"])
    return _search[0], 20.0


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
    Measure("hermes -z, cold, no tool, CPU", "bare python", "ms", "small", 20, 12, cold),
    agent_steps("", 10, 30, must=0.8, aim=0.4),
    agent_steps(", 1,000 messages", 1000, 12, must=0.4, aim=0.15),
    agent_steps(", 5,000 messages", 5000, 5, must=0.4, aim=0.15),
    Measure("search among 1,000,000 messages", "20 ms", "ms", "small", 1, 0.5, searched),
    Measure("500 agents, 3 tools a turn", "bare sockets", " turns/s", "large", 1 / 12, 1 / 4, many_agents),
    Measure("500 agents, most memory", "150 MB", "MB", "small", 1, 80 / 150, peak_of_many),
    Measure("idle agent, memory", "40 KB", "KB", "small", 1, 0.5, lambda: (agent("ours", "idle", 300, 1)["kb"], 40.0)),
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
