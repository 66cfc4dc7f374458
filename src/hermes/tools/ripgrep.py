"""Searches with ripgrep, as a command on the machine: in the sandbox, where there is one, and never writing.

Invariant: what a model wrote reaches the command as a quoted word after `--` or as the value of an option.
"""

import re
import shlex
from datetime import timedelta
from pathlib import Path

from hermes.domain.errors import Misconfigured
from hermes.domain.machine import Command, Finished
from hermes.domain.tool import ToolContext
from hermes.tools.matches import LEFT_OUT, Match, Matches, Search, page, short

_MISSING = 127
_MOST_OUTPUT = 46_000
_SECONDS = 40
_ROW = re.compile(r"(\d+)([:-])(.*)", re.DOTALL)
_ALWAYS = ("rg", "--no-config", "--hidden", "--no-require-git", "--null", "--color=never", "--no-messages")


async def search(search: Search, context: ToolContext) -> Matches | None:
    """Return what was found; None where there is no ripgrep. Raises Misconfigured for a pattern that is none."""
    words = " ".join(map(shlex.quote, _words(search)))
    # A page is all that is wanted; what is before it is skipped here. The error text of ripgrep comes as it is.
    text = f"command -v rg >/dev/null 2>&1 || exit {_MISSING}\n{words} </dev/null | head -c {_most(search)}"
    command = Command(
        text=text,
        cwd=search.root if search.is_folder else search.root.parent,
        session=f"{context.session}:search",
        workspace=context.workspace,
        mode="read-only",
        timeout=timedelta(seconds=_SECONDS),
    )
    done = await context.machine.run(command, lambda _: None)
    if done.exit_code == _MISSING:
        return None
    raw = await _whole(done, context)
    is_cut = len(raw) >= _most(search)
    end = b"\0" if _is_of_names(search) else b"\n"
    return _parsed(raw[: raw.rfind(end) + 1] if is_cut else raw, search, is_cut=is_cut, done=done)


def _is_of_names(search: Search) -> bool:
    return search.by_name or search.mode == "files_only"


def _most(search: Search) -> int:
    return _MOST_OUTPUT if search.first == 0 else 20_000_000


def _words(search: Search) -> list[str]:
    place = "." if search.is_folder else search.root.name
    if search.by_name:
        return [*_ALWAYS, "--files", "--sortr=modified", *_only(search.pattern), "--", place]
    words = [*_ALWAYS, "--with-filename", "--max-filesize=20M"]
    match search.mode:
        case "files_only":
            words += ["--files-with-matches", "--sortr=modified"]
        case "count":
            words += ["--count", "--sort=path"]
        case _:
            words += ["--line-number", "--no-heading", "--sort=path", "--max-columns=400", "--max-columns-preview"]
            words += [f"--context={search.around}", "--no-context-separator"] if search.around else []
    words += _only(search.glob)
    return [*words, f"--regexp={search.pattern}", "--", place]


def _only(glob: str) -> list[str]:
    """Return the words for files of a name. A glob of ripgrep would bring back what .gitignore names, a type does not;
    but a type knows no folders. The last glob counts.
    """
    if not glob:
        wanted = []
    elif "/" in glob:
        wanted = [f"--glob={glob}"]
    else:
        wanted = [f"--type-add=wanted:{glob}", "--type=wanted"]
    return wanted + [f"--glob=!{name}" for name in sorted(LEFT_OUT)]


async def _whole(done: Finished, context: ToolContext) -> bytes:
    if done.spilled is None:
        return done.output
    files = context.machine.files
    return await files.read(files.resolve(done.spilled), limit=20_000_000)


def _parsed(raw: bytes, search: Search, *, is_cut: bool, done: Finished) -> Matches:
    folder = search.root if search.is_folder else search.root.parent
    text = raw.decode("utf-8", "surrogateescape")
    rows = _names(text, folder) if _is_of_names(search) else _lines(text, folder, search)
    if not rows and text.strip() and "\0" not in text:
        raise Misconfigured(f"the pattern {search.pattern!r} was not understood: {text.strip()[:500]}")
    found = page(rows, search, "it took too long; name a folder or a file_glob" if done.is_timed_out else "")
    return Matches(found.rows, found.is_cut or is_cut, found.note)


def _names(text: str, folder: Path) -> list[Match]:
    return [Match(folder / name.removeprefix("./")) for name in text.split("\0")[:-1]]


def _lines(text: str, folder: Path, search: Search) -> list[Match]:
    rows = []
    for row in text.split("\n"):
        name, mark, rest = row.partition("\0")
        path = folder / name.removeprefix("./")
        if not mark:
            continue
        if search.mode == "count":
            rows.append(Match(path, int(rest)))
        elif found := _ROW.fullmatch(rest):
            rows.append(Match(path, int(found[1]), short(found[3]), found[2] == ":"))
    return rows
