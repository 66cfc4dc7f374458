"""The documents are run: what stands in their console blocks is typed, and what they show is compared.

In a shown line `…` is anything. A fenced block that begins with `# file: NAME` is written to NAME first.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from hermes.testing.model_server import ModelServer
from hermes.testing.turn import Turn, call

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)(?P<target>[^)#]+)")


class Terminal:
    """A home of its own, commands in the background, and an end to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._background: list[subprocess.Popen[bytes]] = []
        ours = ("HERMES_", "DATABASE_", "REDIS_")
        keep = {k: v for k, v in os.environ.items() if not k.startswith(ours)}  # noqa: TID251 - handed on
        self._environment = keep | {
            "HERMES_HOME": str(folder / "home"),
            "COLUMNS": "200",
            "PATH": f"{Path(sys.executable).parent}:{keep['PATH']}",
            "PYTHONPATH": str(folder),
        }

    def set(self, name: str, value: str) -> None:
        self._environment[name] = value

    def type(self, command: str) -> str:
        if command.endswith("&"):
            return self._begin(command.removesuffix("&").strip())
        # Each command has a shell of its own, so what is in the background is named here.
        last = str(self._background[-1].pid) if self._background else ""
        done = subprocess.run(
            command.replace("$!", last), shell=True, cwd=self.folder, env=self._environment, capture_output=True,
            text=True, timeout=50, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if command.startswith("kill"):
            self._background.pop().wait(20)
        return done.stdout

    def _begin(self, command: str) -> str:
        log = (self.folder / "background.log").open("ab")
        process = subprocess.Popen(command.split(), cwd=self.folder, env=self._environment, stdout=log, stderr=log)
        log.close()
        self._background.append(process)
        return ""

    def close(self) -> None:
        for process in self._background:
            process.send_signal(signal.SIGKILL)
            process.wait(20)


# What the model says in a document that asks one.
SAYS: dict[str, list[Turn]] = {
    "first-question": [
        call("read_file", path="beds.txt"),
        "Tomatoes and beans.",
        call("patch", mode="replace", path="beds.txt", old_string="beans\n", new_string="beans\npeas\n"),
        "I added peas.",
        "Peas.",
    ],
    "use-from-python": [call("search_files", pattern="*", target="files"), "One file, ask.py.", "Python."],
}


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


@contextmanager
def vendor(document: str, terminal: Terminal) -> Iterator[None]:
    """Let a model of our own answer, where a document asks one."""
    if document not in SAYS:
        yield
        return
    server = ModelServer(SAYS[document])
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server.opened()):
        terminal.set("OPENAI_API_KEY", "sk-fake")
        terminal.set("OPENAI_BASE_URL", f"{server.url}/v1")
        yield


def exchanges(body: str) -> Iterator[tuple[str, list[str]]]:
    command, shown = "", []
    for line in body.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        else:
            shown.append(line)
    yield command, shown


def is_like(shown: list[str], printed: str) -> bool:
    lines = ["\n" if line == "…" else line for line in shown]
    pattern = "\n".join(".*" if line == "\n" else re.escape(line).replace("…", ".*") for line in lines)
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def install(folder: Path) -> None:
    """Make what a package of a document offers known, as installing it would."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    points = [f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in names.items()) for group, names in groups]
    (info / "entry_points.txt").write_text("\n".join(points))


WITH_CONSOLE = [d for d in DOCUMENTS if "```console" in d.read_text()]


@pytest.mark.parametrize("document", WITH_CONSOLE, ids=lambda d: d.stem)
def test_what_stands_in_the_document_happens(document: Path, terminal: Terminal) -> None:
    with vendor(document.stem, terminal):
        walk(document, terminal)


def walk(document: Path, terminal: Terminal) -> None:
    for block in BLOCK.finditer(document.read_text()):
        body = block["body"]
        if body.startswith("# file: "):
            name, _, text = body.removeprefix("# file: ").partition("\n")
            (terminal.folder / name).write_text(text)
            if name == "pyproject.toml":
                install(terminal.folder)
        elif block["language"] == "console":
            for command, shown in exchanges(body):
                printed = terminal.type(command)
                assert not shown or is_like(shown, printed), f"{command}\nshown:\n{shown}\nprinted:\n{printed}"


@pytest.mark.parametrize("document", [*DOCUMENTS, *ROOT.glob("*.md")], ids=lambda d: d.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    dead = [m["target"] for m in LINK.finditer(document.read_text()) if not (document.parent / m["target"]).exists()]
    assert dead == []


def test_the_comparison_can_fail() -> None:
    assert is_like(["a…c", "…"], "abc\nx\ny")
    assert not is_like(["a…c"], "abd")
    assert not is_like(["a"], "a\nb")


def test_the_reference_is_what_the_code_says() -> None:
    script = ROOT / "scripts" / "write_reference.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_make_help_lists_every_target() -> None:
    make = shutil.which("make")
    assert make is not None
    shown = subprocess.run([make, "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()
    assert [t for t in targets if f"make {t} " not in shown] == []
