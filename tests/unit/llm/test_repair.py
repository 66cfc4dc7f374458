"""What weak models write is read as they meant it, and a quoted call is not made."""

import json
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.llm.repair import Draft, as_cut, calls_in, mend, named
from hermes.llm.tolerant import is_object, object_in
from hermes.llm.wire.thinking import Splitter, unopened

NAMES = frozenset({"shell", "read_file", "web-search", "mcp_get"})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=("Cs",))),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(st.characters(exclude_categories=("Cs",)), max_size=5), JSON, max_size=4)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("", {}),
        ("  ", {}),
        ('{"a": 1}', {"a": 1}),
        ("{'a': 'b'}", {"a": "b"}),
        ('{"a": 1,}', {"a": 1}),
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ("{'a': True, 'b': None, 'c': False}", {"a": True, "b": None, "c": False}),
        ("{a: 1, b_c: 'x'}", {"a": 1, "b_c": "x"}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('"\\"{\\\\\\"a\\\\\\": 1}\\""', {"a": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('Sure! {"a": 1}', {"a": 1}),
        ("{'text': 'it's mine', 'n': 1}", {"text": "it's mine", "n": 1}),
        ('{"text": "say "hi" to him", "n": 1}', {"text": 'say "hi" to him', "n": 1}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('{"a": 1} // done', {"a": 1}),
        ('{"a": /* why */ 1}', {"a": 1}),
        ("{“a”: “b”}", {"a": "b"}),
        ('{"a" = 1}', {"a": 1}),
        ('{"a": NaN}', {"a": None}),
        ('{"a": 1_000, "b": +2, "c": .5}', {"a": 1000, "b": 2, "c": 0.5}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "😀"}),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}),
    ],
)  # fmt: skip
def test_an_object_is_read_as_it_was_meant(written: str, meant: object) -> None:
    read = object_in(written)
    assert read is not None
    assert json.loads(read.encode()) == meant


@pytest.mark.parametrize(
    "written",
    ["[1]", "7", "null", "hello", "{]", "{1}", "{'a'}", "[" * 100_000, "{'a':" * 1000, '"x"',
     '{"a": {"b": [1, 2', '{"a": "unfinished', '{"a": "unfinished}', '{"a": 1', "{'a': 1, ", "{'a': [1, 2", '{"a"',
     '{"a": 1}{"b": 2}', '{"a": 1}\n{"a": 1}', "{'a': 1,} and {'b': 2}", '"{\\"a\\": 1"', '```json\n{"a": 1\n```'],
)  # fmt: skip
def test_what_means_no_object_is_none(written: str) -> None:
    assert object_in(written) is None


@given(OBJECTS)
def test_an_object_stays_as_it_is_and_survives_python_s_spelling(value: dict[str, object]) -> None:
    text = json.dumps(value)
    assert object_in(text) == text
    assert json.loads(object_in(json.dumps(text)) or "") == value


@given(st.text(max_size=80))
def test_no_text_makes_reading_fail(text: str) -> None:
    read = object_in(text)
    assert read is None or is_object(read)
    assert json.loads(read.encode()) is not None if read else True


@given(OBJECTS, st.integers(0, 60))
def test_a_cut_object_is_never_completed(value: dict[str, object], at: int) -> None:
    text = json.dumps(value)
    assert object_in(text[:at]) in ({text, None} if text[:at] else {"{}"})


@pytest.mark.parametrize(
    ("written", "meant"),
    [("shell", "shell"), ("Shell", "shell"), ("functions.shell", "shell"), ("tool:read_file", "read_file"),
     ("readFile", "read_file"), ("web_search", "web-search"), ("default_api.Web_Search", "web-search"), ("", "unnamed"),
     ("rm -rf /", "rm_-rf"), ("x" * 200, "x" * 64), ("nothing like it", "nothing_like_it")],
)  # fmt: skip
def test_a_name_is_the_tool_it_means_or_fit_to_be_sent_back(written: str, meant: str) -> None:
    assert named(written, NAMES) == meant


