"""What a run does, as lines for a person who watches: one for each tool, the answer as it comes, what was decided.

Invariant: nothing that a model or a tool writes reaches the terminal as an order to it.
"""

import json
import re
import sys
from collections.abc import Callable
from typing import TextIO

from hermes.cli.screen import clean, columns, cut, line
from hermes.domain.event import Data, Event
from hermes.domain.message import Message

_LOOKS = {
    "terminal": ("💻", "runs"),
    "process": ("⚙️ ", "watches"),
    "read_file": ("📖", "reads"),
    "write_file": ("✍️ ", "writes"),
    "patch": ("🔧", "patches"),
    "search_files": ("🔎", "searches"),
    "todo": ("📋", "plans"),
    "clarify": ("❓", "asks"),
    "recall": ("🧠", "recalls"),
}
_OTHER = ("⚡", "uses")
_MAIN_ARGUMENT = ("command", "path", "pattern", "query", "question", "action", "id")
_LONGEST_DETAIL = 400
_LAST_LINES = 3
# What is left of a text when it must not steer a terminal: its lines and its tabs.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """Return the text with what a terminal would obey as escapes, but lines and tabs as they are."""
    return _STEERING.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


class Lines:
    """Prints a line for each tool and for what a person should know; with `is_answering` also the answer."""

    def __init__(
        self, out: TextIO, *, is_answering: bool = False, is_verbose: bool = False, is_plain: bool = False
    ) -> None:
        self._out = out
        self._is_answering = is_answering
        self.is_verbose = is_verbose
        self._is_drawing = not is_plain and out.isatty()
        self._is_in_line = False
        self._is_open = False
        """Whether the line of a tool that runs stands there, to be written over when it has ended."""

    def watch(self, event: Event) -> None:
        """Show an event of a run."""
        match event.type:
            case "text.delta" if self._is_answering:
                self._write(harmless(str(event.data["text"])))
            case "reasoning.delta" if self.is_verbose:
                self._write(harmless(str(event.data["text"])))
            case "answer.delta":
                self._line(f"↻ {clean(str(event.data['text']))}")
            case "tool.progress" if event.data["state"] == "began":
                if self._is_drawing:
                    self.end()
                    self._write(cut(f"{tool_line(event.data)}…", columns() - 1))
                    self._is_open = True
            case "tool.progress":
                self._ended(event.data)
            case "run.progress" if event.data["state"] != "tool" or self.is_verbose:
                self._line(f"· {clean(str(event.data['text']))}")
            case _:
                return

    def _ended(self, data: Data) -> None:
        if self._is_open:
            self._out.write("\r\x1b[K")
            self._is_in_line = self._is_open = False
        self._line(cut(tool_line(data), columns()))
        for said in remarks(data):
            self._line(cut(f"┊   ↳ {clean(said)}", columns()))

    def end(self) -> None:
        """End the line that was begun."""
        self._is_open = False
        if self._is_in_line:
            self._out.write("\n")
            self._is_in_line = False
        self._out.flush()

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()
        self._is_in_line = not text.endswith("\n")

    def _line(self, text: str) -> None:
        self.end()
        self._out.write(f"{text}\n")
        self._out.flush()


def tool_line(data: Data) -> str:
    """Return the line of a tool that has begun or ended."""
    return f"{work_line(data)}  {_seconds(data)}".rstrip()


def work_line(data: Data) -> str:
    """Return what a tool does, without how long it took."""
    name = str(data["name"])
    emoji, verb = _LOOKS.get(name, _OTHER)
    detail = _detail(str(data["arguments"]))
    own = "" if name in _LOOKS else f" {clean(name)}"
    return f"┊ {emoji} {verb}{own} {clean(detail)}"


def _detail(arguments: str) -> str:
    try:
        said = json.loads(arguments)
    except ValueError:
        return arguments[:_LONGEST_DETAIL]
    if not isinstance(said, dict):
        return arguments[:_LONGEST_DETAIL]
    main = next((said[name] for name in _MAIN_ARGUMENT if name in said), None)
    text = main if isinstance(main, str) else arguments
    return " ".join(text.split())[:_LONGEST_DETAIL]


def _seconds(data: Data) -> str:
    seconds = data.get("seconds")
    return f"{seconds:.1f}s" if isinstance(seconds, (int, float)) else ""


def remarks(data: Data) -> list[str]:
    """Return what went wrong, if something did: the error, or the exit code and the last lines of what was printed."""
    text = str(data.get("text", ""))
    try:
        said = json.loads(text)
    except ValueError:
        return [text[:_LONGEST_DETAIL]] if data.get("is_error") else []
    if not isinstance(said, dict):
        return []
    remarks = [str(said["error"])] if said.get("error") else []
    if said.get("exit_code"):
        remarks.append(f"exit {said['exit_code']}")
        remarks += str(said.get("output", "")).strip().splitlines()[-_LAST_LINES:]
    return remarks


class JsonLines:
    """Prints each event of a run as one line of JSON, for programs."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def watch(self, event: Event) -> None:
        """Print an event."""
        self.write({"type": event.type, **event.data})

    def write(self, said: object) -> None:
        """Print a line."""
        self._out.write(f"{line(said)}\n")
        self._out.flush()


def for_screen(message: Message) -> str:
    """Return what a message says, harmless for a terminal."""
    return harmless(message.text)


Watch = Callable[[Event], None]


def to_standard_error() -> TextIO:
    """Where progress is shown: the answer has standard output for itself."""
    return sys.stderr
