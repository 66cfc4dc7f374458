"""Takes known secrets out of text, in every form a program is likely to write them.

Searched: the text itself; base64, standard and URL-safe, wherever it begins among the bytes around it; hexadecimal in
both cases; percent-encoding, however much of it is encoded; the escapes of JSON and of Python's repr. Secrets shorter
than `SHORTEST` characters are not searched: they would take ordinary words out of the text. What a program hashes,
encrypts, compresses or cuts in pieces is not found.
"""

import base64
import json
import re
import threading
from collections.abc import Iterable, Mapping
from datetime import datetime

MASK = "[secret]"
SHORTEST = 6

_DEEPEST = 8
_LONG_LINE = 16
_TO_URL_SAFE = str.maketrans("+/", "-_")


class Redactor:
    """Cleans text and values for a sink. Any thread may call any method; nothing raises."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._secrets: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self.learn(secrets)

    def learn(self, secrets: Iterable[str]) -> None:
        """Search for these too from now on, such as a key that was just made."""
        with self._lock:
            known = self._secrets | {part for secret in secrets for part in _parts(secret)}
            if known != self._secrets:
                self._secrets, self._pattern = known, None

    def clean(self, text: str) -> str:
        """Return the text with the mask in the place of each secret."""
        if not self._secrets:
            return text
        return (self._pattern or self._compile()).sub(MASK, text)

    def clean_value(self, value: object, depth: int = 0) -> object:
        """Return a value that JSON can hold, with no secret in any of its texts, keys and numbers."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.clean(value)
        if isinstance(value, (int, float)):
            return self._clean_number(value)
        if depth < _DEEPEST and isinstance(value, Mapping):
            return {self.clean(shown(key)): self.clean_value(item, depth + 1) for key, item in value.items()}
        if depth < _DEEPEST and isinstance(value, (list, tuple, set, frozenset)):
            return [self.clean_value(item, depth + 1) for item in value]
        return self.clean(shown(value))

    def _compile(self) -> re.Pattern[str]:
        """Make the pattern when it is first needed: it costs a millisecond a secret."""
        with self._lock:
            pattern = self._pattern = self._pattern or re.compile(_alternation(self._secrets))
            return pattern

    def _clean_number(self, number: float) -> object:
        text = shown(number)
        is_safe = self.clean(text) == text and (isinstance(number, int) or number - number == 0)
        return number if is_safe else self.clean(text)


def shown(value: object) -> str:
    """Return how a log shows a value; one whose repr fails is named by its type."""
    try:
        if isinstance(value, str):
            return value
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, (bytes, bytearray)):
            return bytes(value).decode(errors="backslashreplace")
        return str(value)
    except Exception:  # noqa: BLE001  # a log line must not fail because a stranger's __str__ does
        return f"<{type(value).__name__}>"


def _parts(secret: str) -> list[str]:
    """Return the secret, and its long lines: a key of many lines is often indented where it is printed."""
    lines = secret.splitlines() if "\n" in secret else []
    long = [line.strip() for line in lines if len(line.strip()) >= _LONG_LINE and not line.startswith("-----")]
    return [part for part in (secret, *long) if len(part) >= SHORTEST]


def _alternation(secrets: Iterable[str]) -> str:
    """Return one pattern; alternatives that begin alike are tried together, which is what makes it fast."""
    by_start: dict[str, set[str]] = {}
    for secret in secrets:
        for start, rest in _forms(secret):
            by_start.setdefault(start, set()).add(rest)
    branches = []
    for start, rests in sorted(by_start.items()):
        # Longer first: of two secrets that begin alike the longer one is taken out whole.
        longest_first = sorted(rests, key=lambda rest: (-len(rest), rest))
        branches.append(re.escape(start) + "(?:" + "|".join(longest_first) + ")")
    return "|".join(branches) or r"(?!)"


def _forms(secret: str) -> set[tuple[str, str]]:
    """Return (first character, pattern of what follows) for every form of one secret."""
    raw = secret.encode(errors="surrogatepass")
    plain = {secret, raw.hex(), raw.hex().upper(), repr(secret)[1:-1]}
    plain |= {json.dumps(secret, ensure_ascii=narrow)[1:-1] for narrow in (True, False)}
    forms = {(text[0], re.escape(text[1:])) for text in plain}
    for core, has_rest in _base64(raw):
        tail = "[A-Za-z0-9+/_-]?" if has_rest else ""
        forms |= {(text[0], re.escape(text[1:]) + tail + "={0,2}") for text in {core, core.translate(_TO_URL_SAFE)}}
    return forms | _percent(secret)


def _base64(raw: bytes) -> list[tuple[str, bool]]:
    """Return for each alignment the characters that the secret alone decides, and whether more of it follows."""
    found = []
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw).decode()
        start, stop = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        found.append((encoded[start:stop], (before + len(raw)) % 3 != 0))
    return found


def _percent(secret: str) -> set[tuple[str, str]]:
    """Match each byte as it is or encoded: encoders differ in what they leave alone."""
    patterns = []
    for character in secret:
        encoded = "".join(_percent_byte(byte) for byte in character.encode(errors="surrogatepass"))
        also = r"|\+" if character == " " else ""
        patterns.append(f"(?:{encoded}|{re.escape(character)}{also})")
    rest = "".join(patterns[1:])
    first = secret[0]
    starts = {(first, rest), ("%", "".join(_percent_byte(b) for b in first.encode(errors="surrogatepass"))[1:] + rest)}
    return starts | ({("+", rest)} if first == " " else set())


def _percent_byte(byte: int) -> str:
    return "%" + "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in f"{byte:02x}")
