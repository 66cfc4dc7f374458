"""Whether a text from a file tries to give the model orders of its own. An alarm for people, never the boundary.

Invariant: pure, linear in the length of the text, and it says what it found, so that a person can look.
"""

import re
from typing import NamedTuple


class Suspicion(NamedTuple):
    """What was found, and in which line."""

    why: str
    line: int


_HIDDEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_SIGNS = tuple(
    (why, re.compile(pattern, re.IGNORECASE))
    for why, pattern in (
        (
            "tells the model to forget its instructions",
            (
                r"\b(ignore|disregard|forget|override)\b[^.\n]{0,40}\b(previous|prior|above|earlier|all|your|system)\b"
                r"[^.\n]{0,30}\b(instructions?|prompts?|rules?|guidelines?|directives?)\b"
            ),
        ),
        (
            "hides what is done from the person",
            (
                r"\b(do not|don't|never|without)\b[^.\n]{0,20}\b(tell|inform|mention|show|reveal)\w*\b"
                r"[^.\n]{0,20}\bthe (user|human|operator|owner)\b"
            ),
        ),
        ("gives the model another identity", r"\byou are (now|no longer)\b|\bnew (system prompt|persona)\b"),
        (
            "imitates the frame of a conversation",
            r"<\|?(im_start|im_end|system|endoftext)\|?>|^\s*(###\s*)?(system|assistant)\s*:\s*$",
        ),
        (
            "sends a secret away",
            r"\b(curl|wget|nc|fetch)\b[^\n]{0,120}(\$\{?\w*(KEY|TOKEN|SECRET|PASSWORD)|\.env\b|id_rsa|credentials)",
        ),
        (
            "reads a secret",
            r"\b(cat|less|base64|xxd|type)\b[^\n]{0,60}(\.ssh/|\.aws/|\.netrc|\.hermes/\.env|/etc/shadow)",
        ),
        (
            "switches approvals off",
            r"\b(bypass|disable|skip|turn off)\b[^.\n]{0,30}\b(approvals?|sandbox|safety|policy)\b",
        ),
    )
)
_COMMENT = re.compile(r"<!--(.{0,4000}?)-->", re.DOTALL)
_ORDER = re.compile(r"\b(instructions?|assistant|agent|model|must|execute|secret)\b", re.IGNORECASE)


def suspect(text: str) -> Suspicion | None:
    """Return the first sign that a text is not what it seems; None when there is none."""
    for number, line in enumerate(text.splitlines(), start=1):
        # A mark of byte order at the very beginning is an old habit of editors.
        hidden = _HIDDEN.search(line.removeprefix("\ufeff") if number == 1 else line)
        if hidden is not None and not _joins_signs(line, hidden.start()):
            return Suspicion(f"holds a character that cannot be seen (U+{ord(hidden[0]):04X})", number)
        for why, sign in _SIGNS:
            if sign.search(line[:2000]):
                return Suspicion(why, number)
    for comment in _COMMENT.finditer(text):
        if len(_ORDER.findall(comment[1])) >= 2:
            return Suspicion("gives orders in a comment that is not shown", text.count("\n", 0, comment.start()) + 1)
    return None


def _joins_signs(line: str, place: int) -> bool:
    """Whether this is the joiner inside an emoji of several signs, which is a usual letter."""
    return line[place] == "\u200d" and 0 < place < len(line) - 1 and ord(line[place - 1]) > 0x2000
