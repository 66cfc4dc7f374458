#!/usr/bin/env python3
"""Write docs/reference from the code, or check that it is up to date."""

import argparse
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from hermes.cli.command import COMMANDS, EXIT_CODES
from hermes.commands import CATALOGUE
from hermes.commands.definition import CATEGORIES
from hermes.config import SCHEMA

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
NOTE = "<!-- written by scripts/write_reference.py -->"


INTRODUCTION = """\
A value comes from the strongest place that gives one: a flag (`--set jobs.workers=4`), the environment, `.env` in the
home, `config.yaml` in the home, the default. `hermes config explain KEY` names file and line. Every setting also has a
variable `HERMES_<SECTION>_<KEY>`.
"""


def settings() -> str:
    lines = [
        f"# Settings\n\n{NOTE}\n",
        INTRODUCTION,
        "| key | default | what it is for |\n|---|---|---|",
    ]
    for key, one in SCHEMA.settings.items():
        names = "".join(f" `{name}`" for name in one.about.names)
        default = "none" if one.default is None else f"`{one.kind.write(one.default)}`"
        lines.append(f"| `{key}` | {default} | {one.about.doc}{' Also:' + names if names else ''} |")
    return "\n".join(lines) + "\n"


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                yield from parsers(child)


def commands() -> str:
    parts = [f"# Commands\n\n{NOTE}\n", "| command | what it does |\n|---|---|"]
    parts += [f"| [`hermes {c.name}`](#hermes-{c.name}) | {c.summary} |" for c in COMMANDS]
    parts.append("\nExit codes: 0 done, 1 failed or something was found, 2 wrong words, 130 interrupted, and")
    parts.append(", ".join(f"{code} {kind.__name__}" for kind, code in EXIT_CODES[:-1]) + ".\n")
    for command in COMMANDS:
        module = importlib.import_module(command.module)
        top = argparse.ArgumentParser(prog=f"hermes {command.name}", description=module.__doc__, allow_abbrev=False)
        module.configure(top)
        parts.append(f"## hermes {command.name}\n")
        parts += [f"```text\n{parser.format_help().rstrip()}\n```\n" for parser in parsers(top)]
    return "\n".join(parts)


def slash_commands() -> str:
    lines = [
        f"# Slash commands\n\n{NOTE}\n",
        "What can be ordered in a chat. A beginning is enough where it can mean only one.\n",
    ]
    for category in CATEGORIES:
        lines.append(
            f"## {category}\n\n| command | also | what it does | while it works | where |\n|---|---|---|---|---|"
        )
        for one in CATALOGUE.commands:
            if one.category == category:
                also = " ".join(f"`/{name}`" for name in one.aliases)
                when = "yes" if one.while_running else "no"
                where = "everywhere" if one.where == "both" else one.where
                lines.append(f"| `{one.usage}` | {also} | {one.summary} | {when} | {where} |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    # The help wraps at the width of the terminal; the reference does not.
    os.environ["COLUMNS"] = "100"  # noqa: TID251
    if "--check" in sys.argv and sys.version_info[:2] != (3, 11):
        print("not checked: other Pythons lay the help out otherwise")
        return
    for name, text in (
        ("settings.md", settings()),
        ("commands.md", commands()),
        ("slash-commands.md", slash_commands()),
    ):
        path = REFERENCE / name
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(
                f"docs/reference/{name} is not what the code says; run: .venv/bin/python scripts/write_reference.py"
            )


main()
