"""A person at the terminal who is asked: whether something may be done, or what the model wants to know.

Invariant: what is shown is what will be done; only what is typed after the question could be read is an answer to it.
"""

import os
import select
import sys
import termios
import threading
from collections.abc import Sequence

import anyio
import anyio.to_thread

from hermes.cli.progress import harmless
from hermes.domain.approval import Approval, Decision
from hermes.effects.shown import covered

UNSAID = "the person was asked and said nothing"
_LONGEST = 4_000
_LOOK = 0.2
_TOO_SOON = 0.7
"""Seconds; a key that comes earlier was meant for something else."""


class Terminal:
    """Asks on the terminal of this process, one question at a time. Implements `Approver`."""

    def __init__(self) -> None:
        self._one = anyio.Lock()

    async def decide(self, asked: Approval) -> Decision:
        """Show what will be done and why it is asked, and return the answer."""
        async with self._one:
            said = await _read(question(asked), "the command gave up waiting; the question is withdrawn")
        match said.strip().lower():
            case "o" | "once" | "y" | "yes":
                return Decision("given", "once")
            case "s" | "session":
                return Decision("given", "session")
            case "a" | "always":
                return Decision("given", "always")
            case "" | "n" | "no":
                return Decision("denied")
            case _:
                return Decision("denied", reason=said.strip()[:_LONGEST])

    async def answer(self, question: str, choices: Sequence[str] = ()) -> str | None:
        """Put a question of the model's to the person. Nothing typed is an answer, too."""
        listed = "".join(f"  {number}. {harmless(choice)}\n" for number, choice in enumerate(choices, 1))
        async with self._one:
            said = (await _read(f"\n{harmless(question)}\n{listed}> ", "the question is withdrawn")).strip()
        if said.isdigit() and 1 <= int(said) <= len(choices):
            return choices[int(said) - 1]
        return said or UNSAID


def question(asked: Approval) -> str:
    """Lay out a question: what will be done, why it is asked, and what each answer would mean."""
    lines = f"\n{harmless(asked.shown)}\n  why it is asked: {harmless(asked.rule)}\n"
    if not asked.pattern:
        return f"{lines}  this is asked every time\n  [o]nce, or no (say why, if you like): "
    wider = f"  for the session or always would mean: {harmless(covered(asked.pattern))}\n"
    return f"{lines}{wider}  [o]nce, for this [s]ession, [a]lways, or no (say why, if you like): "


async def _read(prompt: str, withdrawn: str) -> str:
    """Show a prompt and read a line. Being cancelled ends the reading and says so, and leaves nothing behind."""
    given_up = threading.Event()
    try:
        return await anyio.to_thread.run_sync(_line, prompt, given_up, abandon_on_cancel=True)
    except anyio.get_cancelled_exc_class():
        sys.stderr.write(f"\n  ({withdrawn})\n")
        sys.stderr.flush()
        raise
    finally:
        given_up.set()


def _line(prompt: str, given_up: threading.Event) -> str:
    handle = sys.stdin.fileno()
    sys.stderr.write(prompt)
    sys.stderr.flush()
    given_up.wait(_TOO_SOON)
    # What was typed before the question could be read is no answer to it.
    termios.tcflush(handle, termios.TCIFLUSH)
    raw = b""
    while not given_up.is_set() and len(raw) < _LONGEST:
        if not select.select([handle], [], [], _LOOK)[0]:
            continue
        piece = os.read(handle, 1024)
        raw += piece
        if not piece or raw.endswith(b"\n"):
            break
    return raw.decode("utf-8", "replace")
