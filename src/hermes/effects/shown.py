"""How an effect is drawn for the person who is asked: by us, from the effect itself.

Invariant: nothing in what is drawn can move the cursor, turn the direction of text, or pass for words of ours.
"""

import unicodedata
from typing import assert_never

from hermes.domain.effect import CallTool, Connect, Effect, ReadPath, RunCommand, WritePath
from hermes.effects import shell

_LONGEST = 8_000
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def escaped(text: str) -> str:
    """Return text in which every character is one that can be seen; newline and tab stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(one if one in "\n\t" or _is_visible(one) else _escape(one) for one in text)


def _is_visible(one: str) -> bool:
    kind = unicodedata.category(one)
    return one == " " or (kind not in _UNSEEN and kind != "Zs")


def _escape(one: str) -> str:
    number = ord(one)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def draw(effect: Effect) -> str:
    """Return what a person is shown: what will be done, with what, where."""
    return _cut(escaped(_drawn(effect)))


def in_a_line(effect: Effect) -> str:
    """Return one short line for whoever looks on."""
    match effect:
        case RunCommand():
            text = f"$ {effect.command}"
        case ReadPath():
            text = f"read {effect.path}"
        case WritePath():
            text = f"write {effect.path}"
        case Connect():
            text = f"connect {effect.host}:{effect.port}"
        case CallTool():
            text = f"{effect.tool} {effect.arguments}"
        case _:
            assert_never(effect)
    line = " ".join(escaped(text).split())
    return line if len(line) <= 120 else f"{line[:119]}…"


def covered(pattern: str) -> str:
    """Return in words what a wider yes covers; empty when there is no such yes."""
    verb, _, what = pattern.partition(" ")
    match verb:
        case "write":
            said = f"writing {what} again, whatever the content; no other file"
        case "read" if what.endswith("/**"):
            said = f"reading everything below {what[:-3] or '/'}"
        case "read" if what.endswith("/*"):
            said = f"reading every file in {what[:-2] or '/'} that is not hidden"
        case "read":
            said = f"reading {what}"
        case "connect":
            said = f"connecting to {what}"
        case "call":
            said = f"calling the tool {what}, with any arguments"
        case "run":
            said = f"running such commands {what}"
        case _:
            said = pattern
    return _cut(escaped(said))


def _drawn(effect: Effect) -> str:
    match effect:
        case RunCommand():
            how = ("in the background, " if effect.is_background else "") + (
                "OUTSIDE the sandbox, with all of your rights" if effect.is_full else "in the shell"
            )
            found = shell.inspect(effect.command)
            starts = f"starts: {', '.join(found.programs)}" if found else "what it starts cannot be said beforehand"
            return f"run, {how}:\n{_indented(effect.command)}\nin: {effect.cwd}\n{starts}"
        case ReadPath():
            return f"read{' everything below' if effect.is_deep else ''}: {effect.path}"
        case WritePath():
            return f"write: {effect.path}" + (f"\n{_indented(effect.summary)}" if effect.summary else "")
        case Connect():
            return f"connect to: {effect.host} port {effect.port}"
        case CallTool():
            return f"call the tool {effect.tool} with:\n{_indented(effect.arguments)}"
        case _:
            assert_never(effect)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters are not shown …\n{text[-half:]}"
