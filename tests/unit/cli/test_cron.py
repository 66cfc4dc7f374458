"""Schedules, as people make them."""

from datetime import datetime, timedelta

import pytest
from tests.unit.cli.conftest import Shell

TICK = ("cron", "add", "tick", "every 10m", "--publish", "demo.tick")


def shown_times(out: str) -> list[datetime]:
    return [datetime.fromisoformat(line.strip()) for line in out.splitlines()[1:]]


def test_a_new_schedule_shows_when_it_is_due_next(shell: Shell) -> None:
    first, second, third = shown_times(shell(*TICK))
    assert second - first == third - second == timedelta(minutes=10)
    (schedule,) = shell.json("cron", "list")
    assert (schedule["name"], schedule["rule"]) == ("tick", "every 10m")
    assert "publish demo.tick" in shell("cron", "list")


def test_a_schedule_for_once_is_due_once(shell: Shell) -> None:
    assert len(shown_times(shell("cron", "add", "later", "30m", "--job", "db.backup"))) == 1


def test_a_rule_may_be_written_without_quotes(shell: Shell) -> None:
    shell("cron", "add", "tick", "every", "10m", "--publish", "demo.tick")
    assert shell.json("cron", "list")[0]["rule"] == "every 10m"


def test_a_rule_is_read_in_the_zone_of_the_settings_unless_it_names_another(shell: Shell) -> None:
    noon = ("0 12 * * *", "--publish", "demo.noon")
    here = shown_times(shell("cron", "add", "here", *noon, "--set", "time.zone=Asia/Tokyo"))
    there = shown_times(shell("cron", "add", "there", *noon, "--zone", "UTC", "--set", "time.zone=Asia/Tokyo"))
    assert {at.hour for at in here} == {12}
    assert {at.hour for at in there} == {21}


def test_a_name_is_taken_once(shell: Shell) -> None:
    shell(*TICK)
    shell(*TICK, code=6)
    assert len(shell.json("cron", "list")) == 1


def test_a_paused_schedule_says_so_until_it_goes_on(shell: Shell) -> None:
    shell(*TICK)
    shell("cron", "pause", "tick")
    assert "paused" in shell("cron", "list")
    shell("cron", "resume", "tick")
    assert "paused" not in shell("cron", "list")


def test_running_a_schedule_puts_its_job_and_leaves_its_time(shell: Shell) -> None:
    shell(*TICK, "--data", '{"n": 1}', "--lane", "l")
    before = shell.json("cron", "list")
    job_id = shell("cron", "run", "tick").strip()
    job = shell.json("jobs", "show", job_id)
    assert job["payload"] == {"type": "demo.tick", "data": {"n": 1}}
    assert job["lane"] == "l"
    assert shell.json("cron", "list") == before


def test_a_removed_schedule_is_gone_and_its_jobs_stay(shell: Shell) -> None:
    shell(*TICK)
    shell("cron", "run", "tick")
    shell("cron", "remove", "tick")
    assert shell.json("cron", "list") == []
    assert len(shell.json("jobs", "list")) == 1


@pytest.mark.parametrize("action", ["pause", "resume", "run", "remove"])
def test_a_schedule_that_is_not_there_is_not_found(shell: Shell, action: str) -> None:
    shell("cron", action, "nothing", code=5)


@pytest.mark.parametrize(
    "rule", ["never", "every 0s", "61 * * * *", "0 0 31 2 *", "2001-01-01T00:00", "* * *", "every -1m"]
)
def test_a_rule_that_never_comes_due_is_refused_in_one_line(shell: Shell, rule: str) -> None:
    shell("cron", "add", "bad", rule, "--publish", "demo.tick", code=3)
    assert len(shell.err.splitlines()) == 1
    assert shell.json("cron", "list") == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--publish", "demo.tick", "--job", "db.backup"), 2),
        ((), 2),
        (("--publish", "demo tick"), 2),
        (("--publish", "demo.*"), 2),
        (("--publish", "text.delta"), 2),
        (("--publish", "demo.tick", "--payload", "{}"), 2),
        (("--job", "db.backup", "--data", "{}"), 2),
        (("--publish", "demo.tick", "--data", "{"), 2),
        (("--publish", "demo.tick", "--missed", "some"), 2),
        (("--publish", "demo.tick", "--zone", "Mars/Base"), 3),
        (("--job", "db.backupp"), 5),
    ],
)
def test_words_that_do_not_go_together_are_refused(shell: Shell, words: tuple[str, ...], code: int) -> None:
    shell("cron", "add", "bad", "every 10m", *words, code=code)
    assert "Traceback" not in shell.err
    assert shell.json("cron", "list") == []
