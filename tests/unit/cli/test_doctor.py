"""What the doctor finds."""

import json
from typing import Any

import pytest
from tests.unit.cli.conftest import Process, Shell


def findings(shell: Shell, name: str, code: int = 0) -> list[dict[str, Any]]:
    return [one for one in json.loads(shell("doctor", "--json", code=code)) if one["name"] == name]


def test_an_empty_machine_is_healthy_and_stays_empty(shell: Shell) -> None:
    out = shell("doctor")
    assert "problem" not in out
    assert all(name in out for name in ("python", "sqlite", "home", "disk", "clock", "database", "ripgrep"))
    assert not shell.home.exists()


def test_each_mistake_in_the_settings_is_named_and_the_rest_is_still_looked_at(shell: Shell) -> None:
    shell("jobs", "put", "db.backup")
    (shell.home / "config.yaml").write_text("jobs:\n  workes: 3\n  lease: soon\n")
    mistakes = findings(shell, "config", code=1)
    assert [one["level"] for one in mistakes] == ["problem", "problem"]
    assert "workers" in mistakes[0]["text"]
    assert findings(shell, "database", code=1)[0]["level"] == "ok"


def test_settings_nobody_can_read_are_a_problem_among_others(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "config.yaml").write_bytes(b"\xff\xfe: [")
    (shell.home / "state.db").write_text("no database, though long enough to be taken for one" * 50)
    out = shell("doctor", code=1)
    assert "config.yaml" in out
    assert "damaged" in out
    assert "clock" in out


def test_a_damaged_database_is_a_problem_that_names_the_backup(shell: Shell) -> None:
    shell("jobs", "put", "db.backup")
    shell("db", "backup")
    shell.database.write_bytes(b"x" * 8192)
    (backup,) = (shell.home / "backups").iterdir()
    (finding,) = findings(shell, "database", code=1)
    assert finding["level"] == "problem"
    assert str(backup) in finding["next_step"]


def test_a_schema_from_the_future_is_a_problem_and_is_left_alone(shell: Shell) -> None:
    shell("jobs", "put", "db.backup")
    shell.sql("UPDATE alembic_version SET version_num = '9999'")
    before = shell.database.read_bytes()
    (finding,) = findings(shell, "database", code=1)
    assert "9999" in finding["text"]
    assert shell.database.read_bytes() == before


def test_jobs_that_nobody_can_do_are_a_problem_and_dead_ones_a_note(shell: Shell) -> None:
    for _ in range(2):
        shell("jobs", "put", "db.backup")
    assert findings(shell, "jobs")[0]["level"] == "ok"
    shell.sql("UPDATE jobs SET state = 'dead' WHERE number = 1")
    assert findings(shell, "jobs")[0]["level"] == "note"
    shell.sql("UPDATE jobs SET kind = 'gone.kind' WHERE number = 2")
    assert "gone.kind" in findings(shell, "jobs", code=1)[1]["text"]


def test_a_running_server_is_named(shell: Shell, server: Process) -> None:
    assert str(server.pid) in findings(shell, "server")[0]["text"]


def test_a_home_that_others_may_look_into_is_a_note(shell: Shell) -> None:
    shell.home.mkdir(mode=0o700)
    assert findings(shell, "home")[0]["level"] == "ok"
    shell.home.chmod(0o755)
    assert findings(shell, "home")[0]["level"] == "note"


def test_a_home_that_is_a_file_is_a_problem(shell: Shell) -> None:
    shell.home.touch()
    assert findings(shell, "home", code=1)[0]["level"] == "problem"
    assert "Traceback" not in shell.err


def test_a_server_that_does_not_answer_is_a_problem_without_its_password(shell: Shell) -> None:
    out = shell("doctor", "--set", "database.url=postgresql://user:hunter22@127.0.0.1:1/none", code=1)
    assert "hunter22" not in out
    assert "problem  database" in out


def test_programs_that_are_missing_are_named_with_what_goes_without_them(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    (finding,) = findings(shell, "ripgrep")
    assert (finding["level"], "install ripgrep" in finding["next_step"]) == ("note", True)


def test_lines_fit_the_screen(shell: Shell) -> None:
    shell("jobs", "put", "db.backup")
    lines = shell("doctor").splitlines()
    assert all(len(line) <= 80 or "/" in line for line in lines)
