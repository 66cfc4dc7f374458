"""A shell in a home of its own, and a server in a process of its own."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hermes.cli import main
from hermes.config import SCHEMA
from hermes.config.variables import process_environment
from hermes.store.sqlite import driver

SECONDS = 20.0
COMMAND = (sys.executable, "-c", "import sys; from hermes.cli import main; sys.exit(main())")


@dataclass
class Shell:
    """Runs `hermes …` in one home, in this process."""

    home: Path
    capsys: pytest.CaptureFixture[str]
    err: str = ""

    def __call__(self, *words: str, code: int = 0) -> str:
        """Return what a command printed."""
        try:
            given = main([*words, "--home", str(self.home)])
        except SystemExit as stop:
            given = int(str(stop.code))
        out, self.err = self.capsys.readouterr()
        assert given == code, f"{words} gave {given}: {self.err}"
        return out

    def lines(self, *words: str, code: int = 0) -> list[str]:
        """Return the lines a command printed, save the headings."""
        return self(*words, code=code).splitlines()[1:]

    def json(self, *words: str) -> Any:  # noqa: ANN401 - a document
        """Return the document a command printed."""
        return json.loads(self(*words, "--json"))

    @property
    def database(self) -> Path:
        return self.home / "state.db"

    def sql(self, statement: str) -> None:
        """Change the database behind everybody's back."""
        with closing(driver.connect(self.database)) as connection:
            connection.execute(statement)
            connection.commit()


def _heed_interrupts() -> None:
    """Whoever runs the tests in the background of a script has SIGINT ignored, and children inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Process:
    """One `hermes …` beside this process; killed at the end by its id if it still runs."""

    def __init__(self, home: Path, *words: str, python_path: Path | None = None) -> None:
        there = [str(python_path)] if python_path is not None else []
        path = os.pathsep.join([*there, *filter(None, [process_environment().get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [*COMMAND, *words],
            env={**process_environment(), "HERMES_HOME": str(home), "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=_heed_interrupts,  # noqa: PLW1509 - it takes no lock
        )
        self.pid = self._process.pid
        self._rest = {"stdout": b"", "stderr": b""}

    def line(self) -> str:
        """Wait for the next line on standard output."""
        return self._line("stdout")

    def err_line(self) -> str:
        """Wait for the next line on standard error."""
        return self._line("stderr")

    def _line(self, name: str) -> str:
        pipe = getattr(self._process, name)
        give_up_at = time.monotonic() + SECONDS
        while b"\n" not in self._rest[name]:
            ready, _, _ = select.select([pipe], [], [], max(0.0, give_up_at - time.monotonic()))
            chunk = os.read(pipe.fileno(), 65536) if ready else b""
            assert chunk, f"no line came; {self.finish()}"
            self._rest[name] += chunk
        line, _, self._rest[name] = self._rest[name].partition(b"\n")
        return line.decode()

    def hang_up(self) -> None:
        """Read nothing more from standard output."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process.stdout = None

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def finish(self) -> tuple[int, str, str]:
        """Wait for the end; return the exit code and what else was printed."""
        try:
            out, err = self._process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            out, err = self._process.communicate()
        return (
            self._process.returncode,
            (self._rest["stdout"] + (out or b"")).decode(),
            (self._rest["stderr"] + err).decode(),
        )

    def stop(self) -> tuple[int, str, str]:
        """End it as a supervisor does."""
        self.send(signal.SIGTERM)
        return self.finish()

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a terminal of that width; a program that reads us gets lines as long as they are."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name in ["HERMES_HOME", *(name for one in SCHEMA.settings.values() for name in one.names)]:
        monkeypatch.delenv(name, raising=False)
    return Shell(tmp_path / "home", capsys)


@pytest.fixture
def start(shell: Shell) -> Iterator[Callable[..., Process]]:
    """Start commands in the home of the shell."""
    started: list[Process] = []

    def begin(*words: str, python_path: Path | None = None) -> Process:
        started.append(Process(shell.home, *words, python_path=python_path))
        return started[-1]

    yield begin
    for process in started:
        process.close()


@pytest.fixture
def server(start: Callable[..., Process]) -> Process:
    """A server that is ready."""
    process = start("up")
    assert "up" in process.line()
    return process


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds; fail when it does not in time."""
    give_up_at = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < give_up_at, "it did not come true in time"
        time.sleep(0.02)
