"""From the bytes of a file to text that a model can read: encodings, notebooks, and what is no text at all.

Invariant: text that is changed on its way to the model is said to be.
"""

import codecs

import msgspec

from hermes.domain.records import dataclass

_LOOKED_AT = 8_192
_MAGIC = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a zip archive or office document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
)
_WIDE = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True, slots=True)
class Text:
    """What can be shown. `note` says in what it differs from the file; such a text must not be written back."""

    text: str
    note: str = ""


def kind_of_binary(raw: bytes) -> str | None:
    """Say what a file is when it is no text."""
    for magic, name in _MAGIC:
        if raw.startswith(magic):
            return name
    is_wide = any(raw.startswith(mark) for mark, _ in _WIDE)
    return "binary" if b"\0" in raw[:_LOOKED_AT] and not is_wide else None


def read_text(raw: bytes, *, name: str) -> Text:
    """Decode a file; a notebook becomes its cells."""
    for mark, encoding in _WIDE:
        if raw.startswith(mark):
            return Text(raw.decode(encoding, "replace"), "" if mark == codecs.BOM_UTF8 else f"decoded from {encoding}")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        said = f"not valid UTF-8 (first at byte {error.start:,}): what is not is shown as \ufffd"
        return Text(raw.decode("utf-8", "replace"), said)
    return _cells(text) or Text(text) if name.endswith(".ipynb") else Text(text)


def _cells(text: str) -> Text | None:
    try:
        cells = msgspec.json.decode(text)["cells"]
        shown = [_cell(number, cell) for number, cell in enumerate(cells, 1)]
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    return Text("\n\n".join(shown), f"the {len(shown)} cells of a notebook; the file itself is JSON")


def _cell(number: int, cell: dict[str, object]) -> str:
    parts = [f"# cell {number} [{cell['cell_type']}]", _joined(cell.get("source"))]
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        data = output.get("data") or {}
        said = _joined(output.get("text") or data.get("text/plain") or output.get("evalue"))
        if said:
            parts.append(f"# output\n{said}")
    return "\n".join(parts)


def _joined(source: object) -> str:
    if isinstance(source, list):
        return "".join(map(str, source))
    return source if isinstance(source, str) else ""
