"""How things are shown."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.screen import clean, cut, document, local_times, size, table, width

CONTROLS = {chr(number) for number in (*range(32), *range(127, 160), 0x202E, 0x2066, 0x2028)}


@given(st.lists(st.lists(st.text(st.characters(codec=None)), min_size=3, max_size=3), max_size=5))
def test_a_table_fits_the_screen_and_holds_no_controls_whatever_is_stored(rows: list[list[str]]) -> None:
    lines = table(("ONE", "TWO", "THREE"), rows)
    assert len(lines) == len(rows) + 1
    assert all(width(line) <= 80 for line in lines)
    assert not CONTROLS & set("".join(lines))


@given(st.text(st.characters(codec=None)), st.integers(1, 40))
def test_a_text_that_is_cut_is_no_wider_than_the_room_and_says_that_it_is_cut(text: str, room: int) -> None:
    text = clean(text)
    short = cut(text, room)
    assert width(short) <= room
    assert short == text or short.endswith("…")


@given(st.text(st.characters(codec=None)))
def test_json_for_programs_holds_no_controls_and_means_the_same(text: str) -> None:
    shown = document({"key": text})
    assert not CONTROLS & set(shown.replace("\n", ""))
    assert json.loads(shown)["key"] == text or any(0xD800 <= ord(character) < 0xE000 for character in text)


def test_a_column_that_must_be_whole_is_never_cut() -> None:
    long = "x" * 70
    heading, row = table(("ID", "REST"), [[long, "y" * 50]], whole=("ID",))
    assert long in row
    assert "…" in row
    assert heading.startswith("ID")


def test_times_are_shown_where_the_person_is() -> None:
    noon = datetime(2027, 7, 1, 12, tzinfo=UTC)
    there, here = local_times("Europe/Berlin"), local_times("UTC")
    assert there(noon) == here(noon + timedelta(hours=2))
    assert here(None) == "-"


def test_larger_sizes_get_larger_units() -> None:
    assert [size(1000**n).split()[1] for n in range(1, 5)] == ["bytes", "KiB", "MiB", "GiB"]


def test_a_program_that_reads_a_table_gets_all_of_it() -> None:
    code = "from hermes.cli.screen import table; print(table(('A', 'B'), [('x' * 300, 'y' * 300)])[1])"
    without = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # noqa: TID251 - handed on
    done = subprocess.run([sys.executable, "-c", code], env=without, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["x" * 300, "y" * 300]
