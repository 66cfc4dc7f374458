"""House rules that a linter does not know."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "hermes"
LONGEST_FILE = 500
LONGEST_FUNCTION = 60

# Who may start programs, open sockets or write files. Everybody else asks one of them.
MAY_REACH_OUT = ("store/", "testing/", "cli/", "config/", "telemetry/", "net/", "machines/", "llm/local/")
REACHING_OUT = {"subprocess", "socket", "http", "urllib.request", "ftplib", "smtplib", "pty"}
# Asks the machine for its name and opens nothing.
EXCEPTIONS = {"jobs/worker.py": {"socket"}}
# Places that load late because that is their task, and those where a rare path must not cost every start.
MAY_IMPORT_LATE = (
    "__init__.py",
    "app/",
    "cli/",
    "plugins/",
    "config/",
    "store/",
    "telemetry/",
    "testing/",
    "tools/syntax.py",
    "effects/shell.py",
    "llm/wire/failing.py",
)


def modules() -> Iterator[tuple[str, ast.Module, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        yield str(path.relative_to(SOURCE)), ast.parse(text), text


def test_no_file_is_longer_than_a_reader_s_patience() -> None:
    long = {name: text.count("\n") for name, _, text in modules() if text.count("\n") > LONGEST_FILE}
    assert long == {}


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{name}:{node.name}"
        for name, tree, _ in modules()
        if "migrations/versions" not in name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno > LONGEST_FUNCTION
    ]
    assert long == []


def test_no_error_is_swallowed() -> None:
    swallowed = [
        f"{name}:{node.lineno}"
        for name, tree, _ in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and len(node.body) == 1 and isinstance(node.body[0], ast.Pass)
    ]
    assert swallowed == []


def test_only_the_listed_places_reach_out_of_the_process() -> None:
    found = [
        f"{name}: {module}"
        for name, tree, _ in modules()
        if not name.startswith(MAY_REACH_OUT)
        for module in imported(tree)
        if module in REACHING_OUT and module not in EXCEPTIONS.get(name, set())
    ]
    assert found == []


def test_only_the_listed_places_import_late() -> None:
    late = [
        f"{name}:{node.lineno}"
        for name, tree, _ in modules()
        if not name.startswith(MAY_IMPORT_LATE)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert late == []


def test_importing_a_module_does_nothing() -> None:
    """At the top of a module stand definitions; no call but to make a constant."""
    allowed = (
        ast.Import,
        ast.ImportFrom,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Assign,
        ast.AnnAssign,
    )
    found = [
        f"{name}:{node.lineno}"
        for name, tree, _ in modules()
        if name != "store/migrations/env.py"  # run by Alembic, never imported
        for node in tree.body
        if not isinstance(node, allowed)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        and not (
            isinstance(node, ast.Try)
            and all(isinstance(n, ast.Import | ast.ImportFrom | ast.AnnAssign) for n in node.body)
        )
        and not isinstance(node, ast.If)
    ]
    assert found == []


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_every_module_says_what_it_is_for() -> None:
    silent = [name for name, tree, _ in modules() if not ast.get_docstring(tree)]
    assert silent == []


def test_nothing_committed_names_a_machine_or_an_index() -> None:
    import subprocess

    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    words = ("pypi" + ".org", "files.python" + "hosted", "registry.npm" + "js", "deb." + "debian", "/work" + "/main")
    found = [
        f"{name}: {word}"
        for name in tracked
        if (ROOT / name).is_file()
        for word in words
        if word in (ROOT / name).read_text(errors="replace")
    ]
    assert found == []


def test_records_are_made_by_the_one_that_costs_little_at_start() -> None:
    exceptions = {"config/document.py", "config/reading.py", "domain/records.py"}
    found = [
        name
        for name, tree, _ in modules()
        if not name.startswith("testing/") and name not in exceptions
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and node.module == "dataclasses"
        and any(alias.name == "dataclass" for alias in node.names)
    ]
    assert found == []
