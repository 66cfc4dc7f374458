"""What is typed becomes what is said."""

import base64
from pathlib import Path

import pytest

from hermes.cli.interactive.composing import Composing
from hermes.domain.message import ImagePart, TextPart

PICTURE = b"\x89PNG\r\n"


@pytest.fixture
def composing(tmp_path: Path) -> Composing:
    (tmp_path / "a b.txt").write_text("with a space")
    (tmp_path / "notes.md").write_text("my notes")
    (tmp_path / "shot.png").write_bytes(PICTURE)
    (tmp_path / "tool.bin").write_bytes(b"\0\1")
    (tmp_path / "long.txt").write_text("x" * 300_000)
    return Composing(lambda: tmp_path)


def test_a_long_paste_is_folded_and_said_whole(composing: Composing) -> None:
    text = "\r\n".join(f"line {n}" for n in range(500))
    mark = composing.paste(text)
    assert mark == "[pasted 1: 500 lines]"
    said = composing.compose(f"what is {mark}?")
    assert said.text == f"what is {text.replace(chr(13), '')}?"
    assert said.parts == (TextPart(said.text),)
    assert said.shown == f"what is {mark}?"


def test_a_short_paste_stays_as_it_is(composing: Composing) -> None:
    assert composing.paste("two\nlines") == "two\nlines"
    assert composing.paste("y" * 2_000) == "[pasted 1: 2,000 characters]"


@pytest.mark.parametrize("written", ["shot.png", "'{}/shot.png'", "file://{}/shot.png", "{}/shot.png\n"])
def test_a_picture_is_pasted_by_its_path(composing: Composing, tmp_path: Path, written: str) -> None:
    mark = composing.paste(written.format(tmp_path))
    assert mark == "[picture 1: shot.png]"
    said = composing.compose(f"look {mark}")
    assert said.parts[1] == ImagePart("image/png", base64.b64encode(PICTURE).decode())


def test_files_that_are_named_come_along(composing: Composing) -> None:
    said = composing.compose('read @notes.md, @"a b.txt" and @shot.png but mail me@home.org')
    assert isinstance(said.parts[0], TextPart)
    assert "my notes\n</file>" in said.parts[0].text
    assert "with a space\n</file>" in said.parts[0].text
    assert isinstance(said.parts[1], ImagePart)
    assert "<file" not in said.text


def test_what_cannot_come_along_is_told(composing: Composing) -> None:
    said = composing.compose("@tool.bin @long.txt @nothing.txt")
    assert len(said.notes) == 2
    assert said.parts == (TextPart("@tool.bin @long.txt @nothing.txt"),)


def test_a_name_inside_a_paste_brings_no_file(composing: Composing) -> None:
    mark = composing.paste("@notes.md\n" * 20)
    said = composing.compose(mark)
    assert "my notes" not in "".join(p.text for p in said.parts if isinstance(p, TextPart))


def test_what_cannot_be_stored_is_replaced(composing: Composing) -> None:
    assert composing.compose("a\0b\ud800c").parts == (TextPart("ab?c"),)
