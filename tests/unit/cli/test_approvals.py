"""A yes for more than once can be seen and taken back; what was written over outside the workspace can be had again."""

import os
import pty
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from tests.unit.cli.conftest import Shell

from hermes.cli.approving import UNSAID, Terminal, question
from hermes.domain.approval import Approval
from hermes.domain.clock import SystemClock
from hermes.domain.session import RunId, SessionId
from hermes.machines.checkpoint import Checkpoints

ASKED = Approval(
    "1", SessionId("s"), RunId("r"), "e", "write /data/a", "write: /data/a", "outside-write", datetime.now(UTC)
)


@contextmanager
def at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Put a terminal in the place of standard input, and give its other end."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r") as stdin, monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", stdin)
        yield ours
    os.close(ours)


def typed(ours: int, *keys: tuple[float, str]) -> threading.Thread:
    """Type some keys, each so many seconds after the beginning."""

    def type_them() -> None:
        began = time.monotonic()
        for after, text in keys:
            time.sleep(max(0.0, began + after - time.monotonic()))
            with suppress(OSError):
                os.write(ours, text.encode())

    thread = threading.Thread(target=type_them)
    thread.start()
    return thread


def test_a_key_that_comes_too_soon_after_a_question_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with at_a_terminal(monkeypatch) as ours:
        thread = typed(ours, (0.2, "a\n"), (1.2, "no\n"))
        said = anyio.run(Terminal().decide, ASKED)
        thread.join()
    assert (said.state, said.scope) == ("denied", "once")


def test_a_question_that_nobody_waits_for_any_more_is_withdrawn_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def ask() -> None:
        with anyio.move_on_after(0.1):
            await Terminal().decide(ASKED)

    with at_a_terminal(monkeypatch):
        anyio.run(ask)
    assert "the command gave up waiting" in capsys.readouterr().err


def test_nothing_typed_is_an_answer_and_not_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with at_a_terminal(monkeypatch) as ours:
        thread = typed(ours, (1.0, "\n"))
        assert anyio.run(Terminal().answer, "which?") == UNSAID
        thread.join()


def test_a_question_says_what_a_wider_yes_would_cover() -> None:
    assert "always would mean: writing /data/a again" in question(ASKED)


def test_a_question_without_a_wider_yes_offers_none() -> None:
    from dataclasses import replace

    shown = question(replace(ASKED, pattern=""))
    assert "asked every time" in shown
    assert "ession" not in shown


def given(shell: Shell, name: str, scope: str, pattern: str) -> None:
    shell("approvals", "list")
    shell.sql(
        "INSERT INTO approvals (tenant, id, session, run, effect, pattern, shown, rule, state, scope, created_at) "
        f"VALUES ('local', '{name}', 's', 'r', 'e', '{pattern}', 'write: x', 'outside-write', 'given', '{scope}', 1)"
    )


def test_a_yes_is_listed_in_words_and_taken_back_by_how_its_id_begins(shell: Shell) -> None:
    given(shell, "0194f1aaaa", "always", "write /data/a")
    given(shell, "0194f1bbbb", "session", "write /data/a")
    given(shell, "0194f1cccc", "once", "write /data/b")
    (first, second) = shell.lines("approvals", "list")
    assert "always" in first + second
    assert "writing /data/a again" in first
    assert "/data/b" not in shell("approvals", "list")
    assert len(shell.lines("approvals", "list", "--all")) == 3
    shell("approvals", "revoke", "0194f1", code=6)
    shell("approvals", "revoke", "0194f1cc", code=5)
    assert "2 yeses" in shell("approvals", "revoke", "0194f1aa")
    assert shell.json("approvals", "list") == []
    shell("approvals", "revoke", "0194f1aa", code=5)


def test_a_file_outside_that_was_written_over_is_listed_and_comes_back(shell: Shell, tmp_path: Path) -> None:
    work, notes = tmp_path / "work", tmp_path / "notes.txt"
    work.mkdir()
    notes.write_text("mine")
    notes.chmod(0o640)
    kept = Checkpoints(shell.home, SystemClock())
    made = anyio.run(kept.keep_outside, work, "r", notes)
    assert made is not None
    notes.write_text("the model's")
    place = ("--workspace", str(work))
    assert str(notes) in shell("checkpoints", "list", *place)
    back = shell("checkpoints", "restore", made.id, *place)
    assert (notes.read_text(), notes.stat().st_mode & 0o777) == ("mine", 0o640)
    shell("checkpoints", "restore", back.split()[-1], *place)
    assert notes.read_text() == "the model's"
