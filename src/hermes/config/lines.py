"""Changes of one value in a text, which leave every other byte as it is.

Each function offers candidates, the gentlest first. The caller reads them back and takes the first that means what was
wanted, so a form of YAML that was not thought of here costs a candidate, never a wrong file.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import yaml

from hermes.config.document import Document, Entry
from hermes.config.files import Mistake
from hermes.config.kinds import Kind
from hermes.config.migrations import changed

_SIMPLE = re.compile(r"[A-Za-z/][A-Za-z0-9_./+-]*|(?:\d+(?:ms|[smhdw]))+", re.ASCII)
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_SAFE_IN_DOTENV = re.compile(r"[A-Za-z0-9_./:@%+,?&=~-]+", re.ASCII)


def scalar(kind: Kind, text: str) -> str:
    """Return a text of this kind as it is written in YAML."""
    if kind.is_optional and not text:
        return "null"
    if kind.is_list:
        return "[" + ", ".join(_quoted(item.strip()) for item in text.split(",") if item.strip()) + "]"
    return text if kind.is_bare else _quoted(text)


def put(document: Document, key: str, text: str) -> Iterator[str]:
    """Offer the document with `key` set to the YAML `text`."""
    section, _, name = key.partition(".")
    with suppress(Mistake, IndexError):
        yield _put_line(document, section, name, text)
    with suppress(Mistake, TypeError, AttributeError):
        yield _put_again(document.text, section, name, text)


def drop(document: Document, key: str) -> Iterator[str]:
    """Offer the document without `key`."""
    section, _, name = key.partition(".")
    with suppress(Mistake, IndexError):
        yield _drop_line(document, section, name)
    with suppress(Mistake, KeyError, TypeError):
        yield _drop_again(document.text, section, name)


def spread(document: Document, key: str) -> str:
    """Return the text with a section that is written as one value, `model: NAME`, as a section with that `key`."""
    section, _, name = key.partition(".")
    top = _children(document.root).get(section)
    if top is None or not isinstance(top.node, yaml.ScalarNode) or not top.node.value:
        return document.text
    start, column = top.node.start_mark.index, top.key.start_mark.column
    before = document.text[:start].rstrip(" ")
    return f"{before}\n{' ' * column}  {name}: {document.text[start:]}"


def put_variable(text: str, names: Sequence[str], name: str, value: str) -> Iterator[str]:
    """Offer a `.env` in which `name` has this value and none of the other `names` is there."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    forms = [value] if _SAFE_IN_DOTENV.fullmatch(value) else []
    for form in (*forms, f"'{escaped}'", value):
        yield _with_variable(text, names, f"{name}={form}")


def drop_variables(text: str, names: Sequence[str]) -> str:
    """Return a `.env` without these names."""
    return _with_variable(text, names, None)


def _put_line(document: Document, section: str, name: str, text: str) -> str:
    lines = document.text.splitlines(keepends=True)
    end = "\r\n" if "\r\n" in document.text else "\n"
    tops = _children(document.root)
    top = tops.get(section)
    if top is None:
        column = next((e.key.start_mark.column for e in tops.values()), 0)
        lines += [] if not lines or lines[-1].endswith("\n") else [end]
        return "".join([*lines, f"{' ' * column}{section}:{end}", f"{' ' * column}  {name}: {text}{end}"])
    inside = _children(top.node)
    entry = inside.get(name)
    if entry is not None:
        start, stop = entry.node.start_mark, entry.node.end_mark
        if start.line != stop.line:
            raise IndexError(start.line)
        line = lines[start.line]
        gap = " " if start.column == stop.column else ""
        lines[start.line] = line[: start.column] + gap + text + line[stop.column :]
        return "".join(lines)
    column = next((e.key.start_mark.column for e in inside.values()), top.key.start_mark.column + 2)
    after = max((_last_line(e.node) for e in inside.values()), default=top.key.start_mark.line)
    if not lines[after].endswith("\n"):
        lines[after] += end
    lines.insert(after + 1, f"{' ' * column}{name}: {text}{end}")
    return "".join(lines)


def _drop_line(document: Document, section: str, name: str) -> str:
    lines = document.text.splitlines(keepends=True)
    top = _children(document.root).get(section)
    if top is None or name not in _children(top.node):
        return document.text
    inside = _children(top.node)
    first, last = inside[name].key.start_mark.line, _last_line(inside[name].node)
    header = top.key.start_mark.line
    if len(inside) == 1 and header == first - 1 and lines[header].strip() == f"{section}:":
        first = header
    del lines[first : last + 1]
    return "".join(lines)


def _put_again(text: str, section: str, name: str, value: str) -> str:
    def put_in(whole: Any) -> None:  # noqa: ANN401  # ruamel.yaml's documents have no types of use
        if whole.get(section) is None:
            whole[section] = {}
        whole[section][name] = yaml.safe_load(value)

    return changed(text, put_in)


def _drop_again(text: str, section: str, name: str) -> str:
    def take_out(whole: Any) -> None:  # noqa: ANN401  # ruamel.yaml's documents have no types of use
        del whole[section][name]

    return changed(text, take_out)


def _children(node: yaml.Node | None) -> dict[str, Entry]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return {key.value: Entry(key, value) for key, value in pairs if isinstance(key, yaml.ScalarNode)}


def _last_line(node: yaml.Node) -> int:
    # A block collection is said to end where the next thing begins, which may be many comments later.
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return _last_line(node.value[-1])
    return int(node.end_mark.line)


def _quoted(text: str) -> str:
    if _SIMPLE.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\U{ord(character):08x}"


def _with_variable(text: str, names: Sequence[str], assignment: str | None) -> str:
    from dotenv.parser import parse_stream

    parts, end = [], "\r\n" if "\r\n" in text else "\n"
    for binding in parse_stream(io.StringIO(text, newline="")):
        written = binding.original.string
        if binding.key not in names:
            parts.append(written)
            continue
        parts.append(written[: len(written) - len(written.lstrip())])
        if assignment is not None:
            parts.append(assignment + end)
            assignment = None
    if assignment is not None:
        before = "".join(parts)
        parts += [end] if before and not before.endswith(("\n", "\r")) else []
        parts.append(assignment + end)
    return "".join(parts)
