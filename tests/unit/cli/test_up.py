"""Serving, and stopping in order."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Process, Shell, until

SLOW = """
from pathlib import Path
import anyio
from hermes.jobs.kind import Done, JobKind

async def handle(assignment):
    folder = Path(assignment.job.payload["folder"])
    (folder / "began").touch()
    while not (folder / "go").exists():
        await anyio.sleep(0.01)
    return Done({"went": True})

kind = JobKind("test.slow", handle)
"""


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """An installed distribution that offers a job which lasts until a file `go` is there."""
    folder = tmp_path / "parts"
    about = folder / "slow_part-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "slow_part.py").write_text(SLOW)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: slow-part\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[hermes.jobs]\ntest.slow = slow_part:kind\n")
    return folder


@pytest.fixture
def busy(shell: Shell, start: Callable[..., Process], parts: Path, tmp_path: Path) -> Process:
    """A server in the middle of a job that does not end by itself."""
    put = start("jobs", "put", "test.slow", "--payload", f'{{"folder": "{tmp_path}"}}', python_path=parts)
    assert put.finish()[0] == 0
    server = start("up", python_path=parts)
    server.line()
    until((tmp_path / "began").exists)
    return server


def test_a_server_says_when_it_is_ready_and_when_it_has_stopped(shell: Shell, start: Callable[..., Process]) -> None:
    server = start("up", "--set", "jobs.workers=3")
    ready = server.line()
    assert all(word in ready for word in (str(shell.database), "3 job slots", str(server.pid)))
    code, out, _ = server.stop()
    assert code == 0
    assert len(out.splitlines()) == 1
    assert "stopped" in out


def test_the_first_signal_lets_running_jobs_end(shell: Shell, busy: Process, tmp_path: Path) -> None:
    waiting = shell("jobs", "put", "event.publish", "--payload", '{"type": "late"}', "--in", "1h").strip()
    busy.send(signal.SIGTERM)
    log = shell.home / "logs" / "hermes.jsonl"
    assert log.exists()
    assert [job["state"] for job in shell.json("jobs", "list", "--kind", "test.slow")] == ["running"]
    (tmp_path / "go").touch()
    code, _, err = busy.finish()
    assert code == 0
    assert "Traceback" not in err
    (job,) = shell.json("jobs", "list", "--kind", "test.slow")
    assert (job["state"], job["result"]) == ("done", {"went": True})
    assert shell.json("jobs", "show", waiting)["state"] == "queued"


def test_the_second_signal_stops_at_once_and_gives_the_job_back(shell: Shell, busy: Process) -> None:
    busy.send(signal.SIGINT)
    assert busy.err_line()
    busy.send(signal.SIGINT)
    code, out, err = busy.finish()
    assert code == 130
    assert "stopped" in out
    assert "Traceback" not in err
    assert [job["state"] for job in shell.json("jobs", "list")] == ["queued"]
    assert "not running" in shell("db", "status")


def test_of_two_servers_on_one_file_the_second_names_the_first_and_gives_way(
    shell: Shell, server: Process, start: Callable[..., Process]
) -> None:
    code, out, err = start("up").finish()
    assert code == 6
    assert out == ""
    assert len(err.splitlines()) == 1
    assert f"process {server.pid}" in err
    assert server.stop()[0] == 0


def test_a_schedule_publishes_and_a_tail_in_another_process_shows_it(
    shell: Shell, start: Callable[..., Process]
) -> None:
    shell("cron", "add", "tick", "every", "1s", "--publish", "demo.tick", "--data", '{"n": 1}')
    server = start("up")
    server.line()
    tail = start("events", "tail", "--type", "demo.tick")
    assert "demo.tick" in tail.line()
    assert "demo.tick" in tail.line()
    server.stop()
    assert "demo.tick" in shell("events", "tail", "--once", "--last", "1", "--type", "demo.*")


def test_the_log_of_a_server_holds_no_secret_of_the_settings(shell: Shell, start: Callable[..., Process]) -> None:
    server = start("up", "--set", "redis.url=redis://:hunter22@127.0.0.1/0")
    server.line()
    server.stop()
    assert "hunter22" not in (shell.home / "logs" / "hermes.jsonl").read_text()


def test_a_broken_part_keeps_the_server_from_starting_and_is_named(start: Callable[..., Process], parts: Path) -> None:
    (parts / "slow_part.py").write_text("raise ValueError('broken')")
    code, _, err = start("up", python_path=parts).finish()
    assert code == 3
    assert "slow-part" in err
    assert "Traceback" not in err
