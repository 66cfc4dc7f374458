"""What a line orders, and which command is meant."""

import pytest

from hermes.commands import CATALOGUE, CommandDef, Parsed, Port, Registry, parse
from hermes.domain.errors import Conflict, NotFound


async def nothing(port: Port, rest: str) -> None:
    """Do nothing."""


def command(name: str, *aliases: str) -> CommandDef:
    return CommandDef(name=name, act=nothing, summary="does nothing", category="info", aliases=aliases)


@pytest.mark.parametrize(
    ("line", "parsed"),
    [
        ("/new", Parsed("new", "")),
        ("  /Title  my  words ", Parsed("title", "my  words")),
        ("/reload_skills now", Parsed("reload-skills", "now")),
        ("/queue two\nlines", Parsed("queue", "two\nlines")),
        ("/usr/bin is a folder", None),
        ("/", None),
        ("//new", None),
        ("/1", None),
        ("say /new", None),
        ("", None),
    ],
)
def test_a_slash_and_a_word_order_something_and_a_path_does_not(line: str, parsed: Parsed | None) -> None:
    assert parse(line) == parsed


def test_a_beginning_means_the_one_command_that_begins_so() -> None:
    registry = Registry([command("status"), command("stop", "halt"), command("save")])
    assert registry.find("stat").name == "status"
    assert registry.find("ha").name == "stop"
    with pytest.raises(Conflict, match="/status, /stop"):
        registry.find("st")
    with pytest.raises(NotFound, match="did you mean /status"):
        registry.find("statsu")


def test_a_whole_name_wins_over_beginnings() -> None:
    registry = Registry([command("new"), command("news")])
    assert registry.find("new").name == "new"


def test_two_commands_of_one_name_are_refused() -> None:
    with pytest.raises(Conflict, match="halt"):
        Registry([command("stop", "halt"), command("halt")])


def test_a_chat_has_no_commands_that_need_a_terminal() -> None:
    chat = {one.name for one in CATALOGUE.at("chat").commands}
    assert {"new", "undo", "stop", "help"} <= chat
    assert chat.isdisjoint({"skin", "copy", "clear", "save", "config"})


def test_the_names_people_know_are_there() -> None:
    known = {"reset": "new", "fork": "branch", "compact": "compress", "q": "queue", "exit": "quit", "commands": "help"}
    assert {alias: CATALOGUE.find(alias).name for alias in known} == known
