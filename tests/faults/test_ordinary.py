"""Ordinary work goes on in the sandbox as it does without one: the same commands, side by side, in two copies."""

import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest

from hermes.config import Settings
from hermes.config.variables import process_environment
from hermes.domain.clock import SystemClock
from hermes.domain.effect import RunCommand
from hermes.domain.machine import Command, Finished
from hermes.domain.principal import Principal
from hermes.effects.places import Grounds
from hermes.effects.policy import Situation, judge
from hermes.machines.local import LocalMachine, open_local

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
LINES = Path(__file__).parent / "ordinary.txt"
MOST_NETWORK, MOST_KEPT = 0.05, 20
MOMENT = {
    "GIT_AUTHOR_DATE": "2024-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2024-01-01T00:00:00Z",
    "GIT_EDITOR": "true",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
FILES = {
    "README.md": "# Demo\n\nA small project to try things with.\nhello world\n",
    "LICENSE": "Do what you want.\n",
    ".gitignore": "build/\n__pycache__/\n*.pyc\nhello-c\n",
    ".envrc": "export DEMO=1\n",
    ".vscode/settings.json": "{}\n",
    "src/app/__init__.py": "",
    "src/app/main.py": "import sys\n\n\ndef add(a, b):\n    return a + b\n\n\n"
    "if __name__ == '__main__':\n    print('hello', add(1, 2))\n",
    "src/hello.c": '#include <stdio.h>\nint main(void) { puts("hello from c"); return 0; }\n',
    "src/hello.js": "console.log('hello from js');\n",
    "tests/__init__.py": "",
    "tests/test_main.py": "import unittest\n\nfrom app.main import add\n\n\nclass T(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n",
    "data/sales.csv": "item,count\napple,3\npear,4\napple,3\n",
    "data/words.txt": "hello\nworld\nagain\n",
    "data/config.json": '{"name": "demo", "list": [1, 2, 3]}\n',
    "package.json": '{"name": "demo", "version": "1.0.0", "scripts": '
    '{"hello": "echo hello", "test": "node src/hello.js"}}\n',
    "Makefile": "all: hello\nhello:\n\t@echo hello\nclean:\n\trm -rf out\ntest:\n\t@echo tested\n"
    "hello-c: src/hello.c\n\t$(CC) $(CFLAGS) -o $@ $<\n.PHONY: all hello clean test\n",
    "sub/Makefile": "all:\n\t@echo sub\n",
    "script.sh": "#!/bin/sh\necho script $#\n",
}


@dataclass(frozen=True, slots=True)
class Line:
    mark: str
    text: str


def lines() -> list[Line]:
    found = []
    for raw in LINES.read_text().splitlines():
        if not raw or raw.startswith("#"):
            continue
        mark, text = (raw[0], raw[2:]) if raw[:2] in {"~ ", "- ", "! ", "% "} else ("", raw)
        before, opened, rest = text.partition("«")
        inner, _, after = rest.rpartition("»")
        found += [Line(mark, before + one + after) for one in (inner.split("¦") if opened else [text])]
    return found


def project(folder: Path, environment: dict[str, str]) -> Path:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "script.sh").chmod(0o755)
    (folder / "dist").mkdir()
    with zipfile.ZipFile(folder / "dist" / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "word = 'tiny indeed'\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "First"]):
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True)
    (folder / "LICENSE").write_text("Do what you want, really.\n")
    subprocess.run(["git", "commit", "-q", "-a", "-m", "Second"], cwd=folder, env=environment, check=True)
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    home = tmp_path / "person"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Ordinary Person\n\temail = person@example.com\n")
    path = f"{Path(sys.base_prefix) / 'bin'}:{process_environment()['PATH']}"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", **MOMENT}


async def ran(machine: LocalMachine, line: Line, folder: Path, *, is_free: bool) -> Finished:
    mode, session = ("full", "free") if is_free else ("workspace", "held")
    one = Command(line.text, folder, session, folder, mode, timedelta(seconds=60), environment=MOMENT)  # type: ignore[arg-type] # one of two words
    return await machine.run(one, lambda _: None)


_TELLING = re.compile(rb"0x[0-9a-f]+|line \d+|pid \d+|\[\d+\] \d+|\d+\.\d+ ?m?s|/tmp/tmp\.?\w+")


def compared(done: Finished, folder: Path, home: str) -> bytes:
    """Return an output without what differs from run to run anyway."""
    text = done.output.replace(str(folder).encode(), b"WORK").replace(home.encode(), b"HOME")
    return _TELLING.sub(b"N", text)


@pytest.mark.anyio
async def test_ordinary_commands_do_the_same_in_the_sandbox(tmp_path: Path, environment: dict[str, str]) -> None:
    held, free = (project(tmp_path / name / "work", environment) for name in ("held", "free"))
    odd: list[str] = []
    all_lines = lines()
    async with open_local(Settings(home=tmp_path / "home"), SystemClock(), environment=environment) as machine:
        if machine.protection != "sandbox":
            pytest.skip(machine.describe())
        for line in all_lines:
            inside = await ran(machine, line, held, is_free=False)
            if line.mark in {"-", "!"}:
                if inside.exit_code == 0:
                    odd.append(f"{line.text}: was let through")
                continue
            outside = await ran(machine, line, free, is_free=True)
            if line.mark == "%":
                continue
            one, other = (compared(inside, held, "/home/hermes"), compared(outside, free, environment["HOME"]))
            if inside.exit_code != outside.exit_code or (line.mark != "~" and one != other):
                odd.append(
                    f"{line.text}: {inside.exit_code} {one[-300:]!r} instead of {outside.exit_code} {other[-300:]!r}"
                )
    network = sum(line.mark == "!" for line in all_lines)
    print(f"{len(all_lines)} ordinary commands, {network} of the network, {len(odd)} differ")
    assert not odd, "\n".join(odd)


def test_there_are_enough_ordinary_commands() -> None:
    all_lines = lines()
    assert len(all_lines) >= 500
    assert sum(line.mark == "!" for line in all_lines) <= len(all_lines) * MOST_NETWORK
    assert sum(line.mark in {"-", "%"} for line in all_lines) <= MOST_KEPT


def test_nobody_is_asked_about_ordinary_work() -> None:
    """In the sandbox the text of a command decides nothing; only what leaves it is asked about, host by host."""
    workspace = Path("/srv/project")
    grounds = Grounds(home=Path("/home/ada/.hermes"), user_home=Path("/home/ada"))
    held = Situation(Principal.owner(), "workspace", "sandbox", True, workspace, grounds)
    every = lines()
    asked = [line.text for line in every if judge(RunCommand(line.text, workspace), held).decision != "allow"]
    leaving = sum(line.mark == "!" for line in every)
    print(f"{len(every)} ordinary commands, {len(asked)} asked about, {leaving} reach for a host")
    assert asked == []
    assert len(every) >= 500
    assert leaving / len(every) <= MOST_NETWORK
    # What wants to leave the sandbox is another thing.
    assert judge(RunCommand("make", workspace, is_full=True), held).decision == "ask"
