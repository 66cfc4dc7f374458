"""Cuts an answer that streams in into blocks of Markdown that are whole, and the rest that still grows.

Invariant: the blocks and the rest, put together, are the text (code that is cut is opened and closed again). A block is
never given before it is whole, save where it grows beyond a bound: then it is cut at the end of a line.
"""

import re

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^`\n]*)$")
LONGEST = 6_000


class Blocks:
    """One answer as it comes."""

    def __init__(self, *, longest: int = LONGEST) -> None:
        self._longest = longest
        self._rest = ""
        self._seen = 0
        self._fence = ""
        self._opening = ""

    @property
    def pending(self) -> str:
        """What is not whole yet, as Markdown of its own."""
        return self._rest

    def add(self, text: str) -> list[str]:
        """Take more of the answer; return the blocks that are whole now."""
        self._rest += text
        done: list[str] = []
        while (end := self._rest.find("\n", self._seen)) >= 0:
            line, begin = self._rest[self._seen : end], self._seen
            self._seen = end + 1
            if self._ends_with(line, begin):
                done.append(self._take(self._seen))
            elif self._seen > self._longest:
                done.append(self._cut())
        if len(self._rest) - self._seen > self._longest and not self._fence:
            space = self._rest.rfind(" ", self._seen, self._seen + self._longest)
            done.append(self._take(space + 1 if space > self._seen else self._seen + self._longest))
        return [block for block in done if block.strip()]

    def finish(self) -> str:
        """Return what is left; the next answer begins anew."""
        rest, self._fence = self._take(len(self._rest)), ""
        return rest if rest.strip() else ""

    def drop(self) -> None:
        """Forget what is not whole."""
        self.finish()

    def _ends_with(self, line: str, begin: int) -> bool:
        """Whether a block is whole with this line."""
        match = _FENCE.match(line)
        if self._fence:
            closes = match is not None and match[1].startswith(self._fence) and not match[2].strip()
            self._fence = "" if closes else self._fence
            return closes
        if match is not None and begin == 0:
            self._fence, self._opening = match[1], line
            return False
        if match is not None:
            # What stands before the code is a block of its own; the line is looked at again.
            self._seen = begin
            return True
        return not line.strip()

    def _take(self, end: int) -> str:
        block, self._rest, self._seen = self._rest[:end], self._rest[end:], 0
        return block

    def _cut(self) -> str:
        """Give what there is of a block that grows too long."""
        block = self._take(self._seen)
        if not self._fence:
            return block
        self._rest = f"{self._opening}\n{self._rest}"
        self._seen = len(self._opening) + 1
        return f"{block}{self._fence}\n"
