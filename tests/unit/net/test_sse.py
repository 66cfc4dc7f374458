"""Events are the same however their bytes were cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.errors import LimitReached
from hermes.net.sse import Event, Events

ENDS = st.sampled_from(["\n", "\r\n", "\r"])
LINES = st.one_of(
    st.sampled_from(["data", "data:", "data: ", ": ping", "event: error", "id: 7", "retry: 10", "", "", ""]),
    st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",)), max_size=8).map("data: {}".format),
)


def simply(text: str) -> list[Event]:
    """Read a whole stream line by line, as the standard tells it."""
    events, data, name = [], list[bytes](), b""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").encode().split(b"\n")
    for line in [*lines, b""]:
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if not line:
            if data:
                events.append((name, b"\n".join(data)))
            data, name = [], b""
        elif field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
    return events


@given(st.lists(st.tuples(LINES, ENDS), max_size=25), st.booleans(), st.lists(st.integers(0, 400), max_size=12))
def test_events_do_not_depend_on_how_the_bytes_were_cut(
    lines: list[tuple[str, str]], has_mark: bool, cuts: list[int]
) -> None:
    text = ("\ufeff" if has_mark else "") + "".join(line + end for line, end in lines)
    raw, events = text.encode(), Events()
    found: list[Event] = []
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(raw)], strict=True):
        found += events.feed(raw[begin:end])
    assert [*found, *events.finish()] == simply(text)
    slow = Events()
    bytewise = [event for at in range(len(raw)) for event in slow.feed(raw[at : at + 1])]
    assert [*bytewise, *slow.finish()] == simply(text)


@given(st.binary(max_size=200))
def test_each_byte_alone_is_as_good_as_all_at_once(raw: bytes) -> None:
    one, all_ = Events(), Events()
    found = [event for at in range(len(raw)) for event in one.feed(raw[at : at + 1])]
    assert [*found, *one.finish()] == [*all_.feed(raw), *all_.finish()]


@pytest.mark.parametrize("size", [1, 9, 1000])
def test_an_event_beyond_the_bound_is_refused_before_it_is_whole(size: int) -> None:
    events = Events(longest=10_000)
    for _ in range(10_000 // size):
        events.feed(b"x" * size)
    with pytest.raises(LimitReached, match="10,000"):
        events.feed(b"x" * size)


def test_comments_without_end_cost_nothing() -> None:
    events = Events(longest=100)
    assert [events.feed(b": ping\n\n") for _ in range(1000)] == [[]] * 1000
