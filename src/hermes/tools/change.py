"""Changes of files, made together or not at all.

Invariant: what was there is written back when a later change of the same call fails; a file that the model has seen in
another state is not overwritten.
"""

import difflib
from collections.abc import Sequence
from pathlib import Path

import anyio

from hermes.domain.errors import HermesError, Misconfigured, Unavailable
from hermes.domain.event import JSON
from hermes.domain.records import dataclass
from hermes.domain.tool import ToolContext
from hermes.tools.content import kind_of_binary
from hermes.tools.paths import shown
from hermes.tools.seen import Seen, sight

LARGEST = 10_000_000
_MOST_DIFFED = 4_000
_LONGEST_DIFF = 8_000
_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Change:
    """One file: `old` is what is there, `new` what will be; None is no file."""

    path: Path
    old: bytes | None
    new: bytes | None


async def present(path: Path, context: ToolContext) -> bytes | None:
    """Return the whole file, None when there is none; raise Misconfigured for what cannot be edited."""
    status = await context.machine.files.status(path)
    if status is None:
        return None
    if status.is_folder:
        raise Misconfigured(f"{str(path)!r} is a folder; name a file in it")
    if status.size > LARGEST:
        raise Misconfigured(f"{str(path)!r} has {status.size:,} bytes; files up to {LARGEST:,} can be edited")
    return await context.machine.files.read(path, limit=LARGEST + 1)


def as_text(path: Path, raw: bytes) -> str:
    """Decode what will be edited; raise Misconfigured where that would lose something."""
    kind = kind_of_binary(raw)
    try:
        if kind is None:
            return raw.decode()
    except UnicodeDecodeError:
        kind = "not valid UTF-8"
    raise Misconfigured(f"{str(path)!r} is {kind}; only text in UTF-8 can be edited in parts")


async def apply(changes: Sequence[Change], context: ToolContext, seen: Seen) -> None:
    """Make all changes, or none; raises what stopped it."""
    done: list[Change] = []
    with anyio.CancelScope(shield=True):
        try:
            with anyio.fail_after(_SECONDS):
                for change in changes:
                    done.append(change)
                    await _put(change.path, change.new, context)
        except (HermesError, TimeoutError) as error:
            lost = await _undo(done, context)
            if lost:
                raise Unavailable(f"{error}; and these could not be put back: {', '.join(lost)}") from error
            if isinstance(error, TimeoutError):
                raise Unavailable(f"nothing was changed: it took longer than {_SECONDS} s") from error
            raise
        for change in changes:
            await _note(change, context, seen)


async def _undo(done: Sequence[Change], context: ToolContext) -> list[str]:
    lost = []
    for change in reversed(done):
        try:
            with anyio.fail_after(_SECONDS):
                if await context.machine.files.status(change.path) is not None or change.old is not None:
                    await _put(change.path, change.old, context)
        except (HermesError, TimeoutError):
            if change is not done[-1]:
                lost.append(shown(change.path, context))
    return lost


async def _put(path: Path, content: bytes | None, context: ToolContext) -> None:
    if content is None:
        await context.machine.files.remove(path)
    else:
        await context.machine.files.write(path, content)


async def _note(change: Change, context: ToolContext, seen: Seen) -> None:
    if change.new is None:
        seen.forget(context.session, change.path)
    else:
        seen.note(context.session, change.path, sight(await context.machine.files.status(change.path), change.new))


def diff(change: Change, name: str) -> str:
    """Return what changes, as people read it; a long one is cut."""
    old, new = _lines(change.old), _lines(change.new)
    same = _common(old, new)
    after = _common(old[same:][::-1], new[same:][::-1])
    changed = max(len(old), len(new)) - same - after
    if changed > _MOST_DIFFED:
        return f"{name}: {changed:,} lines changed, from line {same + 1}"
    first = max(0, same - 3)
    tail = max(0, after - 3)
    parts = difflib.unified_diff(old[first : len(old) - tail], new[first : len(new) - tail], n=3, lineterm="")
    lines = list(parts)[2:]
    shown_at = f"--- {name}\n+++ {name}\n" + (f"from line {first + 1}\n" if first else "") + "\n".join(lines)
    return shown_at if len(shown_at) <= _LONGEST_DIFF else f"{shown_at[:_LONGEST_DIFF]}\n… the rest is not shown"


def counts(change: Change) -> dict[str, JSON]:
    """Return how much a file grew."""
    return {"bytes": len(change.new or b""), "created": change.old is None}


def _lines(raw: bytes | None) -> list[str]:
    return (raw or b"").decode("utf-8", "replace").splitlines()


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
