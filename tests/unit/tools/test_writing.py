"""The tools `write_file` and `patch`."""

from pathlib import Path

import pytest
from tests.unit.tools.conftest import Hand, Person

from hermes.domain.approval import Approval, Decision

pytestmark = pytest.mark.anyio


async def test_a_new_file_is_written_with_its_folders(hand: Hand) -> None:
    done = await hand("write_file", path="src/deep/a.txt", content="hé\n")
    assert done == {"success": True, "path": "src/deep/a.txt", "bytes": 4, "created": True}
    assert (hand.workspace / "src/deep/a.txt").read_text() == "hé\n"


async def test_what_was_there_is_shown_as_a_diff(hand: Hand) -> None:
    (hand.workspace / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 100)))
    done = await hand(
        "write_file", path="a.txt", content="".join(f"{n}\n" for n in range(1, 100)).replace("50\n", "fifty\n")
    )
    assert "-50\n+fifty\n" in str(done["diff"])
    assert str(done["diff"]).count("\n") < 15


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.py", "def f(:\n", "line 1"),
        ("a.json", '{"a": 1,}', "line 1"),
        ("a.toml", "a = \n", "line 1"),
        ("a.yaml", "a: [1\nb: 2\n", "line 2"),
        ("deep.json", "[" * 100_000, "nested too deeply"),
        ("deep.py", "(" * 50_000, "parentheses"),
    ],
)
async def test_mistakes_of_syntax_are_told(hand: Hand, name: str, content: str, said: str) -> None:
    done = await hand("write_file", path=name, content=content)
    assert done["success"] is True
    assert said in str(done["syntax_error"])


@pytest.mark.parametrize(
    ("name", "content"), [("a.py", "x = 1\n"), ("a.yaml", "a: &x [1]\nb: *x\n"), ("a.txt", "def (")]
)
async def test_sound_and_unknown_files_are_not_complained_of(hand: Hand, name: str, content: str) -> None:
    assert "syntax_error" not in await hand("write_file", path=name, content=content)


async def test_what_changed_since_it_was_read_is_not_overwritten(hand: Hand) -> None:
    path = hand.workspace / "a.txt"
    path.write_text("one\n")
    await hand("read_file", path="a.txt")
    path.write_text("two\n")
    assert "has changed since" in str((await hand("write_file", path="a.txt", content="mine"))["error"])
    assert path.read_text() == "two\n"
    await hand("read_file", path="a.txt")
    assert (await hand("write_file", path="a.txt", content="mine"))["success"]
    assert (await hand("write_file", path="a.txt", content="mine again"))["success"]


async def test_outside_the_workspace_the_whole_change_is_shown_first(hand: Hand, tmp_path: Path) -> None:
    outside = tmp_path / "out.txt"
    assert "'outside-write'" in str((await hand("write_file", path=str(outside), content="x"))["error"])
    hand.approver = person = Person()
    assert (await hand("write_file", path=str(outside), content="a\x1b[2K\u202eb"))["success"]
    assert "a\\x1b[2K\\u202eb" in person.asked[0].shown


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".vscode/settings.json", "sub/.git/config", ".envrc"])
async def test_what_a_person_s_tools_would_run_is_asked_about(hand: Hand, path: str) -> None:
    assert "'kept'" in str((await hand("write_file", path=path, content="x"))["error"])
    assert not (hand.workspace / path).exists()


async def test_nothing_is_written_in_a_session_that_only_reads(hand: Hand) -> None:
    hand.mode, hand.approver = "read-only", Person()
    assert "'read-only'" in str((await hand("write_file", path="a.txt", content="x"))["error"])
    assert (await hand("terminal", command="touch a.txt"))["exit_code"] != 0
    assert not (hand.workspace / "a.txt").exists()