def test_a_name_that_could_be_two_tools_is_neither() -> None:
    assert named("READ_FILE", {"read_file", "Read_File"}) == "READ_FILE"


def test_ids_that_are_missing_or_double_become_their_own() -> None:
    numbers = count()
    drafts = [Draft("a", "shell", ""), Draft("a", "shell", "{}"), Draft("", "shell", "{'x': 1}")]
    calls = mend(drafts, NAMES, lambda: f"new-{next(numbers)}")
    assert [c.id for c in calls] == ["a", "call_new0", "call_new1"]
    assert [c.arguments for c in calls] == ["{}", "{}", '{"x": 1}']


def test_arguments_whose_end_did_not_arrive_are_not_completed() -> None:
    half = '{"path": "a.py", "content": "import o'
    (call,) = mend([as_cut(Draft("a", "shell", half))], NAMES, str)
    assert call.arguments == half
    (whole,) = mend([as_cut(Draft("a", "shell", "{}"))], NAMES, str)
    assert whole.arguments == "{}"


CALL = '{"name": "shell", "arguments": {"cmd": "ls"}}'


@pytest.mark.parametrize(
    ("text", "left", "many"),
    [
        (f"<tool_call>\n{CALL}\n</tool_call>", "", 1),
        (f"I look.\n<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>\n", "I look.", 2),
        (f"<tool_call>{CALL}", "", 1),
        (f"<tool_call>[{CALL}, {CALL}]</tool_call>", "", 2),
        ("<tool_call>{'name': 'Shell', 'arguments': {'cmd': 'ls',}}</tool_call>", "", 1),
        ('<tool_call>{"name": "shell", "arguments": "{\\"cmd\\": \\"ls\\"}"}</tool_call>', "", 1),
        (f"```json\n{CALL}\n```", "", 1),
        (CALL, "", 1),
        ('{"function": {"name": "shell", "parameters": {}}}', "", 1),
    ],
)
def test_calls_that_were_written_as_text_are_found(text: str, left: str, many: int) -> None:
    rest, drafts = calls_in(text, NAMES)
    assert (rest, [d.name.lower() for d in drafts]) == (left, ["shell"] * many)


@pytest.mark.parametrize(
    "text",
    [
        f"To call it write `<tool_call>{CALL}</tool_call>` like this.",
        f"```\n<tool_call>{CALL}</tool_call>\n```",
        f"<tool_call>{CALL}</tool_call> is what I would write.",
        f"Here is an example:\n```json\n{CALL}\n```",
        f"{CALL} and then more",
        '<tool_call>{"name": "unknown", "arguments": {}}</tool_call>',
        f'<tool_call>{CALL}</tool_call><tool_call>{{"name": "nobody"}}</tool_call>',
        "<tool_call></tool_call>",
        '{"answer": 42}',
        "[]",
    ],
)
def test_a_quoted_call_is_not_made(text: str) -> None:
    assert calls_in(text, NAMES) == (text, [])


@given(st.text("<think>/ \nab", max_size=60), st.lists(st.integers(0, 60), max_size=8))
def test_thoughts_are_the_same_however_the_text_was_cut(text: str, cuts: list[int]) -> None:
    def split(pieces: list[str]) -> tuple[str, str]:
        given: dict[str, str] = {"text": "", "reasoning": ""}

        def give(kind: str, piece: str) -> None:
            given[kind] += piece

        splitter = Splitter(give)
        for piece in pieces:
            splitter.take(piece)
        splitter.finish()
        return given["text"], given["reasoning"]

    pieces = [text[a:b] for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), len(text)], strict=True)]
    words, thoughts = split(pieces)
    whole = split([text])
    assert (words.lstrip("\n"), thoughts.lstrip("\n")) == (whole[0].lstrip("\n"), whole[1].lstrip("\n"))


def test_thoughts_whose_opening_tag_stood_in_the_prompt_are_found() -> None:
    assert unopened("hm\n</think>\n\nYes.") == ("hm", "Yes.")
