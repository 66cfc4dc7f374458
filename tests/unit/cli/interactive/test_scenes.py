"""The chat screen in a real terminal, as a person sees it.

What is expected stands in scenes/, a file for each width. A scene that is missing is written, and fails once.
"""

import time
from pathlib import Path

import pytest
from tests.unit.cli.interactive.conftest import Open

from hermes.testing.model_server import ModelServer
from hermes.testing.turn import Say, call

SCENES = Path(__file__).with_name("scenes")
WIDTHS = pytest.mark.parametrize("columns", [60, 120])
ANSWER = """# A heading

Some **bold** words and `code`, in a paragraph that is long enough to be wrapped where a narrow terminal ends.

- one
- two

```python
def f(x):
    return x + 1
```

1. first
2. second

| name | size |
|------|------|
| a    | 1    |

The end."""


def same(name: str, columns: int, seen: str) -> None:
    path = SCENES / f"{name}.{columns}.txt"
    if not path.exists():
        path.write_text(seen)
        pytest.fail(f"{path.name} is new; look at it")
    assert seen == path.read_text()


@WIDTHS
def test_a_greeting_says_what_is_there(terminal: Open, columns: int) -> None:
    screen = terminal(columns=columns)
    same("greeting", columns, screen.until("❯", "PROTECTION"))


@WIDTHS
def test_an_answer_is_drawn_as_it_is_meant(terminal: Open, vendor: ModelServer, columns: int) -> None:
    vendor.add(ANSWER)
    screen = terminal(columns=columns)
    screen.until("❯")
    screen.say("show me everything")
    same("answer", columns, screen.until("The end.", gone="⚕ ❯"))


@WIDTHS
def test_tools_have_a_line_each_and_changes_their_diff(terminal: Open, vendor: ModelServer, columns: int) -> None:
    vendor.add(
        call("write_file", path="a.txt", content="hello\nworld\n"),
        call("patch", path="a.txt", old_string="world", new_string="moon"),
        call("read_file", path="nothing.txt"),
        "all done",
    )
    screen = terminal(columns=columns)
    screen.until("❯")
    screen.say("work")
    same("tools", columns, screen.until("all done", gone="⚕ ❯"))


@pytest.mark.slow
@WIDTHS
def test_an_approval_shows_what_will_be_done_and_why(
    terminal: Open, vendor: ModelServer, home: Path, columns: int
) -> None:
    vendor.add(call("write_file", path="../out.txt", content="x"), "as you say")
    screen = terminal(columns=columns)
    screen.until("❯")
    screen.say("write outside")
    same("approval", columns, screen.until("5. no, and say why"))
    time.sleep(0.6)
    screen.keys("y")
    screen.until("yes, this once", "as you say", gone="⚕ ❯")
    assert (home / "out.txt").read_text() == "x"


@pytest.mark.slow
def test_keys_that_were_typed_ahead_are_no_answer(terminal: Open, vendor: ModelServer, home: Path) -> None:
    def slow_write() -> Say:
        write = call("write_file", path="../out.txt", content="x")
        return Say("I write. " * 5, calls=write.calls, pause=0.1)

    vendor.add(slow_write(), "then not")
    screen = terminal()
    screen.until("❯")
    screen.say("write outside")
    give_up_at = time.monotonic() + 20
    while "5. no, and say why" not in screen.seen():
        screen.keys("y")
        assert time.monotonic() < give_up_at
    assert not (home / "out.txt").exists()
    time.sleep(0.6)
    screen.keys("w")
    screen.until("your answer")
    screen.keys("C-u")
    screen.say("not there")
    screen.until("no: not there", "then not", gone="⚕ ❯")
    assert not (home / "out.txt").exists()


@pytest.mark.slow
@WIDTHS
def test_ctrl_c_stops_and_what_was_said_stays(terminal: Open, vendor: ModelServer, columns: int) -> None:
    vendor.add(Say("It begins so.\n\n" + "and goes on " * 200, pause=0.05), "the next")
    screen = terminal(columns=columns)
    screen.until("❯")
    screen.say("tell me")
    screen.until("It begins so.", "and goes on", "⚕ ❯")
    screen.keys("C-c")
    screen.until("interrupted by the user", gone="⚕ ❯")
    screen.say("again")
    screen.until("the next", gone="⚕ ❯")
    screen.keys("C-d")
    screen.until("left with 0")
    assert "It begins so." in screen.seen(is_all=True)


@pytest.mark.slow
@WIDTHS
def test_an_error_is_one_line_and_the_chat_goes_on(terminal: Open, vendor: ModelServer, columns: int) -> None:
    screen = terminal(columns=columns, OPENAI_API_KEY="sk-wrong")
    screen.until("❯")
    screen.say("hello")
    seen = screen.until("✗", "OPENAI_API_KEY", gone="⚕ ❯")
    assert "Traceback" not in seen
    screen.say("/status")
    screen.until("waits for you")


@pytest.mark.slow
@WIDTHS
def test_a_session_goes_on_where_it_was(terminal: Open, vendor: ModelServer, columns: int) -> None:
    vendor.add("I will remember.", "the one you said")
    first = terminal(columns=columns)
    first.until("❯")
    first.say("remember the blue one")
    first.until("I will remember.", gone="⚕ ❯")
    first.say("/title colours")
    first.until("is called")
    first.keys("C-d")
    first.until("left with 0", "--resume")
    second = terminal("--resume colours", columns=columns)
    same("resume", columns, second.until("going on with", "PROTECTION"))
    second.say("which one?")
    second.until("the one you said", gone="⚕ ❯")
    assert [m["content"] for m in vendor.asked[-1].body["messages"][1:3]] == [
        "remember the blue one",
        "I will remember.",
    ]


