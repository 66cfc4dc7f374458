"""Skins, tool lines, the status line: what is drawn fits, and orders nothing."""

import json
import re
from pathlib import Path

import pytest

from hermes.cli.interactive import skin as skins
from hermes.cli.interactive.drawing import Colours, Drawing
from hermes.cli.interactive.skin import Skin
from hermes.cli.screen import width
from hermes.domain.errors import Misconfigured, NotFound

EVIL = "a\x1b[2Jb\x1b]0;t\x07c\x9b1md\u202ee\rf"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def left_over(drawn: str) -> str:
    """What of the control characters is no colour of ours and no end of a line."""
    return "".join(
        c for c in COLOUR.sub("", drawn) if (ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 or c == "\u202e"
    )


@pytest.mark.parametrize("colours", ["none", "256"])
def test_nothing_that_is_drawn_is_an_order_to_the_terminal(colours: Colours) -> None:
    drawing = Drawing(skins.load(Path("/nowhere"), "default"), colours)
    data = {
        "name": f"t{EVIL}",
        "arguments": json.dumps({"command": EVIL}),
        "seconds": 1.0,
        "text": json.dumps({"diff": f"+{EVIL}\n-{EVIL}", "output": EVIL}),
    }
    drawn = [
        drawing.words(EVIL, "bad", 40),
        drawing.markdown(f"# {EVIL}\n\n`{EVIL}` [{EVIL}](http://{EVIL})\n\n```{EVIL}\n{EVIL}\n```\n", 40),
        drawing.thought(EVIL, 40),
        drawing.asked(EVIL, 40),
        drawing.tool(data, 40, has_output=False),
        drawing.tool({**data, "text": EVIL}, 40, has_output=True),
        drawing.tool({**data, "is_error": True}, 40, has_output=False),
        drawing.table((EVIL, EVIL), [(EVIL, EVIL)], 40),
    ]
    for one in drawn:
        assert left_over(one) == ""
        if colours == "none":
            assert "\x1b" not in one


@pytest.mark.parametrize("room", [20, 40, 60, 120])
def test_a_tool_line_fits_and_a_diff_is_shown(room: int) -> None:
    drawing = Drawing(Skin(), "none")
    data = {
        "name": "patch",
        "arguments": json.dumps({"path": "some/very/long/path/to/a/file/that/is/patched.py"}),
        "seconds": 1.25,
        "text": json.dumps({"success": True, "diff": "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new\n"}),
    }
    lines = COLOUR.sub("", drawing.tool(data, room, has_output=False)).splitlines()
    assert lines[0].endswith("1.2s")
    assert width(lines[0]) <= room
    assert "┊   +new" in lines


def test_a_name_in_a_table_is_shown_whole_where_other_words_are_cut() -> None:
    rows = [("tool", "words " * 30, "just now", "20261119_222253_c3594b19")]
    (_, line) = Drawing(Skin(), "none").table(("who", "what", "when", "session"), rows, 60).splitlines()
    assert line.endswith("just now  20261119_222253_c3594b19")
    assert width(line) <= 60


def test_a_skin_is_data_and_what_it_lacks_is_as_usual(tmp_path: Path) -> None:
    (tmp_path / "skins").mkdir()
    (tmp_path / "skins" / "mine.toml").write_text('accent = "#ff0000"\nfaces = ["(x)"]\n')
    mine = skins.load(tmp_path, "mine")
    assert (mine.accent, mine.faces) == ("#ff0000", ("(x)",))
    assert mine.prompt == skins.load(tmp_path, "default").prompt
    assert "mine" in skins.names(tmp_path)
    with pytest.raises(NotFound, match="mine"):
        skins.load(tmp_path, "nobody")
    with pytest.raises(NotFound):
        skins.load(tmp_path, "../mine")


@pytest.mark.parametrize(
    "text",
    [
        "accent = 1",
        'accent = "x; y"',
        "faces = []",
        'faces = ["' + "x" * 50 + '"]',
        'run = "rm"',
        "not toml",
        'prompt = ["a"]',
    ],
)
def test_a_bad_skin_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "skins").mkdir()
    (tmp_path / "skins" / "bad.toml").write_text(text)
    with pytest.raises(Misconfigured, match=r"bad\.toml"):
        skins.load(tmp_path, "bad")


def test_every_skin_that_comes_along_can_be_worn_in_both_libraries(tmp_path: Path) -> None:
    from hermes.cli.interactive.looks import Looks
    from hermes.cli.interactive.screen import style_of
    from hermes.config.sections import Display

    for name in skins.names(tmp_path):
        look = Looks(tmp_path, Display(skin=name), is_plain=False)
        style_of(look)
        assert Drawing(look.worn, "truecolor").markdown("# x\n\n`y`\n\n```py\nz\n```\n", 40)
