"""The house as it is drawn is the house as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "hermes"


def test_the_map_in_architecture_is_what_the_packages_say() -> None:
    drawn = subprocess.run(
        [sys.executable, ROOT / "scripts" / "draw_map.py", "--check"], capture_output=True, text=True, check=False
    )
    assert drawn.returncode == 0, drawn.stderr


@pytest.mark.parametrize("words", [["--version"], ["--help"], []])
def test_the_first_words_of_the_command_load_next_to_nothing(words: list[str]) -> None:
    code = f"import sys; from hermes.cli import main; main({words!r}); print('LOADED', *sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert loaded.isdisjoint({"asyncio", "ssl", "socket", "sqlite3", "json", "logging", "importlib.metadata"})
    from_packages = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"hermes", "__main__"}
    # Path files of the environment itself may load a finder; nothing of ours does.
    assert {name for name in from_packages if not name.startswith(("_", "sitecustomize"))} == set()
    if words == ["--version"]:
        assert "argparse" not in loaded


def test_help_of_a_command_needs_no_third_party_module() -> None:
    from hermes.cli.command import COMMANDS

    for command in COMMANDS:
        code = (
            "import sys, contextlib\nfrom hermes.cli import main\n"
            f"with contextlib.suppress(SystemExit): main([{command.name!r}, '--help'])\n"
            "print('LOADED', *sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        loaded = set(done.stdout.rpartition("LOADED")[2].split())
        heavy = {
            "asyncio",
            "ssl",
            "anyio",
            "msgspec",
            "sqlalchemy",
            "alembic",
            "yaml",
            "ruamel",
            "cronsim",
            "pysqlite3",
        }
        assert loaded.isdisjoint(heavy), f"{command.name}: {sorted(loaded & heavy)}"
        assert "example" in done.stdout.lower(), f"`hermes {command.name} --help` shows no example"


BANNED = {"utils", "helpers", "common", "misc", "manager", "managers", "base", "v2", "new", "old", "impl", "backup_old"}


def test_no_module_has_a_name_that_says_nothing() -> None:
    names = {path.stem for path in SOURCE.rglob("*.py")} | {path.name for path in SOURCE.rglob("*") if path.is_dir()}
    assert names.isdisjoint(BANNED)


def test_no_type_is_called_for_what_it_is_not() -> None:
    pattern = re.compile(r"^class (\w*(?:Manager|Helper|Base|Util|Utils))\b", re.MULTILINE)
    found = [match[1] for path in SOURCE.rglob("*.py") for match in pattern.finditer(path.read_text())]
    assert found == []


def test_no_module_and_folder_share_a_name() -> None:
    clashes = [path for path in SOURCE.rglob("*.py") if path.with_suffix("").is_dir()]
    assert clashes == []


def test_a_question_that_is_asked_once_loads_nothing_of_the_chat_screen(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom hermes.cli import main\n"
        f"main(['-z', 'hi', '--home', {str(tmp_path)!r}, '-m', 'openai/x', '--set', 'model.attempts=1',"
        " '--set', 'vendors.openai_key=k', '--set', 'vendors.openai_url=http://127.0.0.1:9/v1'])\n"
        "print('LOADED', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL
    )
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert "hermes.app.assistant" in loaded
    # A database that is made anew loads its tools for migrations, and those load pygments.
    assert loaded.isdisjoint({"prompt_toolkit", "rich", "hermes.commands", "hermes.cli.interactive"})