@WIDTHS
def test_500_pasted_lines_are_folded_and_said_whole(terminal: Open, vendor: ModelServer, columns: int) -> None:
    vendor.add("many lines")
    text = "\n".join(f"line {n}" for n in range(500))
    screen = terminal(columns=columns)
    screen.until("❯")
    screen.keys("-l", "look: ")
    screen.paste(text)
    same("paste", columns, screen.until("[pasted 1: 500 lines]"))
    screen.keys("Enter")
    screen.until("many lines", gone="⚕ ❯")
    assert vendor.asked[-1].body["messages"][-1]["content"] == f"look: {text}"


@pytest.mark.slow
def test_nothing_a_model_or_a_tool_writes_is_an_order(terminal: Open, vendor: ModelServer, home: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b5m\u202e"
    (home / "work" / "evil.txt").write_text(evil)
    vendor.add(
        Say(evil, calls=call("read_file", path="evil.txt").calls), call("write_file", path="b.txt", content=evil), evil
    )
    screen = terminal("--verbose", rows=50)
    screen.until("❯")
    screen.say("/verbose all")
    screen.say("read it")
    seen = screen.until("writes b.txt", gone="⚕ ❯")
    assert "/verbose" not in seen or "Hermes" in seen
    assert "\\x1b]0;owned\\x07\\x1b[2J" in seen
    assert "owned" not in screen.title


@pytest.mark.slow
@pytest.mark.parametrize("busy", ["queue", "interrupt", "steer"])
def test_what_is_said_while_it_works_is_read(terminal: Open, vendor: ModelServer, busy: str) -> None:
    vendor.add(Say("first " * 60, pause=0.02), "second answer", "third answer")
    screen = terminal(f"chat --set display.busy={busy}")
    screen.until("❯")
    screen.say("one")
    screen.until("first")
    screen.say("two")
    seen = screen.until("second answer", gone="⚕ ❯")
    assert ("interrupted" in seen) == (busy == "interrupt")
    said = [m["content"] for m in vendor.asked[-1].body["messages"] if m["role"] == "user"]
    assert said == ["one", "two"]


@pytest.mark.slow
def test_it_can_be_made_narrow_and_wide_while_it_works(terminal: Open, vendor: ModelServer) -> None:
    vendor.add(Say("\n\n".join(f"paragraph {n} " + "words " * 20 for n in range(20)), pause=0.02), "still here")
    screen = terminal(columns=120, rows=40)
    screen.until("❯")
    screen.say("write")
    for size in ((60, 20), (20, 5), (200, 60), (80, 24)):
        time.sleep(0.3)
        screen.resize(*size)
    screen.until("paragraph 19", gone="⚕ ❯")
    screen.say("there?")
    seen = screen.until("still here", gone="⚕ ❯")
    assert seen.count("there?") == 1


@pytest.mark.slow
@pytest.mark.parametrize("plain", [{"TERM": "dumb"}, {"words": "chat --plain"}])
def test_plain_lines_hold_no_escape(terminal: Open, vendor: ModelServer, plain: dict[str, str]) -> None:
    vendor.add(call("todo", todos=[]), "a **plain** answer")
    screen = terminal(columns=120, **plain)
    screen.until("/help")
    screen.say("hello")
    screen.until("a **plain** answer", "plans")
    screen.say("/quit")
    seen = screen.until("left with 0")
    assert "❯" not in seen


@pytest.mark.slow
def test_a_background_process_that_ends_wakes_the_session(terminal: Open, vendor: ModelServer) -> None:
    vendor.add(
        call("terminal", command="sleep 1; echo made", background=True, notify_on_complete=True),
        "it runs",
        "it has ended",
    )
    screen = terminal()
    screen.until("PROTECTION")
    screen.say("build it")
    seen = screen.until("it runs")
    if "May this be done?" in seen:
        pytest.skip("there is no sandbox on this machine")
    screen.until("notice: the background process", "it has ended", gone="⚕ ❯")
    assert "[notice]" in vendor.asked[-1].body["messages"][-1]["content"]


@pytest.mark.slow
def test_nothing_is_shown_twice_or_lost_while_it_streams(terminal: Open, vendor: ModelServer) -> None:
    numbers = range(100, 130)
    vendor.add(Say("\n\n".join(f"paragraph {n} goes on for a while" for n in numbers), pause=0.02))
    screen = terminal(rows=100)
    screen.until("❯")
    screen.say("write")
    while "paragraph 129 goes on for a while" not in (seen := screen.seen()):
        assert all(seen.count(f"paragraph {n}") <= 1 for n in numbers), seen
    screen.until("paragraph 129", gone="⚕ ❯")
    whole = screen.seen(is_all=True)
    assert [line for line in whole.splitlines() if line.startswith("para")] == [
        f"paragraph {n} goes on for a while" for n in numbers
    ]


@pytest.mark.slow
def test_a_terminal_that_goes_away_ends_the_chat(terminal: Open, vendor: ModelServer, home: Path) -> None:
    vendor.add(Say("words " * 500, pause=0.05))
    screen = terminal()
    screen.until("❯")
    screen.say("write")
    screen.until("words words")
    screen.close()
    give_up_at = time.monotonic() + 20
    while any(_works_in(place, home) for place in Path("/proc").glob("[0-9]*")):
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def _works_in(process: Path, home: Path) -> bool:
    try:
        return (process / "cwd").readlink().is_relative_to(home)
    except OSError:
        return False
