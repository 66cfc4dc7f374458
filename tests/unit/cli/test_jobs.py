"""What an operator can do with jobs."""

import pytest
from tests.unit.cli.conftest import Shell

HELLO = ("event.publish", "--payload", '{"type": "demo.hello"}')


def test_a_job_that_was_put_is_listed_and_shown_with_all_it_was_given(shell: Shell) -> None:
    job_id = shell("jobs", "put", *HELLO, "--lane", "mail", "--key", "k", "--priority", "3", "--in", "10m").strip()
    (row,) = shell.lines("jobs", "list")
    assert row.split()[0] in job_id
    (job,) = shell.json("jobs", "list")
    assert job["id"] == job_id
    assert (job["lane"], job["dedupe_key"], job["priority"]) == ("mail", "k", 3)
    assert job["run_at"] > job["created_at"]
    shown = shell("jobs", "show", job_id)
    assert job_id in shown
    assert '"demo.hello"' in shown


def test_a_job_put_again_under_its_key_is_the_one_that_is_there(shell: Shell) -> None:
    assert shell("jobs", "put", *HELLO, "--key", "k") == shell("jobs", "put", *HELLO, "--key", "k")
    assert len(shell.json("jobs", "list")) == 1


def test_the_id_in_the_list_is_enough_to_name_the_job(shell: Shell) -> None:
    shell("jobs", "put", *HELLO)
    (row,) = shell.lines("jobs", "list")
    assert shell.json("jobs", "show", row.split()[0])["attempts"] == []


def test_a_beginning_that_several_ids_share_is_refused_and_names_them(shell: Shell) -> None:
    first, second = (shell("jobs", "put", *HELLO).strip() for _ in range(2))
    shell("jobs", "cancel", first[:7], code=6)
    assert first[:18] in shell.err
    assert second[:18] in shell.err
    assert {job["state"] for job in shell.json("jobs", "list")} == {"queued"}


@pytest.mark.parametrize("word", ["abc", "abcdef", "' OR 1=1 --", "%%%%%%%", "______"])
def test_an_id_that_nobody_has_is_not_found(shell: Shell, word: str) -> None:
    shell("jobs", "put", *HELLO)
    shell("jobs", "show", word, code=5)


def test_a_cancelled_job_can_be_put_back_in_line_but_not_cancelled_twice(shell: Shell) -> None:
    job_id = shell("jobs", "put", *HELLO).strip()
    shell("jobs", "cancel", job_id)
    shell("jobs", "cancel", job_id, code=6)
    shell("jobs", "retry", job_id)
    assert shell.json("jobs", "show", job_id)["state"] == "queued"


def test_one_job_that_is_refused_does_not_keep_the_others_from_it(shell: Shell) -> None:
    over, waiting = (shell("jobs", "put", *HELLO).strip() for _ in range(2))
    shell("jobs", "cancel", over)
    assert waiting in shell("jobs", "cancel", over, waiting, code=6)
    assert shell.json("jobs", "list", "--state", "cancelled")[0]["id"] == waiting


def test_when_one_id_is_wrong_nothing_is_done_at_all(shell: Shell) -> None:
    job_id = shell("jobs", "put", *HELLO).strip()
    shell("jobs", "cancel", job_id, "nobody-has-this", code=5)
    assert shell.json("jobs", "show", job_id)["state"] == "queued"


def test_a_kind_that_nobody_can_do_is_refused_with_the_nearest(shell: Shell) -> None:
    shell("jobs", "put", "event.publsh", code=5)
    assert "event.publish" in shell.err
    assert shell.json("jobs", "list") == []


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ('{"type": demo}', "line 1 column 10"),
        ('{"a": 1,\n "b" 2}', "line 2 column 6"),
        ("[1]", "object"),
        ("", "line 1 column 1"),
        ('{"a": NaN}', "NaN"),
        ("[" * 100_000, "deep"),
        ('{"a": ' + "9" * 5000 + "}", "digits"),
        ('{"a": ' + "9" * 20 + "}", "64 bits"),
        ('{"a": 1e999}', "too large"),
    ],
)
def test_bad_json_is_one_clear_line(shell: Shell, payload: str, said: str) -> None:
    shell("jobs", "put", "event.publish", "--payload", payload, code=2)
    assert said in shell.err.splitlines()[-1]


def test_json_that_cannot_be_stored_is_refused(shell: Shell) -> None:
    shell("jobs", "put", "event.publish", "--payload", '{"a": "\\ud800"}', code=3)
    assert shell.json("jobs", "list") == []


@pytest.mark.parametrize(
    "words",
    [
        ("--in", "soon"),
        ("--in", "9999999d"),
        ("--priority", "high"),
        ("--priority", "9" * 30),
        ("--lane", ""),
        ("--lane", "\udcff"),
    ],
)
def test_a_word_that_means_nothing_is_refused_before_anything_is_opened(shell: Shell, words: tuple[str, ...]) -> None:
    shell("jobs", "put", *HELLO, *words, code=2)
    assert not shell.home.exists()


def test_a_list_that_is_cut_says_so_and_a_filter_leaves_the_rest_out(shell: Shell) -> None:
    for _ in range(3):
        shell("jobs", "put", *HELLO)
    shell("jobs", "put", "db.backup")
    assert "more" in shell("jobs", "list", "--limit", "2")
    assert "more" not in shell("jobs", "list", "--limit", "4")
    assert [job["kind"] for job in shell.json("jobs", "list", "--kind", "db.backup")] == ["db.backup"]
    assert shell.json("jobs", "dead") == []


def test_what_is_stored_cannot_command_the_terminal_and_fits_it(shell: Shell) -> None:
    evil = "\x1b[2J\u202e\x9b" + "界" * 60
    job_id = shell("jobs", "put", "db.backup", "--lane", evil).strip()
    for out in (shell("jobs", "list"), shell("jobs", "show", job_id), shell("jobs", "list", "--json")):
        assert not set("\x1b\u202e\x9b") & set(out)
    assert shell.json("jobs", "list")[0]["lane"] == evil
    assert all(len(line) + line.count("界") <= 80 for line in shell("jobs", "list").splitlines())
