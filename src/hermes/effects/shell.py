"""What can be said for certain about a shell command before it runs.

Used for what leaves the sandbox, for what is provably only reading where there is no sandbox, and for what a person is
shown. Invariant: what is not fully understood is `None`; nothing here ever makes a command safer than it is.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from hermes.domain.records import dataclass

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_LONGEST = 4_096
_MOST_COMMANDS = 64
_DEEPEST = 40
# Controls but tab and newline, spaces that only look like one, and what turns the direction of text.
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ud800-\udfff]"
)
_SPECIAL = re.compile(r"[*?\[\]{}~$`!\\]")
_TRANSPARENT = {"program", "list", "pipeline", "redirected_statement"}
_PUNCTUATION = {"&&", "||", ";", "|", "\n"}
_KEYWORDS = frozenset({"coproc", "time", "select", "function", "case", "until", "while"})


def _words(text: str) -> list[str]:
    return text.split()


INTERPRETERS = frozenset(
    _words("""
    sh bash dash zsh ksh fish csh tcsh busybox python python2 python3 pypy pypy3 node deno bun perl ruby php lua
    luajit Rscript julia osascript pwsh powershell tclsh expect awk gawk mawk sed ed vi vim nvim emacs gdb make
    env xargs nohup setsid timeout nice time sudo su doas pkexec chroot unshare nsenter ssh scp rsync socat nc
    ncat docker podman kubectl npx pnpx bunx uvx pipx uv eval exec source . command builtin trap find parallel
    watch script strace tar git-shell at batch crontab systemd-run screen tmux
    """)
)
"""Programs that do whatever their arguments say: a yes to one call is never a yes to the next."""

_NO_FILES: frozenset[str] = frozenset()
_READERS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(
        _words("""
    cat head wc ls pwd echo true false basename dirname stat cut tr nl tac rev cmp comm du df grep egrep fgrep
    which whoami id uname md5sum sha1sum sha256sum sha512sum seq sleep
    """),
        _NO_FILES,
    ),
    "tail": frozenset({"--pid"}),
    "file": frozenset({"-C", "--compile"}),
    "diff": frozenset({"-r", "--recursive"}),
    "sort": frozenset({"-o", "--output", "--compress-program", "-T", "--temporary-directory", "--files0-from"}),
    "date": frozenset({"-s", "--set"}),
    "tree": frozenset({"-o", "-l"}),
    "rg": frozenset({"--pre", "--hostname-bin", "-z", "--search-zip", "-L", "--follow"}),
    "find": frozenset(
        {
            "-exec",
            "-execdir",
            "-ok",
            "-okdir",
            "-delete",
            "-fprint",
            "-fprint0",
            "-fprintf",
            "-fls",
            "-L",
            "-H",
            "-follow",
        }
        | {"-files0-from"}
    ),
}
"""Programs that only read, with the options that make them do more or follow links on their way."""

_PLAIN_GIT = frozenset(
    _words("""
    add commit status diff log show branch switch checkout stash merge tag
    """)
)


@dataclass(frozen=True, slots=True)
class Inspection:
    """The commands of a shell line, word by word as the programs get them, and the files it writes by redirection."""

    commands: tuple[tuple[str, ...], ...]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs, without their folders, each once."""
        return tuple(dict.fromkeys(words[0].rpartition("/")[2] for words in self.commands))

    def is_read_only(self, may_read: Callable[[str], bool]) -> bool:
        """Whether every command only reads, and only what `may_read` allows of the words that may be paths."""
        if self.writes or not all(may_read(path) for path in self.reads):
            return False
        return all(_only_reads(words, may_read) for words in self.commands)

    def pattern(self) -> str:
        """What a wider yes would cover: exactly these words again, or the like; empty when there is no such yes."""
        if not INTERPRETERS.isdisjoint(self.programs) or self.writes:
            return ""
        return " ; ".join(_pattern(words) for words in self.commands)


