"""Keys are shown once."""

import pytest
from tests.unit.cli.conftest import Shell


def test_a_new_key_is_alone_on_standard_output(shell: Shell) -> None:
    out = shell("keys", "create", "laptop")
    assert len(out.splitlines()) == len(out.split()) == 1


def test_a_key_is_never_shown_again(shell: Shell) -> None:
    secret = shell("keys", "create", "laptop", "--scope", "jobs:read", "--scope", "events:read").strip()
    (key,) = shell.json("keys", "list")
    assert key["scopes"] == ["events:read", "jobs:read"]
    assert secret.startswith(key["prefix"])
    assert secret not in shell("keys", "list") + shell("keys", "list", "--json")
    assert "digest" not in key
    assert secret.encode() not in shell.database.read_bytes()


@pytest.mark.parametrize("by", ["name", "id", "prefix"])
def test_a_key_is_revoked_by_each_of_its_words(shell: Shell, by: str) -> None:
    shell("keys", "create", "laptop", "--expires", "30d")
    word = shell.json("keys", "list")[0][by]
    assert "until" in shell("keys", "list")
    shell("keys", "revoke", word)
    assert "revoked" in shell("keys", "list")


def test_a_name_that_two_keys_have_is_refused(shell: Shell) -> None:
    shell("keys", "create", "laptop")
    shell("keys", "create", "laptop")
    shell("keys", "revoke", "laptop", code=6)
    shell("keys", "revoke", "desktop", code=5)
    assert {key["revoked_at"] for key in shell.json("keys", "list")} == {None}


@pytest.mark.parametrize("words", [("--expires", "0s"), ("--expires", "never"), ("--scope", "a b"), ("--scope", "")])
def test_a_key_that_could_open_nothing_is_not_made(shell: Shell, words: tuple[str, ...]) -> None:
    shell("keys", "create", "laptop", *words, code=3 if words == ("--expires", "0s") else 2)
    assert shell.json("keys", "list") == []


def test_there_is_a_word_for_there_being_none(shell: Shell) -> None:
    assert "no keys" in shell("keys", "list")
