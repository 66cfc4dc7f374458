#!/usr/bin/env python3
"""Draw the map in ARCHITECTURE.md from the first line of each package, or check that it is up to date."""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- map: drawn by scripts/draw_map.py -->", "<!-- end of map -->"
LINE = re.compile(r"(?:Layer (?P<number>\d+)|Beside the layers): (?P<purpose>.+)")


def entries() -> list[tuple[int, str, str]]:
    found = []
    for path in sorted((ROOT / "src" / "hermes").iterdir()):
        source = path / "__init__.py" if path.is_dir() else path
        if path.name == "__init__.py" or not source.is_file() or source.suffix != ".py":
            continue
        first = (ast.get_docstring(ast.parse(source.read_text())) or "").split("\n")[0]
        match = LINE.fullmatch(first)
        if match is None:
            sys.exit(f"{source.relative_to(ROOT)} must begin with 'Layer n: purpose'")
        found.append((int(match["number"] or 0), path.name + ("/" if path.is_dir() else ""), match["purpose"]))
    return sorted(found, key=lambda entry: (-entry[0], entry[1]))


def drawn() -> str:
    rows = entries()
    width = max(len(name) for _, name, _ in rows)
    lines = [f"{number or '-':>2}  {name:<{width}}  {purpose}" for number, name, purpose in rows]
    return "\n".join([BEGIN, "```text", *lines, "```", END])


def main() -> None:
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    fresh = before + drawn() + after
    if "--check" in sys.argv:
        if fresh != text:
            sys.exit("the map in ARCHITECTURE.md is not what the packages say; run: python3 scripts/draw_map.py")
        return
    DOCUMENT.write_text(fresh)


main()
