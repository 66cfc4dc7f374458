"""Reading what a small model writes, piece by piece."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hermes.llm.local.steps import Steps, is_circling, known, schema


class Heard:
    def __init__(self) -> None:
        self.words = ""
        self.thoughts = ""
        self.orders: list[tuple[str, str]] = []
        self.pieces = 0

    def say(self, piece: str) -> None:
        self.words += piece
        self.pieces += 1

    def think(self, piece: str) -> None:
        self.thoughts += piece

    def order(self, name: str) -> Callable[[str], None]:
        self.orders.append((name, ""))
        number = len(self.orders) - 1

        def take(arguments: str) -> None:
            self.orders[number] = (name, self.orders[number][1] + arguments)

        return take


def heard(text: str, *, size: int = 1) -> Heard:
    found = Heard()
    steps = Steps(found)
    for at in range(0, len(text), size):
        steps.take(text[at : at + size])
    steps.finish()
    return found


@given(some.text(max_size=80), some.booleans(), some.integers(1, 9))
def test_words_are_the_same_however_they_are_cut(words: str, is_ascii: bool, size: int) -> None:
    written = json.dumps({"final": words}, ensure_ascii=is_ascii)
    assert heard(written, size=size).words == words


@given(some.dictionaries(some.text(max_size=8), some.text(max_size=20), max_size=4), some.integers(1, 9))
def test_a_call_comes_whole_however_it_is_cut(arguments: dict[str, str], size: int) -> None:
    arguments.pop("tool", None)
    found = heard(json.dumps({"tool": "t", **arguments}), size=size)
    assert [(name, json.loads(text)) for name, text in found.orders] == [("t", arguments)]
    assert found.words == ""


def test_several_steps_in_a_row_are_each_heard_in_order() -> None:
    found = heard('{"think":"hm"} {"final":"Look:"}\n{"tool":"a","x":"}"}{"tool":"b"}', size=3)
    assert (found.thoughts, found.words) == ("hm", "Look:")
    assert found.orders == [("a", '{"x": "}"}'), ("b", "{}")]


def test_words_are_shown_before_they_end() -> None:
    found = Heard()
    Steps(found).take('{"final":"Once upon')
    assert found.words == "Once upon"


def test_half_of_a_character_waits_for_its_other_half() -> None:
    found, text = Heard(), json.dumps({"final": "🙂"})
    steps = Steps(found)
    steps.take(text[: text.index("ud83d") + 5])
    assert found.words == ""
    steps.take(text[text.index("ud83d") + 5 :])
    assert found.words == "🙂"


def test_what_is_no_step_is_words() -> None:
    assert heard("Just words, no JSON.").words == "Just words, no JSON."


def test_a_call_that_is_cut_short_is_not_taken_for_a_whole_one() -> None:
    ((name, arguments),) = heard('{"tool":"terminal","command":"rm -rf ').orders
    assert name == "terminal"
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(arguments)


def test_a_model_is_held_to_the_tools_it_has() -> None:
    parameters = {"properties": {"command": {}, "pty": {}, "timeout": {}}, "required": ["command"]}
    one = known("terminal", "Run it. More is said here.", parameters)
    assert (one.summary, one.arguments) == ("Run it.", ("command",))
    first, final = schema([one])["oneOf"]  # type: ignore[misc]
    assert first["required"] == ["tool", "command"]  # type: ignore[call-overload, index]
    assert final["required"] == ["final"]  # type: ignore[call-overload, index]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Projects/" * 30, True),
        ("a" * 200, True),
        ("the same line again\n" * 12, True),
        ("", False),
        ("-" * 40, False),
        ("".join(f"item {n}, " for n in range(40)), False),
        ("no no no no no", False),
    ],
)
def test_going_round_in_circles_is_noticed(text: str, expected: bool) -> None:
    assert is_circling(text) is expected
