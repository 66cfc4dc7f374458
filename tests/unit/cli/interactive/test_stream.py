"""An answer that streams in is cut into whole blocks, and nothing of it is lost."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.cli.interactive.stream import Blocks

PIECES = st.lists(
    st.sampled_from(["word ", "\n", "\n\n", "# head", "- item", "```", "```py\n", "~~~", "x" * 30, "é", " "])
)


def fed(blocks: Blocks, pieces: list[str]) -> list[str]:
    return [block for piece in pieces for block in blocks.add(piece)]


@given(PIECES)
def test_blocks_and_rest_are_the_text(pieces: list[str]) -> None:
    blocks = Blocks()
    done = fed(blocks, pieces)
    whole = "".join([*done, blocks.finish()])
    assert whole.split() == "".join(pieces).split()
    assert blocks.pending == ""


@given(PIECES, st.integers(1, 40))
def test_how_it_was_cut_on_the_way_means_nothing(pieces: list[str], size: int) -> None:
    text = "".join(pieces)
    one, other = Blocks(), Blocks()
    in_bites = [text[at : at + size] for at in range(0, len(text), size)]
    assert fed(one, [text]) == fed(other, in_bites)
    assert one.pending == other.pending


def test_a_paragraph_is_whole_at_the_empty_line_and_code_at_its_end() -> None:
    blocks = Blocks()
    assert blocks.add("one\ntwo\n") == []
    assert blocks.add("\nthree\n```py\na\n") == ["one\ntwo\n\n", "three\n"]
    assert blocks.add("\n\nb\n``") == []
    assert blocks.add("`\nafter") == ["```py\na\n\n\nb\n```\n"]
    assert blocks.add(" it\n\nlast") == ["after it\n\n"]
    assert blocks.pending == "last"
    assert blocks.finish() == "last"


def test_what_grows_beyond_the_bound_is_cut_and_code_stays_code() -> None:
    blocks = Blocks(longest=50)
    done = fed(blocks, ["```py\n", *(f"line {n}\n" for n in range(20)), "```\n"])
    assert len(done) > 2
    assert all(block.startswith("```py\n") and block.endswith("```\n") for block in done)
    lines = [line for block in done for line in block.splitlines() if line.startswith("line")]
    assert lines == [f"line {n}" for n in range(20)]


def test_one_endless_line_is_cut_between_words() -> None:
    blocks = Blocks(longest=50)
    done = fed(blocks, ["word "] * 40)
    assert done
    assert all(block.endswith("word ") for block in done)
    assert "".join([*done, blocks.finish()]) == "word " * 40
