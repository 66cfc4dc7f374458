"""What is logged becomes lines of JSON without secrets, whatever happens to the disk."""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hermes.domain.clock import SystemClock
from hermes.telemetry import Logs, Redactor, open_logs

SECRET = "hunter22-hunter22"
LOG = logging.getLogger("hermes.test")


class StoppedClock(SystemClock):
    """A clock that shows one time for ever."""

    at = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at


@contextmanager
def logs_in(directory: Path, **options: Any) -> Iterator[Logs]:  # noqa: ANN401  # those of open_logs
    with open_logs(directory, redactor=Redactor([SECRET]), clock=StoppedClock(), **options) as logs:
        yield logs


def lines_of(directory: Path) -> list[dict[str, Any]]:
    files = sorted(directory.glob("hermes.jsonl*"), key=lambda p: -int(p.suffix[1:]) if p.suffix[1:].isdigit() else 0)
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_a_record_becomes_one_line_with_its_time_level_logger_message_and_fields(tmp_path: Path) -> None:
    with logs_in(tmp_path / "logs"):
        LOG.warning("%d of\n%s", 3, "four", extra={"fields": {"job": "a", "took": 1.5}})
    (line,) = lines_of(tmp_path / "logs")
    assert line.pop("process") == os.getpid()
    assert line == {
        "at": StoppedClock.at.isoformat(),
        "level": "warning",
        "logger": "hermes.test",
        "message": "3 of\nfour",
        "fields": {"job": "a", "took": 1.5},
    }


def test_no_secret_comes_through_by_message_field_exception_or_logger(tmp_path: Path) -> None:
    mirror = io.StringIO()
    with logs_in(tmp_path, mirror=mirror):
        LOG.warning(f"a {SECRET}", extra={"fields": {SECRET: [SECRET]}}, stack_info=True)  # noqa: G004  # as careless code does
        LOG.warning("b %s", SECRET.encode().hex())
        logging.getLogger(f"hermes.{SECRET}").warning("c")
        try:
            int(SECRET)
        except ValueError:
            LOG.exception("d")
    written = (tmp_path / "hermes.jsonl").read_text()
    assert mirror.getvalue() == written
    assert SECRET not in written
    assert SECRET.encode().hex() not in written
    assert ["ValueError" in line.get("exception", "") for line in lines_of(tmp_path)] == [False, False, False, True]


def test_only_the_level_and_above_are_written_and_others_are_heard_from_warning_up(tmp_path: Path) -> None:
    with logs_in(tmp_path, level="debug"):
        LOG.debug("ours")
        logging.getLogger("stranger").info("not heard")
        logging.getLogger("stranger").warning("heard")
    with logs_in(tmp_path, level="error"):
        LOG.warning("not heard")
    assert [line["message"] for line in lines_of(tmp_path)] == ["ours", "heard"]


def test_closing_puts_the_loggers_back(tmp_path: Path) -> None:
    before = (logging.getLogger().level, logging.getLogger("hermes").level, list(logging.getLogger().handlers))
    with logs_in(tmp_path, level="debug") as logs:
        logs.close()
    assert (logging.getLogger().level, logging.getLogger("hermes").level, logging.getLogger().handlers) == before


@pytest.mark.skipif("os.name != 'posix'", reason="Windows has no such permissions")
def test_the_log_is_for_its_owner_only(tmp_path: Path) -> None:
    with logs_in(tmp_path / "logs"):
        LOG.error("x")
    assert (tmp_path / "logs").stat().st_mode & 0o077 == 0
    assert (tmp_path / "logs" / "hermes.jsonl").stat().st_mode & 0o077 == 0


def test_a_full_log_is_renamed_and_only_so_many_are_kept(tmp_path: Path) -> None:
    with logs_in(tmp_path, max_bytes=1000, backups=2):
        for number in range(100):
            LOG.error("%03d", number)
    files = sorted(p.name for p in tmp_path.iterdir() if not p.name.startswith("."))
    assert files == ["hermes.jsonl", "hermes.jsonl.1", "hermes.jsonl.2"]
    assert all((tmp_path / name).stat().st_size <= 1000 for name in files)
    messages = [line["message"] for line in lines_of(tmp_path)]
    assert messages == [f"{number:03d}" for number in range(100)][-len(messages) :]


WRITER = """
import logging, sys
from pathlib import Path
from hermes.domain.clock import SystemClock
from hermes.telemetry import Redactor, open_logs
with open_logs(Path(sys.argv[1]), redactor=Redactor(), clock=SystemClock(), max_bytes=20_000, backups=500) as logs:
    for number in range(500):
        logging.getLogger("hermes").error("%s %d", sys.argv[2], number, extra={"fields": {"pad": "x" * 200}})
    sys.exit(logs.lost)
"""


def test_processes_that_share_a_log_lose_no_line_while_it_is_rotated(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in "abc"]
    assert [writer.wait(timeout=50) for writer in writers] == [0, 0, 0]
    messages = [line["message"] for line in lines_of(tmp_path)]
    assert len(list(tmp_path.glob("hermes.jsonl.*"))) > 5
    assert sorted(messages) == sorted(f"{name} {number}" for name in "abc" for number in range(500))


@pytest.mark.skipif("not os.path.exists('/dev/full')", reason="needs a device that is always full")
def test_a_full_disk_is_said_once_and_does_not_stop_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "hermes.jsonl"
    log.symlink_to("/dev/full")
    with logs_in(tmp_path) as logs:
        LOG.error("lost")
        LOG.error("lost too")
        assert logs.lost == 2
        assert capsys.readouterr().err.count("\n") == 1
        log.unlink()
        LOG.error("kept")
    assert [line["message"] for line in lines_of(tmp_path)] == ["2 records could not be written here", "kept"]


def test_a_folder_that_cannot_be_made_does_not_stop_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").write_text("in the way")
    with logs_in(tmp_path / "logs") as logs:
        LOG.error("lost")
        assert logs.lost == 1
    assert str(tmp_path / "logs" / "hermes.jsonl") in capsys.readouterr().err


def test_a_log_that_was_taken_away_is_begun_anew(tmp_path: Path) -> None:
    with logs_in(tmp_path):
        LOG.error("before")
        (tmp_path / "hermes.jsonl").unlink()
        LOG.error("after")
    assert [line["message"] for line in lines_of(tmp_path)] == ["after"]


STRANGE = """
import logging, sys
from pathlib import Path
from hermes.domain.clock import SystemClock
from hermes.telemetry import Redactor, open_logs

class Hostile:
    def __repr__(self):
        raise RuntimeError("no")

log = logging.getLogger("hermes")
with open_logs(Path(sys.argv[1]), redactor=Redactor(["hunter22"]), clock=SystemClock(), mirror=sys.stderr) as logs:
    for strange in ("hunter22", Hostile(), chr(0xDC80), 3):
        log.error("%d of %s", strange)
        log.error("%s", strange, extra={"fields": strange})
    sys.exit(logs.lost)
"""


def test_no_record_is_too_strange_to_be_logged(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", STRANGE, str(tmp_path)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(lines_of(tmp_path)) == 8
    assert "Traceback" not in done.stderr
    assert "hunter22" not in done.stderr


def test_a_mirror_that_is_gone_does_not_stop_work(tmp_path: Path) -> None:
    mirror = io.StringIO()
    mirror.close()
    with logs_in(tmp_path, mirror=mirror):
        LOG.error("kept")
    assert len(lines_of(tmp_path)) == 1
