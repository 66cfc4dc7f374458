"""What can be completed while typing: commands, their words, models, sessions, files after `@`."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hermes.cli.screen import clean
from hermes.commands import CommandDef, Registry

_MOST = 50

Words = Callable[[], Iterable[str]]
"""Gives the words that may follow a command; called while typing, so it returns at once."""


class Completing(Completer):
    """Completes the line that is being written. `words` gives what may follow some commands, by name."""

    def __init__(self, commands: Registry, workspace: Callable[[], Path], words: dict[str, Words]) -> None:
        self._commands = commands
        self._workspace = workspace
        self._words = words

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:  # noqa: ARG002 - as the protocol says
        """Return what the word at the cursor may become."""
        before = document.text_before_cursor
        if before.startswith("/") and "\n" not in before:
            yield from self._command(before)
            return
        word = before.split()[-1] if before and not before[-1].isspace() else ""
        if word.startswith("@"):
            yield from self._files(word)

    def _command(self, before: str) -> Iterator[Completion]:
        name, space, rest = before[1:].partition(" ")
        if not space:
            for one in self._commands.commands:
                if one.name.startswith(name.lower()):
                    yield Completion(one.name, -len(name), display=f"/{one.name}", display_meta=one.summary)
            return
        try:
            command = self._commands.find(name.lower())
        except Exception:  # noqa: BLE001 - nothing can be completed after what is no command
            return
        yield from self._arguments(command, rest)

    def _arguments(self, command: CommandDef, rest: str) -> Iterator[Completion]:
        known: Sequence[str] = command.choices or tuple(self._words.get(command.name, tuple)())
        last = rest.rpartition(" ")[2]
        found = [one for one in known if last.lower() in one.lower()]
        found.sort(key=lambda one: not one.lower().startswith(last.lower()))
        for one in found[:_MOST]:
            yield Completion(one, -len(last), display=clean(one))

    def _files(self, word: str) -> Iterator[Completion]:
        folder, slash, begin = word[1:].rpartition("/")
        place = Path(folder).expanduser() if folder.startswith("~") else self._workspace() / (folder + slash)
        try:
            with os.scandir(place) as entries:
                found = [(not one.is_dir(), one.name) for one, _ in zip(entries, range(5_000), strict=False)]
        except (OSError, ValueError):
            return
        fits = [(is_file, name) for is_file, name in found if name.lower().startswith(begin.lower())]
        shown = [(is_file, name) for is_file, name in fits if begin.startswith(".") or not name.startswith(".")]
        for is_file, name in sorted(shown)[:_MOST]:
            whole = f"{folder}{slash}{name}{'' if is_file else '/'}"
            text = f'@"{whole}"' if " " in whole and is_file else f"@{whole}"
            yield Completion(text, -len(word), display=clean(f"{name}{'' if is_file else '/'}"))
