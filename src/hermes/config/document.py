"""`config.yaml`, read with the place of every key and value, so that each mistake can be pointed at.

Every mistake is found in one reading. What stands under a key that begins with `x-` belongs to others.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hermes.config.files import Mistake
from hermes.config.migrations import VERSION_KEY
from hermes.config.origin import InFile
from hermes.config.schema import Schema, Setting, nearest

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = "tag:yaml.org,2002:null"
_STANDARD = "tag:yaml.org,2002:"


class Entry(NamedTuple):
    """One key of a mapping with its value's node, as they stand in the file."""

    key: yaml.ScalarNode
    node: yaml.Node


@dataclass(frozen=True)
class Document:
    """One text and the file it stands (or will stand) in.

    A text that was migrated gives for each of its lines, counted from 0, the line of the file it came from.
    """

    path: Path
    text: str
    lines: Sequence[int] | None = None

    @cached_property
    def root(self) -> yaml.MappingNode | None:
        """The top of the document, None when it is empty. Raises Mistake when it cannot be read."""
        try:
            node = yaml.compose(self.text, Loader=_Loader)
        except yaml.YAMLError as error:
            raise Mistake(self._syntax(error)) from None
        if node is None or _is_null(node):
            return None
        if not isinstance(node, yaml.MappingNode):
            raise Mistake(
                f"{self.at(node)}: expected sections such as 'jobs:' at the top of the file, got {_what(node)}"
            )
        return node

    def at(self, node: yaml.Node) -> InFile:
        """Return where a node begins."""
        return self._place(node.start_mark.line, node.start_mark.column)

    def _place(self, line: int, column: int) -> InFile:
        if self.lines:
            line = self.lines[min(line, len(self.lines) - 1)]
        return InFile(self.path, line + 1, column + 1)

    def version(self, newest: int) -> int:
        """Return the file's version; a file that does not say is of the first."""
        entry = next((e for e in _entries(self.root) if e.key.value == VERSION_KEY), None)
        if entry is None:
            return 1
        text = entry.node.value if isinstance(entry.node, yaml.ScalarNode) else ""
        if not re.fullmatch(r"[1-9]\d{0,8}", text, re.ASCII):
            raise Mistake(f"{self.at(entry.node)}: expected a version from 1 to {newest} for {VERSION_KEY!r}")
        if int(text) > newest:
            raise Mistake(
                f"{self.at(entry.node)}: this file is of version {text} and this Hermes reads up to {newest}; "
                "install a newer Hermes, or put an older copy of the file back"
            )
        return int(text)

    def entries(self, schema: Schema, mistakes: list[str]) -> dict[str, Entry]:
        """Return every known key with its place, and add to `mistakes` what does not belong there."""
        found: dict[str, Entry] = {}
        for top in self._distinct(self.root, mistakes):
            section = top.key.value
            if section == VERSION_KEY:
                continue
            if section not in schema.sections:
                mistakes.append(f"{self.at(top.key)}: unknown key {section!r}{_hint_at_top(section, schema)}")
            elif isinstance(top.node, yaml.MappingNode):
                found |= self._in_section(section, top.node, schema, mistakes)
            elif (whole := schema.whole(section)) and _is_text(top.node):
                found[whole] = top
            elif not _is_null(top.node):
                mistakes.append(f"{self.at(top.node)}: expected settings under {section!r}, got {_what(top.node)}")
        return found

    def text_of(self, node: yaml.Node, setting: Setting) -> str:
        """Return what stands at a node as the text that the setting's kind parses."""
        expects = f"expected {setting.expects} for {setting.key!r}"
        if _is_null(node):
            if setting.kind.is_optional:
                return ""
            raise Mistake(f"{self.at(node)}: {expects}, got nothing; remove the line to use the default")
        if setting.kind.is_list:
            items = node.value if isinstance(node, yaml.SequenceNode) else [node]
            if isinstance(node, yaml.SequenceNode) and all(_is_text(i) and "," not in i.value for i in items):
                return ",".join(i.value for i in items)
            raise Mistake(f"{self.at(node)}: {expects} without commas in them, got {_what(node)}")
        if not _is_text(node) or (setting.kind.is_bare and _is_quoted(node)):
            raise Mistake(f"{self.at(node)}: {expects}, got {_what(node)}")
        return str(node.value)

    def _in_section(
        self, section: str, node: yaml.MappingNode, schema: Schema, mistakes: list[str]
    ) -> dict[str, Entry]:
        found = {}
        for entry in self._distinct(node, mistakes):
            key = f"{section}.{entry.key.value}"
            if key in schema.settings:
                found[key] = entry
            else:
                near = nearest(entry.key.value, schema.in_section(section))
                hint = f"did you mean {near!r}?" if near else f"known: {', '.join(schema.in_section(section))}"
                mistakes.append(f"{self.at(entry.key)}: unknown key {key!r}; {hint}")
        return found

    def _distinct(self, node: yaml.Node | None, mistakes: list[str]) -> Iterator[Entry]:
        seen: dict[str, yaml.Node] = {}
        for key, value in node.value if node is not None else ():
            if not isinstance(key, yaml.ScalarNode):
                mistakes.append(f"{self.at(key)}: expected a word as a key, got {_what(key)}")
            elif key.value in seen:
                first = self.at(seen[key.value]).line
                mistakes.append(f"{self.at(key)}: {key.value!r} stands here again; it is already given in line {first}")
            else:
                seen[key.value] = key
                if not key.value.startswith("x-"):
                    yield Entry(key, value)

    def _syntax(self, error: yaml.YAMLError) -> str:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        if mark is None:
            odd = yaml.reader.Reader.NON_PRINTABLE.search(self.text)
            before = self.text[: odd.start() if odd else 0]
            line, column = before.count("\n"), len(before) - (before.rfind("\n") + 1)
            what = f"the character {odd[0]!r} is not allowed in YAML" if odd else "cannot be read as YAML"
            return f"{self._place(line, column)}: {what}"
        lines = self.text.splitlines()
        start = lines[mark.line] if mark.line < len(lines) else ""
        if "\t" in start[: len(start) - len(start.lstrip())]:
            return f"{self._place(mark.line, start.index(chr(9)))}: a tab indents this line; use spaces"
        problem = getattr(error, "problem", None) or "cannot be read"
        context = getattr(error, "context", None)
        reason = f"{problem} ({context})" if context else problem
        return f"{self._place(mark.line, mark.column)}: this is not YAML: {reason}"


def _entries(node: yaml.MappingNode | None) -> Iterator[Entry]:
    for key, value in node.value if node is not None else ():
        if isinstance(key, yaml.ScalarNode):
            yield Entry(key, value)


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _NULL


def _is_text(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag.startswith(_STANDARD) and not _is_null(node)


def _is_quoted(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and bool(node.style)


def _what(node: yaml.Node) -> str:
    if not node.tag.startswith(_STANDARD):
        return f"the tag {node.tag!r}"
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return f"the quoted text {node.value!r}" if _is_quoted(node) else repr(node.value)


def _hint_at_top(word: str, schema: Schema) -> str:
    section, _, name = word.partition(".")
    if f"{section}.{name}" in schema.settings:
        return f"; write {name!r} on its own line under {section + ':'!r}"
    if near := nearest(word, tuple(schema.sections)):
        return f"; did you mean {near!r}?"
    if inside := [s for s in schema.settings.values() if s.name == word]:
        return f"; did you mean {inside[0].name!r} under {inside[0].section + ':'!r}?"
    return f"; known: {', '.join(schema.sections)}"
