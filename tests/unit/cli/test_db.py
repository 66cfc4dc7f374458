"""What an operator sees of the database, also of one that is not sound."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Process, Shell

from hermes.store.evolution import SCHEMA

HELLO = ("event.publish", "--payload", '{"type": "demo.hello"}')


def pages(path: Path) -> bytes:
    return path.read_bytes()


@pytest.fixture
def damaged(shell: Shell) -> Path:
    """A backup, and a database whose middle was overwritten since."""
    for _ in range(20):
        shell("jobs", "put", *HELLO)
    shell("db", "backup")
    content = bytearray(pages(shell.database))
    middle = len(content) // 8
    content[middle:-4096] = b"\x55" * (len(content) - 4096 - middle)
    shell.database.write_bytes(content)
    (backup,) = (shell.home / "backups").iterdir()
    return backup


def test_looking_makes_no_database(shell: Shell) -> None:
    assert "no database yet" in shell("db", "status")
    shell("db", "check", code=5)
    shell("db", "backup", code=5)
    assert not shell.database.exists()


def test_status_counts_the_rows_and_names_the_newest_backup(shell: Shell) -> None:
    shell("jobs", "put", *HELLO)
    shell("db", "backup")
    shell("jobs", "put", *HELLO)
    shell("db", "backup")
    out = shell("db", "status")
    assert ["jobs", "2"] in [line.split() for line in out.splitlines()]
    assert str(max((shell.home / "backups").iterdir())) in out
    assert "not running" in out


def test_status_hides_the_password_of_the_database(shell: Shell) -> None:
    url = "postgresql://user:hunter22@127.0.0.1:1/none"
    out = shell("db", "status", "--set", f"database.url={url}", code=7 if has_postgres() else 3)
    assert "127.0.0.1" in out
    assert "hunter22" not in out + shell.err


def has_postgres() -> bool:
    from importlib.util import find_spec

    return find_spec("psycopg") is not None


def test_status_shows_how_far_behind_a_subscriber_is(shell: Shell) -> None:
    for _ in range(3):
        shell("jobs", "cancel", shell("jobs", "put", *HELLO).strip())
    shell.sql("INSERT INTO cursors (name, position) VALUES ('reader', 1)")
    (row,) = [line.split() for line in shell("db", "status").splitlines() if line.startswith("reader")]
    assert row == ["reader", "1", "2", "0"]


def test_status_names_the_server_that_runs(shell: Shell, server: Process) -> None:
    assert f"process {server.pid}" in shell("db", "status")
    server.stop()
    assert "not running" in shell("db", "status")


def test_after_a_crash_nobody_is_said_to_run(shell: Shell, server: Process) -> None:
    server.close()
    assert "not running" in shell("db", "status")


def test_a_backup_brings_back_what_was_there_and_what_came_later_is_set_aside(shell: Shell, tmp_path: Path) -> None:
    first = shell("jobs", "put", *HELLO).strip()
    shell("db", "backup", str(tmp_path / "copy"))
    later = shell("jobs", "put", *HELLO).strip()
    out = shell("db", "restore", str(tmp_path / "copy"), "--yes")
    assert [job["id"] for job in shell.json("jobs", "list")] == [first]
    (aside,) = shell.home.glob("*.before-restore-*[0-9]Z")
    assert str(aside) in out
    aside.rename(shell.database)
    assert [job["id"] for job in shell.json("jobs", "list")] == [later, first]


def test_a_backup_never_overwrites_a_file(shell: Shell, tmp_path: Path) -> None:
    shell("jobs", "put", *HELLO)
    (tmp_path / "mine").write_text("mine")
    shell("db", "backup", str(tmp_path / "mine"), code=6)
    assert (tmp_path / "mine").read_text() == "mine"


def test_without_a_yes_nothing_is_restored(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shell("jobs", "put", *HELLO)
    shell("db", "backup", str(tmp_path / "copy"))
    shell("jobs", "put", *HELLO)
    assert "1 row" in shell("db", "restore", str(tmp_path / "copy"), code=2)
    assert "--yes" in shell.err
    assert len(shell.json("jobs", "list")) == 2


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x1f\x8b\x08\x00"])
def test_what_is_no_backup_is_not_restored(shell: Shell, tmp_path: Path, content: bytes) -> None:
    shell("jobs", "put", *HELLO)
    (tmp_path / "copy").write_bytes(content)
    shell("db", "restore", str(tmp_path / "copy"), "--yes", code=3)
    shell("db", "restore", str(tmp_path / "none"), "--yes", code=5)
    assert len(shell.json("jobs", "list")) == 1


def test_nothing_is_restored_under_a_running_server(shell: Shell, server: Process, tmp_path: Path) -> None:
    shell("db", "backup", str(tmp_path / "copy"))
    for words in ((), ("--yes",)):
        shell("db", "restore", str(tmp_path / "copy"), *words, code=6)
        assert str(server.pid) in shell.err


def test_a_sound_database_passes_both_checks(shell: Shell) -> None:
    shell("jobs", "cancel", shell("jobs", "put", *HELLO, "--lane", "l").strip())
    shell("db", "check")
    shell("db", "check", "--thorough")


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["DELETE FROM events WHERE seq = 2"], "lacks 1"),
        (["INSERT INTO streams VALUES ('local', 'jobs', 7)"], "forgotten up to 7"),
        (["DELETE FROM events WHERE seq = 1"], "forgotten up to 0"),
        (
            [
                "DROP INDEX jobs_lane_running",
                "UPDATE jobs SET state = 'running', lane = 'l', owner = 'w', lease_until = 1",
            ],
            "run at once",
        ),
        (["UPDATE jobs SET state = 'running' WHERE number = 1"], "without a lease"),
    ],
)
def test_each_broken_promise_is_found(shell: Shell, statements: list[str], said: str) -> None:
    for _ in range(3):
        shell("jobs", "cancel", shell("jobs", "put", *HELLO).strip())
    for statement in statements:
        shell.sql(statement)
    assert said in shell("db", "check", code=1)


def test_events_that_were_pruned_from_the_beginning_are_no_fault(shell: Shell) -> None:
    for _ in range(3):
        shell("jobs", "cancel", shell("jobs", "put", *HELLO).strip())
    shell.sql("DELETE FROM events WHERE seq < 3")
    shell.sql("INSERT INTO streams VALUES ('local', 'jobs', 2)")
    shell("db", "check")
    shell.sql("DELETE FROM events")
    shell("db", "check")


def test_of_a_damaged_file_every_command_says_so_and_names_the_newest_backup(shell: Shell, damaged: Path) -> None:
    before = pages(shell.database)
    for words, code in ((("db", "status"), 3), (("db", "check"), 1), (("up",), 3)):
        out = shell(*words, code=code)
        assert "damaged" in out + shell.err, words
        assert str(damaged) in out + shell.err, words
        assert "Traceback" not in shell.err
    assert pages(shell.database) == before


def test_a_damaged_database_is_replaced_by_its_backup(shell: Shell, damaged: Path) -> None:
    shell("db", "restore", str(damaged), "--yes")
    shell("db", "check", "--thorough")
    assert len(shell.json("jobs", "list")) == 20


def test_a_file_that_is_no_database_at_all_is_named_and_left_alone(shell: Shell) -> None:
    shell.home.mkdir()
    shell.database.write_text("not a database, but a text that is longer than a header would be" * 20)
    before = pages(shell.database)
    for words, code in ((("db", "status"), 3), (("db", "check"), 1), (("jobs", "list"), 3), (("up",), 3)):
        shell(*words, code=code)
        assert "Traceback" not in shell.err
    assert pages(shell.database) == before


def test_a_schema_from_the_future_is_shown_and_never_touched(shell: Shell) -> None:
    shell("jobs", "put", *HELLO)
    shell.sql("UPDATE alembic_version SET version_num = '9999'")
    out = shell("db", "status", code=3)
    assert "9999" in out
    assert ["jobs", "1"] in [line.split() for line in out.splitlines()]
    for words in (("db", "migrate"), ("db", "check"), ("jobs", "list"), ("up",)):
        shell(*words, code=3)
        assert "9999" in shell.err
    shell("db", "backup")
    shell.sql(f"UPDATE alembic_version SET version_num = '{SCHEMA:04d}'")
    assert len(shell.json("jobs", "list")) == 1


def test_migrating_makes_an_empty_database_and_then_has_nothing_to_do(shell: Shell) -> None:
    assert "from schema 0" in shell("db", "migrate")
    assert "already" in shell("db", "migrate")


def test_a_database_of_another_program_is_refused_and_unchanged(shell: Shell) -> None:
    shell.home.mkdir()
    shell.sql("CREATE TABLE theirs (x)")
    before = pages(shell.database)
    for words in (("db", "status"), ("db", "migrate"), ("db", "check"), ("jobs", "list")):
        shell(*words, code=3)
        assert "theirs" in shell.err
    assert pages(shell.database) == before


def test_a_database_in_memory_has_nothing_to_look_at(shell: Shell) -> None:
    for action in ("status", "backup", "check", "migrate"):
        shell("db", action, "--set", "database.url=memory://", code=8)


def test_a_backup_is_made_while_a_server_works(
    shell: Shell, start: Callable[..., Process], server: Process, tmp_path: Path
) -> None:
    shell("cron", "add", "tick", "every 1s", "--publish", "demo.tick")
    tail = start("events", "tail", "--json", "--type", "demo.tick")
    tail.line()
    shell("db", "backup", str(tmp_path / "copy"))
    tail.line()
    shell("db", "check")
