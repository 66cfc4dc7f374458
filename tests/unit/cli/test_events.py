"""Following what happens."""

import json
from collections.abc import Callable

import pytest
from tests.unit.cli.conftest import Process, Shell


def happen(shell: Shell, count: int = 1) -> list[str]:
    """Let jobs end, each of which is an event; return their ids."""
    ids = [shell("jobs", "put", "db.backup").strip() for _ in range(count)]
    shell("jobs", "cancel", *ids)
    return ids


def tail(shell: Shell, *words: str) -> list[str]:
    """Return the subjects of the events that are shown."""
    return [json.loads(line)["subject"] for line in shell("events", "tail", "--once", "--json", *words).splitlines()]


def test_a_tail_shows_the_last_in_their_order(shell: Shell) -> None:
    ids = happen(shell, 4)
    assert tail(shell) == ids
    assert tail(shell, "--last", "2") == ids[-2:]
    assert tail(shell, "--since", "0") == ids
    assert tail(shell, "--since", "3") == ids[3:]
    assert tail(shell, "--since", "99") == []


def test_a_tail_without_a_wish_shows_fewer_than_all_of_many(shell: Shell) -> None:
    ids = happen(shell, 15)
    shown = tail(shell)
    assert shown == ids[-len(shown) :]
    assert 0 < len(shown) < len(ids)


def test_the_last_that_are_wanted_are_found_behind_many_that_are_not(shell: Shell) -> None:
    first = happen(shell)
    shell.sql("UPDATE events SET type = 'job.odd'")
    happen(shell, 20)
    assert tail(shell, "--type", "job.odd", "--last", "1") == first


@pytest.mark.parametrize(
    ("words", "is_shown"),
    [
        (("--type", "job.*"), True),
        (("--type", "job.cancelled", "--stream", "jobs"), True),
        (("--type", "job.done"), False),
        (("--type", "job.done", "--type", "job.cancelled"), True),
        (("--stream", "hub:>"), False),
    ],
)
def test_patterns_choose_what_is_shown(shell: Shell, words: tuple[str, ...], is_shown: bool) -> None:
    happen(shell)
    assert bool(tail(shell, *words)) is is_shown


def test_a_tail_sees_everything_that_another_process_writes_without_a_gap(
    shell: Shell, start: Callable[..., Process]
) -> None:
    before = happen(shell, 2)
    process = start("events", "tail", "--json")
    shown = [json.loads(process.line()) for _ in before]
    after = []
    for count in (1, 1, 20, 1):
        new = happen(shell, count)
        shown += [json.loads(process.line()) for _ in new]
        after += new
    assert [event["subject"] for event in shown] == before + after
    assert [event["seq"] for event in shown] == list(range(1, len(shown) + 1))


def test_a_tail_that_is_interrupted_ends_quietly(shell: Shell, start: Callable[..., Process]) -> None:
    import signal

    happen(shell)
    process = start("events", "tail")
    process.line()
    process.send(signal.SIGINT)
    code, _, err = process.finish()
    assert code == 130
    assert err == ""


def test_an_event_is_shown_by_the_beginning_of_its_id(shell: Shell) -> None:
    (job_id,) = happen(shell)
    assert shell.json("events", "show", job_id[:20])["type"] == "job.cancelled"
    assert job_id in shell("events", "show", job_id[:20])
    shell("events", "show", "nobody-has-this", code=5)


def test_a_beginning_that_several_events_share_is_refused(shell: Shell) -> None:
    first, _ = happen(shell, 2)
    shell("events", "show", first[:7], code=6)
    assert first[:18] in shell.err


def test_a_beginning_that_is_too_short_names_no_event_but_a_short_id_that_is_whole_does(shell: Shell) -> None:
    happen(shell, 1)
    event_id = json.loads(shell("events", "tail", "--once", "--json"))["id"]
    shell("events", "show", event_id[:5], code=5)
    assert "at least" in shell.err
    assert event_id in shell("events", "show", event_id[:6])
    shell.sql("UPDATE events SET id = 'e1'")
    assert "e1" in shell("events", "show", "e1")


def test_what_is_stored_cannot_command_the_terminal(shell: Shell) -> None:
    happen(shell)
    shell.sql("""UPDATE events SET type = 'evil' || char(27) || '[2J', data = '{"a": "\\u009b\\u001b"}'""")
    for words in (("tail", "--once"), ("tail", "--once", "--json"), ("tail", "--once", "--type", "evil\x1b[2J")):
        out = shell("events", *words)
        assert "evil" in out
        assert not set("\x1b\x9b") & set(out)


def test_lines_for_people_fit_the_screen(shell: Shell) -> None:
    happen(shell, 3)
    assert all(len(line) <= 80 for line in shell("events", "tail", "--once").splitlines())


@pytest.mark.parametrize(
    "words", [("--since", "-1"), ("--since", "yesterday"), ("--last", "0"), ("--last", "1", "--since", "1")]
)
def test_a_beginning_that_means_nothing_is_refused(shell: Shell, words: tuple[str, ...]) -> None:
    shell("events", "tail", "--once", *words, code=2)


def test_a_tail_that_is_given_a_count_ends_when_it_has_shown_so_many(shell: Shell) -> None:
    ids = happen(shell, 3)
    shown = shell("events", "tail", "--json", "--since", "0", "--count", "2").splitlines()
    assert [json.loads(line)["subject"] for line in shown] == ids[:2]
