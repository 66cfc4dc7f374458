"""Patches of several files: what they say, and what they make of a file."""

import contextlib
import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.errors import Misconfigured
from hermes.tools.v4a import parse, updated

_LINES = st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=6), max_size=12)


def patch_of(old: list[str], new: list[str]) -> str:
    """Write the change of a whole file as one hunk."""
    rows = [row[0] + row[2:] for row in difflib.ndiff(old, new) if not row.startswith("?")]
    return "\n".join(["*** Begin Patch", "*** Update File: a", "@@", *rows, "*** End Patch"])


@given(_LINES.filter(bool), _LINES)
def test_a_patch_of_a_whole_file_makes_the_new_file(old: list[str], new: list[str]) -> None:
    if not any(line.strip() for line in old):
        return
    content = "".join(f"{line}\n" for line in old)
    (operation,) = parse(patch_of(old, new))
    assert updated(operation, content) == "".join(f"{line}\n" for line in new)


_WORDS = """*** Begin Patch|*** Update File: a|*** Add File: b|@@|@@ x|-a|+b| c||*** End Patch|*** Move to: d
*** Delete File: e|*** End of File""".replace("\n", "|").split("|")


@given(st.text() | st.lists(st.sampled_from(_WORDS)).map("\n".join), st.text())
def test_no_text_makes_it_fail_in_another_way_than_by_words(text: str, content: str) -> None:
    with contextlib.suppress(Misconfigured):
        for operation in parse(text):
            updated(operation, content)


def test_only_whole_lines_are_replaced() -> None:
    (operation,) = parse("*** Begin Patch\n*** Update File: a\n@@\n-x = 1\n+x = 2\n*** End Patch")
    assert updated(operation, "max = 1\nx = 1\n") == "max = 1\nx = 2\n"
    with pytest.raises(Misconfigured, match="does not fit"):
        updated(operation, "max = 1\n")


def test_an_anchor_chooses_among_like_places() -> None:
    (operation,) = parse("*** Begin Patch\n*** Update File: a\n@@ def g():\n-    pass\n+    return\n*** End Patch")
    content = "def f():\n    pass\n\ndef g():\n    pass\n"
    assert updated(operation, content) == "def f():\n    pass\n\ndef g():\n    return\n"


def test_lines_are_added_at_the_end_or_below_an_anchor() -> None:
    (operation,) = parse("*** Begin Patch\n*** Update File: a\n@@\n+new\n*** End Patch")
    assert updated(operation, "old") == "old\nnew\n"
    (operation,) = parse("*** Begin Patch\n*** Update File: a\n@@ one\n+new\n*** End Patch")
    assert updated(operation, "one\ntwo\n") == "one\nnew\ntwo\n"


def test_whole_lines_are_taken_out() -> None:
    (operation,) = parse("*** Begin Patch\n*** Update File: a\n@@\n one\n-two\n three\n*** End Patch")
    assert updated(operation, "one\ntwo\nthree\n") == "one\nthree\n"
    (operation,) = parse("*** Begin Patch\n*** Update File: a\n@@\n-two\n*** End Patch")
    assert updated(operation, "one\ntwo\nthree\n") == "one\nthree\n"
