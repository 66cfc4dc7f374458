"""What holds for every command."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.cli.conftest import COMMAND, Process, Shell

from hermes.cli import main
from hermes.cli.command import COMMANDS
from hermes.config.variables import process_environment

WITH_ACTIONS = {
    "config": ("show", "get", "set", "unset", "explain", "path", "edit", "check"),
    "sessions": (
        "list",
        "show",
        "search",
        "rename",
        "branch",
        "undo",
        "usage",
        "export",
        "delete",
        "prune",
    ),
    "db": ("status", "migrate", "backup", "restore", "check"),
    "jobs": ("list", "show", "retry", "cancel", "dead", "put"),
    "events": ("tail", "show"),
    "cron": ("list", "add", "pause", "resume", "run", "remove"),
    "keys": ("create", "list", "revoke"),
}
HELPS = [(c.name,) for c in COMMANDS] + [(name, action) for name, all_ in WITH_ACTIONS.items() for action in all_]


@pytest.mark.parametrize("words", HELPS)
def test_help_shows_an_example(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*words, "--help"])
    assert stop.value.code == 0
    _, _, example = capsys.readouterr().out.partition("example:\n")
    assert f"hermes {' '.join(words)}" in example


@pytest.mark.parametrize("name", sorted(WITH_ACTIONS))
def test_without_an_action_a_command_shows_its_help_and_fails(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main([name]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert all(action in said.err for action in WITH_ACTIONS[name])


def test_help_imports_nothing_but_the_standard_library_and_no_event_loop() -> None:
    script = (
        "import sys; before = set(sys.modules)\n"
        "from hermes.cli import main\n"
        "try: main([sys.argv[1], '--help'])\n"
        "except SystemExit: pass\n"
        "new = {n: getattr(sys.modules[n], '__file__', None) or '' for n in set(sys.modules) - before}\n"
        "print(*sorted(n for n, f in new.items() if 'site-packages' in f or n in {'asyncio', 'ssl', 'sqlite3'}),"
        " file=sys.stderr)"
    )
    for command in COMMANDS:
        done = subprocess.run([sys.executable, "-c", script, command.name], capture_output=True, text=True, check=True)
        assert done.stderr.strip() == "", command.name


def test_a_home_that_cannot_be_made_is_one_clear_line(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    shell.home = tmp_path / "file" / "home"
    shell("jobs", "list", code=3)
    assert "Traceback" not in shell.err
    assert str(shell.home) in shell.err


@pytest.mark.parametrize("word", ["", " "])
@pytest.mark.parametrize("words", [("config", "path"), ("doctor",), ("jobs", "list"), ("up",)])
def test_an_empty_home_is_not_the_current_folder(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, ...],
    word: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words, "--home", word]) == 3
    assert "--home" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error(shell: Shell, start: Callable[..., Process]) -> None:
    shell("cron", "add", "tick", "every 1h", "--publish", "demo.tick")
    process = start("cron", "list")
    process.hang_up()
    code, _, err = process.finish()
    assert (code, err) == (0, "")


def test_a_terminal_that_knows_only_ascii_gets_escapes_and_no_traceback(tmp_path: Path) -> None:
    for words in (["--help"], ["jobs", "put", "db.backup", "--lane", "界", "--home", str(tmp_path)]):
        done = subprocess.run(
            [*COMMAND, *words],
            env={**process_environment(), "PYTHONIOENCODING": "ascii"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_what_is_only_in_memory_is_no_place_for_appointments(shell: Shell) -> None:
    words = ("cron", "add", "gone", "every 1s", "--publish", "x.y", "--set", "database.url=memory://")
    shell(*words, code=3)
    assert "in memory" in shell.err


def test_what_was_done_and_could_not_be_printed_says_so(tmp_path: Path) -> None:
    command = [*COMMAND, "jobs", "put", "event.publish", "--payload", '{"type": "a.b"}', "--home", str(tmp_path)]
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 7
    assert "it was done" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", ["--help", "jobs list"])
def test_a_closed_or_full_output_brings_no_traceback(tmp_path: Path, words: str) -> None:
    command = " ".join([f"'{COMMAND[0]}' -c '{COMMAND[2]}'", words, "--home", str(tmp_path)] if " " in words else
                       [f"'{COMMAND[0]}' -c '{COMMAND[2]}'", words])  # fmt: skip
    for where in (">&-", ">/dev/full", "| true", "<&-"):
        done = subprocess.run(["sh", "-c", f"{command} {where}"], capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, where


def test_a_payload_that_can_only_fail_is_refused_when_it_is_given(shell: Shell) -> None:
    for words in (
        ("jobs", "put", "event.publish"),
        ("jobs", "put", "event.publish", "--payload", '{"type": "a.b", "stream": "jobs"}'),
        ("jobs", "put", "db.backup", "--payload", '{"file": "x"}'),
        ("cron", "add", "x", "every 1h", "--job", "event.publish"),
    ):
        shell(*words, code=3)
        assert "payload" in shell.err


def test_a_key_that_is_known_is_said(shell: Shell) -> None:
    words = ("jobs", "put", "event.publish", "--payload", '{"type": "a.b"}', "--key", "k")
    first = shell(*words)
    assert shell(*words) == first
    assert "already" in shell.err
