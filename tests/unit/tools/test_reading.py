"""The tool `read_file`."""

import json
import os
from pathlib import Path

import pytest
from tests.unit.tools.conftest import Hand, Person

pytestmark = pytest.mark.anyio


def put(hand: Hand, name: str, content: str | bytes) -> Path:
    path = hand.workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


async def test_lines_are_numbered_and_paged(hand: Hand) -> None:
    put(hand, "a.txt", "".join(f"line {n}\n" for n in range(1, 11)))
    page = await hand("read_file", path="a.txt", offset=3, limit=2)
    assert page == {"content": "3|line 3\n4|line 4", "total_lines": 10, "truncated": True, "next_offset": 5}
    rest = await hand("read_file", path="./a.txt", offset="9", limit=None)
    assert (rest["content"], rest["truncated"]) == ("9|line 9\n10|line 10", False)


async def test_a_page_is_never_too_long_to_be_read_whole(hand: Hand) -> None:
    put(hand, "big.txt", "".join(f'{"é" * 300}"\\\t{n}\n' for n in range(3_000)))
    first, seen = 1, 0
    while True:
        page = await hand("read_file", path="big.txt", offset=first, limit=99_999)
        assert "file" not in page
        seen += str(page["content"]).count("\n") + 1
        if not page["truncated"]:
            break
        first = int(str(page["next_offset"]))
    assert seen == 3_000


async def test_a_very_long_line_is_cut_and_said_to_be(hand: Hand) -> None:
    put(hand, "min.js", "x" * 5_000)
    assert str((await hand("read_file", path="min.js"))["content"]).endswith("x… (3,000 more)")


async def test_what_is_not_there_names_what_is_like_it(hand: Hand) -> None:
    put(hand, "src/settings.py", "")
    said = str((await hand("read_file", path="src/Setting.py"))["error"])
    assert "does not exist; there is src/settings.py" in said


async def test_a_line_that_is_not_there_and_an_empty_file(hand: Hand) -> None:
    put(hand, "a.txt", "one\n")
    put(hand, "empty.txt", "")
    assert "has 1 lines" in str((await hand("read_file", path="a.txt", offset=7))["error"])
    assert await hand("read_file", path="empty.txt") == {"content": "", "total_lines": 0, "truncated": False}


async def test_a_folder_shows_what_is_in_it(hand: Hand) -> None:
    put(hand, "src/a.py", "")
    put(hand, "src/sub/b.py", "")
    assert "in it: a.py, sub/" in str((await hand("read_file", path="src"))["error"])


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\x89PNG\r\n\x1a\n1234", "a PNG image"), (b"%PDF-1.7", "a PDF document"), (b"a\0b", "is binary")],
)
async def test_what_is_no_text_is_refused_by_its_name(hand: Hand, content: bytes, said: str) -> None:
    put(hand, "thing", content)
    assert said in str((await hand("read_file", path="thing"))["error"])


async def test_a_file_too_large_is_refused_without_being_read(hand: Hand) -> None:
    with put(hand, "huge", b"").open("wb") as file:
        file.truncate(2_100_000_000)
    assert "2,100,000,000 bytes" in str((await hand("read_file", path="huge"))["error"])


async def test_invalid_utf_8_is_shown_with_replacements_and_said(hand: Hand) -> None:
    put(hand, "latin.txt", b"caf\xe9\n")
    page = await hand("read_file", path="latin.txt")
    assert page["content"] == "1|caf\ufffd"
    assert "not valid UTF-8 (first at byte 3)" in str(page["note"])


async def test_other_encodings_with_a_mark_are_read(hand: Hand) -> None:
    put(hand, "wide.txt", "hé\n".encode("utf-16"))
    put(hand, "bom.txt", b"\xef\xbb\xbfhi\n")
    assert (await hand("read_file", path="wide.txt"))["content"] == "1|hé"
    assert await hand("read_file", path="bom.txt") == {"content": "1|hi", "total_lines": 1, "truncated": False}


async def test_a_notebook_is_shown_as_its_cells(hand: Hand) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["x = 1\n", "x"], "outputs": [{"data": {"text/plain": ["1"]}}]},
    ]
    put(hand, "n.ipynb", json.dumps({"cells": cells}))
    page = await hand("read_file", path="n.ipynb")
    assert page["content"] == "1|# cell 1 [markdown]\n2|# Title\n3|\n4|# cell 2 [code]\n5|x = 1\n6|x\n7|# output\n8|1"
    put(hand, "broken.ipynb", '{"cells": [3]}')
    assert (await hand("read_file", path="broken.ipynb"))["content"] == '1|{"cells": [3]}'


async def test_the_same_page_again_is_pointed_at_once_then_shown(hand: Hand) -> None:
    path = put(hand, "a.txt", "one\n")
    assert "content" in await hand("read_file", path="a.txt")
    assert "already read" in str((await hand("read_file", path="a.txt"))["note"])
    assert (await hand("read_file", path="a.txt"))["content"] == "1|one"
    path.write_text("two!\n")
    assert (await hand("read_file", path="a.txt"))["content"] == "1|two!"
    hand.session = "other"
    assert "content" in await hand("read_file", path="a.txt")


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 5_000, "~nobody-of-that-name/x"])
async def test_what_is_no_path_is_told_of(hand: Hand, path: str) -> None:
    assert "error" in await hand("read_file", path=path)


async def test_outside_the_workspace_a_person_is_asked(hand: Hand, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere" / "note.txt"
    outside.parent.mkdir()
    outside.write_text("hello")
    (hand.workspace / "link").symlink_to(outside)
    for path in (str(outside), "../elsewhere/note.txt", "link"):
        assert "'outside-read'" in str((await hand("read_file", path=path))["error"])
    hand.approver = person = Person()
    assert (await hand("read_file", path="link"))["content"] == "1|hello"
    assert person.asked[0].shown == f"read: {outside}"


async def test_secrets_and_the_files_of_hermes_are_out_of_reach_also_with_a_yes(hand: Hand) -> None:
    hand.approver = person = Person()
    (hand.home / ".env").write_text("KEY=value")
    (hand.workspace / "env").symlink_to(hand.home / ".env")
    for path in ("env", str(hand.home / ".env"), "~/.ssh/id_rsa", "/etc/shadow", "/proc/self/environ", "/dev/zero"):
        assert "refused by the rule" in str((await hand("read_file", path=path))["error"])
    assert person.asked == []


async def test_a_pipe_does_not_hold_anybody_up(hand: Hand) -> None:
    os.mkfifo(hand.workspace / "pipe")
    assert "a pipe" in str((await hand("read_file", path="pipe"))["error"])
