"""A person at the terminal who is asked: whether something may be done, or what the model wants to know.

Invariant: what is shown is what will be done; only what is typed after the question is an answer to it.
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

_LONGEST = 4_000
_LOOK = 0.2


class Terminal:
    """Asks on the terminal of this process, one question at a time. Implements `Approver`."""

    def __init__(self) -> None:
        self._one = anyio.Lock()

    async def decide(self, asked: Approval) -> Decision:
        """Show what will be done and why it is asked, and return the answer."""
        async with self._one:
            said = await _read(
                f"\n{harmless(asked.shown)}\n  why it is asked: {harmless(asked.rule)}\n"
                "  [o]nce, for this [s]ession, [a]lways, or no (say why, if you like): "
            )
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
        """Put a question of the model's to the person."""
        listed = "".join(f"  {number}. {harmless(choice)}\n" for number, choice in enumerate(choices, 1))
        async with self._one:
            said = (await _read(f"\n{harmless(question)}\n{listed}> ")).strip()
        if said.isdigit() and 1 <= int(said) <= len(choices):
            return choices[int(said) - 1]
        return said or None


async def _read(prompt: str) -> str:
    """Show a prompt and read a line. Being cancelled ends the reading, and leaves nothing behind."""
    given_up = threading.Event()
    try:
        return await anyio.to_thread.run_sync(_line, prompt, given_up, abandon_on_cancel=True)
    finally:
        given_up.set()


def _line(prompt: str, given_up: threading.Event) -> str:
    handle = sys.stdin.fileno()
    # What was typed before the question was there is no answer to it.
    termios.tcflush(handle, termios.TCIFLUSH)
    sys.stderr.write(prompt)
    sys.stderr.flush()
    raw = b""
    while not given_up.is_set() and len(raw) < _LONGEST:
        if not select.select([handle], [], [], _LOOK)[0]:
            continue
        piece = os.read(handle, 1024)
        raw += piece
        if not piece or raw.endswith(b"\n"):
            break
    return raw.decode("utf-8", "replace")
