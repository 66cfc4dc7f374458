"""The tool `search_files`, with ripgrep on the machine and by ourselves: the same answers."""

import os
import time
from pathlib import Path

import pytest
from tests.unit.tools.conftest import Hand, Person

from hermes.domain.errors import Misconfigured
from hermes.effects.toolset import Tools
from hermes.tools.searching import search_files_tool
from hermes.tools.walking import compiled

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["ripgrep", "ourselves"])
def finder(request: pytest.FixtureRequest, hand: Hand) -> Hand:
    """The same hand; its other search tool is called `walk_files`."""
    made = search_files_tool(has_ripgrep=request.param == "ripgrep")
    hand.toolsets = (Tools("search", (made,)),)
    lay_out(hand.workspace)
    return hand


def lay_out(folder: Path) -> None:
    files = {
        "a.py": "import os\n\ndef alpha():\n    return os.getcwd()\n",
        "sub/b.py": "def beta():\n    pass\n# alpha again\n",
        "sub/c.md": "# Alpha\n\nalpha beta\n",
        ".git/config": "alpha\n",
        ".hidden": "alpha hidden\n",
        "odd name;$(x).txt": "alpha odd\n",
        "binary": "alpha\0",
    }
    for at, (name, text) in enumerate(files.items()):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_700_000_000 + at, 1_700_000_000 + at))


async def test_lines_that_match_are_found_with_their_places(finder: Hand) -> None:
    found = await finder("search_files", pattern=r"def \w+\(", file_glob="*.py")
    matches = sorted((one["path"], one["line"], one["content"]) for one in found["matches"])  # type: ignore[attr-defined]
    assert matches == [("a.py", 3, "def alpha():"), ("sub/b.py", 1, "def beta():")]
    assert "truncated" not in found


async def test_hidden_files_count_and_those_of_git_do_not(finder: Hand) -> None:
    found = await finder("search_files", pattern="alpha", output_mode="files_only")
    assert sorted(found["files"]) == [".hidden", "a.py", "odd name;$(x).txt", "sub/b.py", "sub/c.md"]  # type: ignore[call-overload]


async def test_files_are_found_by_name_the_newest_first(finder: Hand) -> None:
    assert (await finder("search_files", pattern="*.py", target="files"))["files"] == ["sub/b.py", "a.py"]
    assert (await finder("search_files", pattern="b", target="files", path="sub"))["files"] == ["sub/b.py"]
    assert (await finder("search_files", pattern="*.none", target="files"))["files"] == []


@pytest.mark.parametrize("pattern", ["*", "*a*", "a", "**/*"])
async def test_a_page_of_names_is_not_filled_by_git_and_packages(finder: Hand, pattern: str) -> None:
    for name in (".venv/lib/a.py", "node_modules/a/a.js", ".git/objects/aa"):
        path = finder.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("alpha")
    found = await finder("search_files", pattern=pattern, target="files", limit=500)
    assert found["files"]
    assert not [one for one in found["files"] if one.startswith((".git/", ".venv", "node_modules"))]  # type: ignore[attr-defined]


async def test_what_gitignore_names_is_left_out_whatever_is_looked_for(hand: Hand) -> None:
    hand.toolsets = (Tools("search", (search_files_tool(),)),)
    lay_out(hand.workspace)
    (hand.workspace / ".gitignore").write_text("dist\n*.log\n")
    (hand.workspace / "dist").mkdir()
    (hand.workspace / "dist" / "a.py").write_text("alpha")
    (hand.workspace / "b.log").write_text("alpha")
    named = await hand("search_files", pattern="*.py", target="files")
    assert sorted(named["files"]) == ["a.py", "sub/b.py"]  # type: ignore[call-overload]
    assert (await hand("search_files", pattern="b.log", target="files"))["files"] == []
    inside = await hand("search_files", pattern="alpha", file_glob="*.py", output_mode="files_only")
    assert sorted(inside["files"]) == ["a.py", "sub/b.py"]  # type: ignore[call-overload]


async def test_a_name_with_a_newline_is_one_file(finder: Hand) -> None:
    (finder.workspace / "two\nlines.txt").write_text("needle")
    assert (await finder("search_files", pattern="*lines*", target="files"))["files"] == ["two\nlines.txt"]
    found = await finder("search_files", pattern="needle", output_mode="files_only")
    assert found["files"] == ["two\nlines.txt"]


