"""Tools are listed, switched and tried from the command line."""

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Shell


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    monkeypatch.chdir(folder)
    return folder


def states(shell: Shell, *words: str) -> dict[str, str]:
    return {one["name"]: one["state"] for one in shell.json("tools", "list", *words)}


def test_every_tool_is_listed_with_its_state(shell: Shell) -> None:
    out = shell("tools", "list")
    assert out.splitlines()[0].split() == ["TOOL", "TOOLSET", "ACCESS", "STATE", "WHAT", "IT", "DOES"]
    assert states(shell)["read_file"] == "on"


def test_tools_and_toolsets_are_switched_off_and_on(shell: Shell) -> None:
    shell("tools", "disable", "file", "todo")
    now = states(shell)
    assert (now["read_file"], now["patch"], now["todo"], now["terminal"]) == ("off", "off", "off", "on")
    shell("tools", "enable", "file")
    assert states(shell)["read_file"] == "on"
    assert "already" in shell("tools", "enable", "file")


def test_one_platform_may_have_fewer(shell: Shell) -> None:
    shell("tools", "disable", "telegram:terminal")
    assert states(shell)["terminal"] == "on"
    assert states(shell, "--platform", "telegram")["terminal"] == "off"


def test_only_what_is_enabled_is_there(shell: Shell) -> None:
    shell("config", "set", "tools.enabled", "file")
    assert {name for name, state in states(shell).items() if state == "on"} == {
        "read_file",
        "write_file",
        "patch",
        "search_files",
    }
    shell("tools", "enable", "todo")
    assert states(shell)["todo"] == "on"


def test_a_name_that_means_nothing_is_told_of(shell: Shell) -> None:
    shell("tools", "disable", "red_file", code=5)
    assert "did you mean 'read_file'" in shell.err


def test_a_tool_is_tried_in_the_present_folder(shell: Shell, work: Path) -> None:
    out = json.loads(shell("tools", "run", "read_file", "--json", '{"path": "a.txt"}'))
    assert out["content"] == "1|one\n2|two"
    shell("tools", "run", "write_file", "--json", '{"path": "b.txt", "content": "x"}')
    assert (work / "b.txt").read_text() == "x"


def test_what_would_need_a_yes_is_refused(shell: Shell, work: Path) -> None:
    for path in ("../outside.txt", "/etc/shadow", str(shell.home / "x")):
        shell("tools", "run", "write_file", "--json", json.dumps({"path": path, "content": "x"}), code=4)
        assert "refused by the rule" in shell.err
    assert not (work.parent / "outside.txt").exists()


def test_a_tool_that_fails_or_is_off_says_so(shell: Shell, work: Path) -> None:
    assert work.is_dir()
    assert "does not exist" in shell("tools", "run", "read_file", "--json", '{"path": "none"}', code=1)
    shell("tools", "disable", "read_file")
    assert "there is no tool" in shell("tools", "run", "read_file", "--json", '{"path": "a.txt"}', code=1)
    shell("tools", "run", "read_file", "--json", "nonsense", code=2)


def test_what_a_tool_changed_is_brought_back(shell: Shell, work: Path) -> None:
    assert "no checkpoints" in shell("checkpoints", "list")
    shell("tools", "run", "write_file", "--json", '{"path": "a.txt", "content": "changed"}')
    (one,) = shell.json("checkpoints", "list")
    assert shell("checkpoints", "diff", one["id"]) == "changed  a.txt\n"
    out = shell("checkpoints", "restore", one["run"])
    assert (work / "a.txt").read_text() == "one\ntwo\n"
    undo = out.split()[-1]
    shell("checkpoints", "restore", undo)
    assert (work / "a.txt").read_text() == "changed"
    shell("checkpoints", "restore", "none", code=5)
