"""What a person may get wrong, and what may be wrong around them: one line that says why, and nothing lost."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.cli.conftest import COMMAND, Shell
from tests.unit.cli.test_chat import model  # noqa: F401 - a fixture

from hermes.domain.model import ContextOverflow
from hermes.testing.bad_status import STATUS
from hermes.testing.model_server import ModelServer
from hermes.testing.turn import Fail, call

LONG = 9_500_000


def one_line(shell: Shell) -> str:
    (line,) = shell.err.splitlines()
    return line


def test_an_unknown_session_is_named_with_where_to_look(shell: Shell, model: ModelServer) -> None:  # noqa: F811 - the fixture
    shell("-z", "hi", "-r", "nobody", code=5)
    assert "'nobody'" in one_line(shell)
    assert "sessions list" in one_line(shell)


def test_an_unknown_provider_and_an_unknown_model_are_told_apart(shell: Shell, model: ModelServer) -> None:  # noqa: F811
    shell("-z", "hi", "--set", "model.provider=nosuch", code=5)
    assert "nosuch" in one_line(shell)
    model.behaviours.append(STATUS["404, model"][0])
    shell("-z", "hi", "-m", "openai/gpt-nonsuch", code=5)
    assert "gpt-nonsuch" in one_line(shell)


def test_a_large_a_binary_and_an_odd_file_are_told_of_and_the_run_goes_on(
    shell: Shell,
    model: ModelServer,  # noqa: F811
) -> None:
    with Path("large").open("wb") as file:
        file.truncate(2_200_000_000)
    Path("binary").write_bytes(bytes(range(256)) * 40)
    Path("odd.txt").write_bytes(b"caf\xe9 \xff\n")
    model.add(
        call("read_file", path="large"), call("read_file", path="binary"), call("read_file", path="odd.txt"), "ok"
    )
    assert shell("chat", "-q", "read them") == "ok\n"
    results = [m["content"] for m in model.asked[-1].body["messages"] if m["role"] == "tool"]
    assert ["error" in json.loads(text) for text in results] == [True, True, False]
    assert "caf\ufffd" in json.loads(results[2])["content"]


def test_a_prompt_of_ten_megabytes_is_kept_and_what_the_model_says_of_it_told(
    shell: Shell,
    model: ModelServer,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / "input").write_bytes(b"word " * (LONG // 5))
    model.add(Fail(ContextOverflow("too long")))
    with io.TextIOWrapper((tmp_path / "input").open("rb")) as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        shell("-z", "-", code=9)
    assert len(one_line(shell)) < 500
    (session,) = shell.json("sessions", "list")
    assert session["message_count"] == 1
    model.add("short")
    monkeypatch.setattr(sys, "stdin", None)
    assert shell("-z", "hello") == "short\n"


def test_more_than_can_be_read_is_refused_before_anything_is_done(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "input").write_bytes(b"x" * 10_000_100)
    with io.TextIOWrapper((tmp_path / "input").open("rb")) as piped:
        monkeypatch.setattr(sys, "stdin", piped)
        shell("-z", "look", code=3)
    assert "save it to a file" in one_line(shell)


def test_arguments_that_are_no_utf_8_are_a_line(shell: Shell, tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "-z", b"caf\xe9", "--home", str(shell.home)],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=50,
    )
    assert done.returncode == 2
    assert b"UTF-8" in done.stderr
    assert b"Traceback" not in done.stderr


def test_no_network_is_one_line_and_the_question_is_kept(
    shell: Shell,
    model: ModelServer,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    shell("-z", "hi", "--set", "model.attempts=1", code=7)
    assert "127.0.0.1:9" in one_line(shell)
    assert shell.json("sessions", "list")[0]["message_count"] == 1


def test_a_refused_key_names_the_variable(
    shell: Shell,
    model: ModelServer,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-and-secret")
    shell("-z", "hi", code=4)
    assert "OPENAI_API_KEY" in one_line(shell)
    assert "wrong-and-secret" not in shell.err


MOUNT = 'mount -t tmpfs -o size=2m tmpfs "$1" && shift && exec "$@"'
FULL = """
head -c 3000000 /dev/zero > "$HERMES_HOME/ballast" 2>/dev/null
"$@"; echo "code $?"
rm "$HERMES_HOME/ballast"
"""
READ_ONLY = """
"$@" >/dev/null; mount -o remount,ro "$HERMES_HOME"; "$@"; echo "code $?"
"""


@pytest.mark.parametrize(("script", "word"), [(FULL, "full"), (READ_ONLY, "read")], ids=["full", "read-only"])
def test_a_home_that_cannot_be_written_is_one_line(
    model: ModelServer,  # noqa: F811
    tmp_path: Path,
    script: str,
    word: str,
) -> None:
    home = tmp_path / "disk"
    home.mkdir()
    environment = {**os.environ, "HERMES_HOME": str(home)}  # noqa: TID251 - handed on
    model.add("hi", "hi")
    words = ["unshare", "-rm", "sh", "-c", MOUNT, "sh", str(home), "sh", "-c", script, "sh", *COMMAND, "-z", "hello"]
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, timeout=50, stdin=subprocess.DEVNULL
    )
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip("this system lets us mount no small disk")
    assert done.stdout.splitlines()[-1] in {"code 7", "code 3", "code 1"}, (done.stdout, done.stderr)
    lines = done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert len(lines) == 1, lines
    assert word in lines[0].lower()
