"""From a path as a model writes it to the real one.

Invariant: what is planned is the path with every link followed; nothing else is opened.
"""

import difflib
from pathlib import Path

from hermes.domain.effect import Effect, ReadPath, WritePath
from hermes.domain.errors import HermesError, Misconfigured
from hermes.domain.tool import ToolContext

_LONGEST = 4_096
_MOST_NAMES = 2_000


def resolve(text: str, context: ToolContext) -> Path:
    """Return the real path; relative ones begin in the workspace. Raises Misconfigured for what is no path."""
    if not text or "\0" in text or len(text) > _LONGEST:
        raise Misconfigured(f"{text[:100]!r} is no path; write one such as src/main.py")
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise Misconfigured(f"{text[:100]!r} is no path: it holds half characters") from None
    path = Path(text)
    if text.startswith("~"):
        try:
            path = path.expanduser()
        except RuntimeError:
            raise Misconfigured(f"{text[:100]!r} names the home of nobody here; write the whole path") from None
    return context.machine.files.resolve(context.workspace / path)


def path_of(effects: tuple[Effect, ...]) -> Path:
    """Return the path of the first effect, as it was judged."""
    match effects[0]:
        case ReadPath(path) | WritePath(path):
            return path
        case other:
            raise AssertionError(f"a plan for a file, not for {other!r}")


def shown(path: Path, context: ToolContext) -> str:
    """Return a path as the model may write it again: short inside the workspace."""
    workspace = context.machine.files.resolve(context.workspace)
    return str(path.relative_to(workspace)) if path.is_relative_to(workspace) else str(path)


async def similar(path: Path, context: ToolContext) -> list[str]:
    """Return names beside a path that is not there, the likeliest first; nothing outside the workspace."""
    workspace = context.machine.files.resolve(context.workspace)
    if not path.parent.is_relative_to(workspace):
        return []
    try:
        names = [one.path.name for one in (await context.machine.files.names(path.parent))[:_MOST_NAMES]]
    except HermesError:
        return []
    lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(path.name.lower(), lower, n=5, cutoff=0.5)
    return [shown(path.parent / lower[name], context) for name in near]
