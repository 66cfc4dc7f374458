"""Where a text is that was not written exactly as it stands."""

import pytest

from hermes.tools.fuzzy import find

CODE = "class A:\n    def f(self):\n        x = 'one'\n        return x\n\n    def g(self):\n        return 2\n"
BLOCK = "def f():\n    one = 1\n    two = 2\n    return one\n"


@pytest.mark.parametrize(
    ("content", "old", "new", "after", "strategy"),
    [
        ("a b\n", "a b", "c", "c\n", "exact"),
        ("a  \nb\n", "a\nb", "c", "c\n", "trailing space"),
        ("    if x:\n        y()\n", "if x:\n    y()", "if z:\n    y()", "    if z:\n        y()\n", "indentation"),
        ("f(a,  b)\n", "f(a, b)", "g(a)", "g(a)\n", "spaces"),
        ("say(\u201chi\u201d)\n", 'say("hi")', "x", "x\n", "quotes and dashes"),
        ("f( a,b )\n", "f(a, b)", "g(a)", "g(a)\n", "no spaces"),
        ('p("x")\nq\n', 'p(\\"x\\")\\nq', "r", "r\n", "escapes"),
        ("  a\n  b\n", "\n\n a\n b\n\n", " c", "  c\n", "blank edges"),
        (BLOCK, BLOCK.replace("= 2", "= 3"), "x\n", "x\n", "first and last line"),
    ],
)
def test_each_of_nine_strategies_finds_its_place(content: str, old: str, new: str, after: str, strategy: str) -> None:
    found = find(content, old)
    assert found is not None
    assert found.strategy == strategy
    ((first, last),) = found.spans
    assert content[:first] + found.fit(new) + content[last:] == after


def test_an_exact_place_wins_over_many_rough_ones() -> None:
    found = find("x = 1\n  x = 1 \nx  =  1\n", "  x = 1 ")
    assert found is not None
    assert (found.strategy, len(found.spans)) == ("exact", 1)


@pytest.mark.parametrize("old", ["nothing like it", "\n\n", "   ", "class B:\n    x\n    return 9"])
def test_what_is_not_there_is_not_found(old: str) -> None:
    assert find(CODE, old) is None or not old.strip()


def test_many_lines_take_no_time_worth_telling() -> None:
    content = "\n".join(f"line {n % 7}" for n in range(20_000))
    assert find(content, "\n".join(f"line {n % 5}" for n in range(50))) is None
