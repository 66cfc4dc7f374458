"""The patch format of several files at once: *** Begin Patch, *** Add/Update/Delete File, *** Move to, @@ hunks.

Invariant: parsing touches nothing; what is not of the format is named with its line.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import Literal

from hermes.domain.errors import Misconfigured
from hermes.domain.records import dataclass
from hermes.tools import fuzzy

_BEGIN, _END, _EOF = "*** Begin Patch", "*** End Patch", "*** End of File"
_MOVE = "*** Move to: "
_KINDS: dict[str, Literal["add", "update", "delete"]] = {
    "*** Add File: ": "add",
    "*** Update File: ": "update",
    "*** Delete File: ": "delete",
}


@dataclass(slots=True)
class Hunk:
    """One place: the line it is below, what stands there, what will."""

    anchors: list[str] = field(default_factory=list)
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    is_at_end: bool = False


@dataclass(slots=True)
class Operation:
    """What happens to one file."""

    kind: Literal["add", "update", "delete"]
    path: str
    move_to: str | None = None
    hunks: list[Hunk] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """What a person is shown."""
        if self.kind == "delete":
            return "delete"
        changes = [
            line for hunk in self.hunks for line in (*(f"-{old}" for old in hunk.old), *(f"+{new}" for new in hunk.new))
        ]
        told = [f"move to {self.move_to}"] if self.move_to else []
        return "\n".join([*told, *changes, *(f"+{line}" for line in self.lines)])[:4_000]


def parse(text: str) -> list[Operation]:
    """Return what a patch says; raise Misconfigured with the line that cannot be."""
    lines = text.strip("\n").replace("\r\n", "\n").split("\n")
    start = next((at for at, line in enumerate(lines) if line.strip() == _BEGIN), -1)
    operations: list[Operation] = []
    for number, line in enumerate(lines[start + 1 :], start + 2):
        if line.rstrip() == _END:
            break
        _take(operations, line, number)
    if not operations:
        raise Misconfigured(f"the patch names no file; begin with {_BEGIN!r}, then '*** Update File: PATH'")
    return operations


def _take(operations: list[Operation], line: str, number: int) -> None:
    for opening, kind in _KINDS.items():
        if line.startswith(opening):
            operations.append(Operation(kind, line[len(opening) :].strip()))
            return
    if not operations:
        if line.strip():
            raise Misconfigured(f"line {number} of the patch is {line[:100]!r}; expected '*** Update File: PATH'")
        return
    current = operations[-1]
    match current.kind:
        case "add":
            if not line.startswith("+") and line.strip():
                raise Misconfigured(f"line {number} of the patch must begin with +, as {current.path!r} is added")
            current.lines.append(line[1:])
        case "delete":
            if line.strip():
                raise Misconfigured(f"line {number} of the patch: nothing follows '*** Delete File'")
        case _:
            _take_update(current, line, number)


def _take_update(current: Operation, line: str, number: int) -> None:
    if line.startswith(_MOVE) and not current.hunks:
        current.move_to = line[len(_MOVE) :].strip()
        return
    if line.startswith("@@"):
        anchor = line[2:].strip().removesuffix("@@").strip()
        if not current.hunks or current.hunks[-1].old or current.hunks[-1].new:
            current.hunks.append(Hunk())
        if anchor:
            current.hunks[-1].anchors.append(anchor)
        return
    if not current.hunks:
        current.hunks.append(Hunk())
    hunk = current.hunks[-1]
    if line.rstrip() == _EOF:
        hunk.is_at_end = True
    elif line[:1] in (" ", "-", "+", ""):
        if line[:1] != "+":
            hunk.old.append(line[1:])
        if line[:1] != "-":
            hunk.new.append(line[1:])
    else:
        raise Misconfigured(
            f"line {number} of the patch is {line[:100]!r}; expected it to begin with space, -, + or @@"
        )


def updated(operation: Operation, content: str) -> str:
    """Return a file's content after its hunks; raise Misconfigured for one that does not fit."""
    at = 0
    for number, hunk in enumerate(operation.hunks, 1):
        if hunk.old == hunk.new:
            continue
        content, at = _apply(hunk, content, at, f"hunk {number} of {operation.path!r}")
    return content


def _apply(hunk: Hunk, content: str, at: int, name: str) -> tuple[str, int]:
    start = at
    for anchor in hunk.anchors:
        start = _below(content, anchor, start, name)
    for old, new in _variants(hunk):
        if not old:
            place = len(content) if hunk.is_at_end or not hunk.anchors else start
            joint = "" if place == 0 or content[:place].endswith("\n") else "\n"
            text = joint + "".join(f"{line}\n" for line in new)
            return content[:place] + text + content[place:], place + len(text)
        found = fuzzy.find_lines(content[start:], "\n".join(old))
        if found is not None:
            first, last = found.spans[-1 if hunk.is_at_end else 0]
            if found.strategy != "exact" and len(found.spans) > 1:
                break
            text = found.fit("\n".join(new))
            # A hunk that removes whole lines removes their ends too.
            last += 1 if not new and content[start + last : start + last + 1] == "\n" else 0
            return content[: start + first] + text + content[start + last :], start + first + len(text)
    near = fuzzy.nearest(content, "\n".join(hunk.old))
    raise Misconfigured(f"{name} does not fit: its lines are not there" + (f"; nearest:\n{near}" if near else ""))


def _variants(hunk: Hunk) -> Iterator[tuple[list[str], list[str]]]:
    """The hunk as it is, then without an empty line that only ended the text of the patch."""
    yield hunk.old, hunk.new
    if hunk.old and hunk.new and hunk.old[-1] == hunk.new[-1] == "":
        yield hunk.old[:-1], hunk.new[:-1]


def _below(content: str, anchor: str, start: int, name: str) -> int:
    """Return where the line after the anchor begins."""
    offset = start
    for line in content[start:].split("\n"):
        offset += len(line) + 1
        if line.strip() == anchor or line.strip().startswith(anchor):
            return min(offset, len(content))
    if start:
        return _below(content, anchor, 0, name)
    near = fuzzy.nearest(content, anchor)
    raise Misconfigured(f"{name}: there is no line {anchor!r}" + (f"; nearest:\n{near}" if near else ""))
