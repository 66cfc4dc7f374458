"""What of a repository's settings may stay when a command wrote them.

Invariant: what is kept is written in one plain form, stands in the section it is judged in, and names no program: an
unknown key, an odd spelling and an odd value become comments.
"""

import os
import re
from pathlib import Path

from hermes.domain.records import dataclass

_SECTION = re.compile(r'\s*\[([A-Za-z0-9-]+)(?:\.([^\]"\\]+)|\s+"([^"\\]*)")?\]\s*(?:[#;].*)?\Z')
_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=(.*))?\Z")
_ODD = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|\\\Z")
_PLAIN = re.compile(r"[^\"\\#;]*\Z")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CORE = _words("""
    repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf
    compression loosecompression bigfilethreshold sharedrepository quotepath abbrev sparsecheckout sparsecheckoutcone
    untrackedcache splitindex commitgraph multipackindex preloadindex protecthfs protectntfs checkstat trustctime
    whitespace longpaths commentchar fsync fsyncmethod
    """)
_KEYS = {
    "core": _CORE,
    "remote": _words("fetch push mirror prune prunetags tagopt promisor partialclonefilter skipdefaultupdate"),
    "branch": _words("remote pushremote merge rebase description autosetupmerge autosetuprebase sort"),
    "submodule": _words("active path branch ignore shallow recurse fetchjobs"),
    "user": _words("name email signingkey useconfigonly"),
    "author": _words("name email"),
    "committer": _words("name email"),
    "init": _words("defaultbranch"),
    "merge": _words("conflictstyle ff renames renamelimit log stat"),
    "diff": _words("algorithm renames renamelimit context colormoved mnemonicprefix noprefix submodule"),
    "commit": _words("verbose status cleanup gpgsign"),
    "tag": _words("sort gpgsign"),
    "lfs": _words("repositoryformatversion"),
    "http": _words("postbuffer version lowspeedlimit lowspeedtime"),
}
_WHOLE = _words("extensions color advice gc pack fetch pull push rebase status log index feature rerere stash receive")
"""Sections in which no key names a program, a file or a place."""
_BUT = _words("receive.procreceiverefs log.mailmap gc.recentobjectshook rebase.instructionformat push.pushoption")


@dataclass(frozen=True, slots=True)
class Judged:
    """Settings as they may stay. `taken` are the keys that became comments; `text` is the same when there are none."""

    text: str
    taken: tuple[str, ...]


def judged(text: str, git: Path, within: Path) -> Judged:
    """Judge the settings of the repository in the folder `git`, whose files may lie `within` a folder."""
    section, taken, lines = "", [], []
    is_continued = False
    for line in text.removeprefix("\ufeff").split("\n"):
        was_continued, is_continued = is_continued, _goes_on(line, is_inside=is_continued)
        bare = line.removesuffix("\r")
        if not was_continued and (not bare.strip() or bare.lstrip()[0] in "#;"):
            lines.append(line)
            continue
        found = None if was_continued or _ODD.search(bare) else _SECTION.match(bare)
        if found:
            section = _named(found)
            lines.append(line)
            continue
        key = None if was_continued or not section or _ODD.search(bare) else _KEY.match(bare)
        if key and _may_stay(section, key[1].lower(), (key[2] or "").strip(), git, within):
            lines.append(line)
            continue
        lines.append(f"# taken out by hermes: {bare}")
        taken.append(f"{section}.{key[1].lower()}" if key else bare.strip()[:60])
    return Judged("\n".join(lines) if taken else text, tuple(taken))


def _goes_on(line: str, *, is_inside: bool) -> bool:
    """Whether the next line belongs to this one: only what is no comment goes on."""
    bare = line.removesuffix("\r")
    if not is_inside and bare.lstrip()[:1] in ("#", ";"):
        return False
    return (len(bare) - len(bare.rstrip("\\"))) % 2 == 1


def _named(found: "re.Match[str]") -> str:
    below = found[2] if found[2] is not None else found[3]
    return found[1].lower() if below is None else f"{found[1].lower()}.{below}"


def _may_stay(section: str, key: str, value: str, git: Path, within: Path) -> bool:
    first, _, below = section.partition(".")
    if first in _WHOLE:
        return (not below and f"{first}.{key}" not in _BUT) or first in ("color", "advice")
    if section == "core" and key == "worktree":
        return bool(_PLAIN.match(value)) and Path(os.path.realpath(git / value)).is_relative_to(within)
    if first in ("remote", "submodule") and key in ("url", "pushurl"):
        # A helper for a transport is a program; quotes could hide its name.
        return bool(_PLAIN.match(value)) and "::" not in value and not value.startswith("-")
    if first in ("core", "user", "init") and below:
        return False
    return key in _KEYS.get(first, ())
