"""Rounds, medians and the table. A figure is always a ratio to its floor, taken inside one round."""

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROUNDS = 5
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}  # noqa: TID251 - passed on


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the table. `good` says whether a small or a large ratio is wanted."""

    name: str
    floor_name: str
    unit: str
    good: Literal["small", "large"]
    must: float | None
    aim: float | None
    take: Callable[[], tuple[float, float]]
    """Returns our figure and the floor's, of one round."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What some rounds of a measure gave."""

    measure: Measure
    rounds: Sequence[tuple[float, float]]

    @property
    def ratios(self) -> list[float]:
        return [ours / floor for ours, floor in self.rounds]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def spread(self) -> float:
        return (max(self.ratios) - min(self.ratios)) / 2 / self.ratio

    def reaches(self, bound: float | None) -> bool:
        if bound is None:
            return False
        return self.ratio <= bound if self.measure.good == "small" else self.ratio >= bound

    def verdict(self) -> str:
        if self.measure.must is None:
            return "-"
        return "aim" if self.reaches(self.measure.aim) else "must" if self.reaches(self.measure.must) else "MISSED"


def run_rounds(measures: Sequence[Measure], rounds: int = ROUNDS) -> list[Figures]:
    """Take every measure once per round, so that noise meets all of them alike."""
    taken: dict[str, list[tuple[float, float]]] = {m.name: [] for m in measures}
    for number in range(rounds):
        for measure in measures:
            if sys.stderr.isatty():
                sys.stderr.write(f"\r\x1b[Kround {number + 1} of {rounds}: {measure.name}")
            taken[measure.name].append(measure.take())
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K")
    return [Figures(m, taken[m.name]) for m in measures]


def table(figures: Sequence[Figures]) -> str:
    """Return the table that is printed."""
    head = ("measure", "ours", "floor", "ratio", "spread", "must", "aim", "reaches")
    rows = [head]
    for f in figures:
        sign = "≤" if f.measure.good == "small" else "≥"
        ours, floor = (statistics.median(r[i] for r in f.rounds) for i in (0, 1))
        rows.append(
            (
                f.measure.name,
                f"{ours:,.4g} {f.measure.unit}",
                f"{floor:,.4g} {f.measure.unit} ({f.measure.floor_name})",
                f"{f.ratio:.2f}x",
                f"± {f.spread:.0%}",
                *(f"{sign} {bound:g}x" if bound else "-" for bound in (f.measure.must, f.measure.aim)),
                f.verdict(),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def cpu_of(command: Sequence[str | Path], times: int, environment: Mapping[str, str] = ENVIRONMENT) -> float:
    """Return the median CPU seconds of a command, children's time included."""
    taken = []
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken)


def worker(*words: str, module: str = "bench.store") -> dict[str, float]:
    """Run a part of the benchmark in a process of its own and return what it measured."""
    done = subprocess.run(
        [sys.executable, "-m", module, *words], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    if done.returncode:
        sys.exit(f"{module} {' '.join(words)} failed:\n{done.stderr}")
    measured: dict[str, float] = json.loads(done.stdout)
    return measured