def inspect(text: str) -> Inspection | None:
    """Return what a command does in plain words, None when it cannot be said."""
    if len(text) > _LONGEST or _ODD.search(text):
        return None
    tree = _parser().parse(text.encode())
    if tree.root_node.has_error:
        return None
    try:
        found = list(_walk(tree.root_node, 0))
    except _Unclear:
        return None
    commands = tuple(tuple(words) for kind, words in found if kind == "command")
    if not commands or len(commands) > _MOST_COMMANDS:
        return None
    reads = tuple(words[0] for kind, words in found if kind == "read")
    writes = tuple(words[0] for kind, words in found if kind == "write")
    return Inspection(commands, reads, writes)


class _Unclear(Exception):
    """A part that is not plain words."""


@cache
def _parser() -> "Parser":
    """Load the grammar, which costs more than the rest of the start, when the first command is looked at."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _walk(node: "Node", depth: int) -> Iterator[tuple[str, list[str]]]:
    if depth > _DEEPEST:
        raise _Unclear
    match node.type:
        case "command":
            words = [_word(child) for child in node.children if child.type != "file_redirect"]
            if words[0] in _KEYWORDS:
                raise _Unclear
            yield "command", words
            for child in node.children:
                if child.type == "file_redirect":
                    yield from _redirect(child)
        case "file_redirect":
            yield from _redirect(node)
        case "comment":
            return
        case kind if kind in _TRANSPARENT:
            for child in node.children:
                if child.type not in _PUNCTUATION:
                    yield from _walk(child, depth + 1)
        case _:
            raise _Unclear


def _redirect(node: "Node") -> Iterator[tuple[str, list[str]]]:
    sign = next((child.type for child in node.children if not child.is_named), "")
    target = _word(node.children[-1])
    if sign in {">&", "<&"} and target.isdigit():
        return
    if sign == "<":
        yield "read", [target]
    elif sign in {">", ">>", "&>", "&>>", ">|"}:
        if target != "/dev/null":
            yield "write", [target]
    else:
        raise _Unclear


def _word(node: "Node") -> str:
    """Return a word as the program gets it; raise where the shell would put something else in its place."""
    text = (node.text or b"").decode()
    match node.type:
        case "command_name" if len(node.children) == 1:
            return _word(node.children[0])
        case "word" | "number":
            if _SPECIAL.search(text):
                raise _Unclear
            return text
        case "raw_string":
            return text[1:-1]
        case "string":
            if any(child.type not in {'"', "string_content"} for child in node.children) or _SPECIAL.search(text):
                raise _Unclear
            return text[1:-1]
        case "concatenation":
            return "".join(_word(child) for child in node.children)
        case _:
            raise _Unclear


def _only_reads(words: tuple[str, ...], may_read: Callable[[str], bool]) -> bool:
    refused = _READERS.get(words[0])
    if refused is None:
        return False
    for word in words[1:]:
        if word.startswith("-") and _is_refused(word, refused):
            return False
        # An option may have its value attached, as in -fNAME and --file=NAME.
        parts = (word[2:], word.partition("=")[2]) if word.startswith("-") else (word,)
        if not all(may_read(part) for part in parts if part):
            return False
    return True


def _is_refused(word: str, refused: frozenset[str]) -> bool:
    name = word.partition("=")[0]
    if word.startswith("--"):
        # Programs take an option's beginning for the option.
        return any(one.startswith(name) for one in refused)
    return name in refused or any(len(one) == 2 and one[1] in word[1:] for one in refused)


def _pattern(words: tuple[str, ...]) -> str:
    if words[0] == "git" and len(words) > 1 and words[1] in _PLAIN_GIT:
        kept = [word for word in words[2:] if word.startswith("-")]
        return " ".join([*map(shlex.quote, (*words[:2], *kept)), *(["*"] if len(kept) < len(words) - 2 else [])])
    return shlex.join(words)