async def test_a_link_made_between_the_verdict_and_the_call_is_not_followed(hand: Hand, tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", hand.workspace / "inside"
    outside.mkdir()
    inside.mkdir()

    class Swapper(Person):
        async def decide(self, asked: Approval) -> Decision:
            inside.rmdir()
            inside.symlink_to(outside)
            return await super().decide(asked)

    hand.approver = Swapper()
    patch = "*** Begin Patch\n*** Add File: .envrc\n+x\n*** Add File: inside/a\n+x\n*** End Patch"
    said = await hand("patch", mode="patch", patch=patch)
    assert "resolve the path again" in str(said["error"])
    assert list(outside.iterdir()) == []
    assert not (hand.workspace / ".envrc").exists()


async def test_one_text_is_replaced_by_another(hand: Hand) -> None:
    (hand.workspace / "a.py").write_text("x = 1\ny = 2\n")
    done = await hand("patch", path="a.py", old_string="y = 2", new_string="y = 3")
    assert (done["success"], done["replacements"]) == (True, 1)
    assert "-y = 2\n+y = 3" in str(done["diff"])
    assert (hand.workspace / "a.py").read_text() == "x = 1\ny = 3\n"


async def test_a_text_that_is_there_twice_needs_more_or_all(hand: Hand) -> None:
    (hand.workspace / "a").write_text("x\ny\nx\n")
    assert "2 times in 'a', at lines 1, 3" in str(
        (await hand("patch", path="a", old_string="x", new_string="z"))["error"]
    )
    assert (await hand("patch", path="a", old_string="x", new_string="z", replace_all="true"))["replacements"] == 2
    assert (hand.workspace / "a").read_text() == "z\ny\nz\n"


async def test_a_text_that_is_not_there_names_the_nearest_lines(hand: Hand) -> None:
    (hand.workspace / "a").write_text("alpha\nthe quick brown fox\nomega\n")
    said = str((await hand("patch", path="a", old_string="the quick brown dog", new_string=""))["error"])
    assert "2|the quick brown fox" in said
    assert "nearest" not in str((await hand("patch", path="a", old_string="zzzz", new_string="y"))["error"])


async def test_windows_line_ends_and_a_mark_at_the_beginning_stay(hand: Hand) -> None:
    (hand.workspace / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    await hand("patch", path="a", old_string="one\ntwo", new_string="one\n2\nthree")
    assert (hand.workspace / "a").read_bytes() == b"\xef\xbb\xbfone\r\n2\r\nthree\r\n"


async def test_what_is_no_text_is_not_edited_in_parts(hand: Hand) -> None:
    (hand.workspace / "a").write_bytes(b"caf\xe9 x")
    assert "UTF-8" in str((await hand("patch", path="a", old_string="x", new_string="y"))["error"])
    assert (hand.workspace / "a").read_bytes() == b"caf\xe9 x"


@pytest.mark.parametrize(
    "given",
    [{"path": "a"}, {"path": "a", "old_string": "x", "new_string": "x"}, {"old_string": "x"}, {"mode": "patch"}],
)
async def test_a_patch_that_says_too_little_is_told_what_it_needs(hand: Hand, given: dict[str, str]) -> None:
    assert "error" in await hand("patch", **given)


WHOLE = """*** Begin Patch
*** Update File: a.py
@@ def two():
-    return 2
+    return "two"
*** Add File: new/b.txt
+hello
+
+world
*** Delete File: old.txt
*** Update File: c.txt
*** Move to: moved/c.txt
@@
 one
-two
+zwei
*** End Patch"""


def lay_out(hand: Hand) -> None:
    (hand.workspace / "a.py").write_text("def one():\n    return 2\n\n\ndef two():\n    return 2\n")
    (hand.workspace / "old.txt").write_text("old\n")
    (hand.workspace / "c.txt").write_text("one\ntwo\n")


async def test_a_patch_of_several_files_adds_changes_moves_and_deletes(hand: Hand) -> None:
    lay_out(hand)
    done = await hand("patch", mode="patch", patch=WHOLE)
    assert done["success"] is True
    assert "old.txt: deleted" in str(done["diff"])
    assert (hand.workspace / "a.py").read_text() == 'def one():\n    return 2\n\n\ndef two():\n    return "two"\n'
    assert (hand.workspace / "new/b.txt").read_text() == "hello\n\nworld\n"
    assert (hand.workspace / "moved/c.txt").read_text() == "one\nzwei\n"
    assert not (hand.workspace / "old.txt").exists()
    assert not (hand.workspace / "c.txt").exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("*** Update File: a.py\n-    return 7", "does not fit"),
        ("*** Delete File: none.txt", "does not exist"),
        ("*** Add File: a.py\n+x", "there already"),
        ("*** Update File: a.py\n*** Move to: new/b.txt\n@@\n-def one():\n+def eins():", "nothing is moved over"),
        ("*** Update File: a.py\n@@ class Nowhere\n-    return 2", "there is no line"),
        ("*** Frobnicate: a.py", "expected it to begin"),
    ],
)
async def test_a_patch_that_fits_in_part_changes_nothing(hand: Hand, wrong: str, said: str) -> None:
    lay_out(hand)
    patch = WHOLE.replace("*** End Patch", f"{wrong}\n*** End Patch")
    assert said in str((await hand("patch", mode="patch", patch=patch))["error"])
    assert sorted(path.name for path in hand.workspace.iterdir()) == ["a.py", "c.txt", "old.txt"]
    assert (hand.workspace / "c.txt").read_text() == "one\ntwo\n"


async def test_a_patch_that_cannot_be_written_to_the_end_is_undone(hand: Hand) -> None:
    lay_out(hand)
    patch = WHOLE.replace("*** End Patch", f"*** Add File: ro/{'n' * 300}\n+x\n*** End Patch")
    assert "no name a file can have" in str((await hand("patch", mode="patch", patch=patch))["error"])
    assert (hand.workspace / "old.txt").read_text() == "old\n"
    assert (hand.workspace / "a.py").read_text().count("return 2") == 2
    assert not (hand.workspace / "new/b.txt").exists()


async def test_a_patch_is_refused_as_a_whole_when_one_of_its_files_is(hand: Hand, tmp_path: Path) -> None:
    lay_out(hand)
    outside = tmp_path / "outside.txt"
    outside.write_text("keep")
    patch = WHOLE.replace("*** End Patch", f"*** Delete File: {outside}\n*** End Patch")
    assert "refused" in str((await hand("patch", mode="patch", patch=patch))["error"])
    assert outside.exists()
    assert (hand.workspace / "old.txt").exists()


async def test_two_changes_of_one_file_in_one_patch_come_after_each_other(hand: Hand) -> None:
    (hand.workspace / "a").write_text("1\n2\n3\n")
    patch = (
        "*** Begin Patch\n*** Update File: a\n@@\n-1\n+one\n@@\n-3\n+three\n"
        "*** Update File: a\n@@\n-2\n+two\n*** End Patch\n"
    )
    assert (await hand("patch", mode="patch", patch=patch))["success"]
    assert (hand.workspace / "a").read_text() == "one\ntwo\nthree\n"