async def test_lines_are_counted(finder: Hand) -> None:
    found = await finder("search_files", pattern="alpha", output_mode="count", path="sub")
    assert found["counts"] == {"sub/b.py": 1, "sub/c.md": 1}


async def test_pages_follow_each_other_without_a_gap(finder: Hand) -> None:
    (finder.workspace / "many.txt").write_text("".join(f"hit {n}\n" for n in range(120)))
    seen, offset = [], 0
    for _ in range(10):
        page = await finder("search_files", pattern="^hit", offset=offset, limit=50)
        seen += [one["content"] for one in page["matches"]]  # type: ignore[attr-defined]
        if "next_offset" not in page:
            break
        offset = int(str(page["next_offset"]))
    assert seen == [f"hit {n}" for n in range(120)]


async def test_lines_around_a_match_are_shown(finder: Hand) -> None:
    found = await finder("search_files", pattern="alpha beta", context=1)
    assert [(one["line"], one.get("context", False)) for one in found["matches"]] == [(2, True), (3, False)]  # type: ignore[attr-defined]


async def test_one_file_can_be_searched(finder: Hand) -> None:
    found = await finder("search_files", pattern="odd", path="odd name;$(x).txt")
    assert [one["line"] for one in found["matches"]] == [1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "*x"])
async def test_a_pattern_that_is_none_is_told_of(finder: Hand, pattern: str) -> None:
    assert "not understood" in str((await finder("search_files", pattern=pattern))["error"])


@pytest.mark.parametrize("pattern", ["'; touch owned; '", "--pre=touch", "$(touch owned)", "-e", "`touch owned`"])
async def test_a_pattern_is_never_a_command(finder: Hand, pattern: str) -> None:
    await finder("search_files", pattern=pattern)
    await finder("search_files", pattern="x", file_glob=pattern)
    await finder("search_files", pattern=pattern, target="files")
    assert not (finder.workspace / "owned").exists()


async def test_what_is_not_there_and_what_is_outside(finder: Hand, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.txt").write_text("alpha\n")
    assert "does not exist; there is sub" in str((await finder("search_files", pattern="x", path="sud"))["error"])
    assert "'outside-read'" in str((await finder("search_files", pattern="x", path="../outside"))["error"])
    finder.approver = Person()
    found = await finder("search_files", pattern="alpha", path="../outside")
    assert [one["path"] for one in found["matches"]] == [str(tmp_path / "outside" / "x.txt")]  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", ["/", "~", "/etc", "/home"])
async def test_a_folder_with_secrets_below_is_not_searched(finder: Hand, path: str) -> None:
    finder.approver = Person()
    assert "refused by the rule" in str((await finder("search_files", pattern="x", path=path))["error"])


async def test_a_link_out_of_the_workspace_is_not_followed(finder: Hand, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("alpha secret\n")
    (finder.workspace / "link").symlink_to(tmp_path / "outside")
    (finder.workspace / "direct").symlink_to(tmp_path / "outside" / "secret.txt")
    assert "secret" not in str(await finder("search_files", pattern="alpha"))


async def test_a_search_leaves_the_shell_where_it_was(finder: Hand) -> None:
    finder.toolsets = (*finder.parts.toolsets,)
    await finder("terminal", command="mkdir -p deep; cd deep")
    await finder("search_files", pattern="alpha")
    assert (await finder("terminal", command="pwd"))["output"] == f"{finder.workspace}/deep\n"


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|aa)+$", "(a*)*", "((ab)*c*)+x", r"(\w+)\1", ".*.*.*.*x"])
def test_patterns_that_could_take_for_ever_are_refused(pattern: str) -> None:
    with pytest.raises(Misconfigured):
        compiled(pattern)


@pytest.mark.parametrize("pattern", [r"def \w+\(.*\):", "(foo|bar)baz", r"^\s*class\s+\w+", "a{2,3}", "(?i)todo"])
def test_ordinary_patterns_are_taken_and_quick(pattern: str) -> None:
    found = compiled(pattern)
    began = time.monotonic()
    found.search("a" * 1_000)
    assert time.monotonic() - began < 2
