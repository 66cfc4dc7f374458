"""What a person sees and gets from `hermes config`."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hermes.cli import main
from hermes.config import SCHEMA
from hermes.config.variables import process_environment

PASSWORD = "hunter22"
URL = f"postgresql://user:{PASSWORD}@host/name"


class Shell:
    """Runs `hermes config …` in one home, without the variables of whoever runs the tests."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> tuple[str, str]:
        given = main(["config", words[0], "--home", str(self.home), *words[1:]])
        out, err = self._capsys.readouterr()
        assert given == code, err
        return out, err

    def in_process(self, *words: str, environ: Mapping[str, str], code: int = 0) -> tuple[str, str]:
        kept = {name: value for name, value in process_environment().items() if name in {"PATH", "SYSTEMROOT"}}
        command = [sys.executable, "-c", "import sys; from hermes.cli import main; sys.exit(main())", "config", *words]
        variables = {**kept, "HERMES_HOME": str(self.home), **environ}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=variables)
        assert done.returncode == code, done.stderr
        return done.stdout, done.stderr


@pytest.fixture
def hermes(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name in [n for s in SCHEMA.settings.values() for n in s.names]:
        monkeypatch.delenv(name, raising=False)
    return Shell(tmp_path / "home", capsys)


def test_show_prints_every_setting_and_where_it_comes_from(hermes: Shell) -> None:
    hermes("set", "jobs.workers", "3")
    out, _ = hermes("show", "--origin")
    assert [line.split()[0] for line in out.splitlines()] == list(SCHEMA.settings)
    (line,) = [line for line in out.splitlines() if line.startswith("jobs.workers")]
    assert line.split()[1:] == ["3", f"{hermes.home / 'config.yaml'}:3:12"]
    shown = [line for line in hermes("show")[0].splitlines() if not line.startswith("display.skin")]
    assert not any(line.endswith(" default") for line in shown)


def test_show_as_json_holds_the_same_values_as_get(hermes: Shell) -> None:
    hermes("set", "logging.to_stderr", "true")
    plain, told = json.loads(hermes("show", "--json")[0]), json.loads(hermes("show", "--json", "--origin")[0])
    assert plain["logging"]["to_stderr"] is True
    assert plain["jobs"]["workers"] == int(hermes("get", "jobs.workers")[0])
    for key, one in SCHEMA.settings.items():
        assert told[one.section][one.name]["value"] == plain[one.section][one.name]
        assert told[one.section][one.name]["origin"] == "default" or key == "logging.to_stderr"


def test_get_prints_what_set_wrote_and_unset_brings_the_default_back(hermes: Shell) -> None:
    before = hermes("get", "jobs.lease")
    hermes("set", "jobs.lease", "45s")
    assert hermes("get", "jobs.lease")[0] == "45s\n"
    hermes("unset", "jobs.lease")
    assert hermes("get", "jobs.lease") == before
    assert "neither" in hermes("unset", "jobs.lease")[0]


def test_a_flag_wins_for_one_run(hermes: Shell) -> None:
    hermes("set", "jobs.workers", "3")
    assert hermes("get", "jobs.workers", "--set", "jobs.workers=4", "--set", "jobs.poll=2s")[0] == "4\n"
    assert hermes("get", "jobs.workers")[0] == "3\n"
    assert "jobs.workers" in hermes("show", "--set", "jobs.worker=4", code=3)[1]


def test_a_password_is_shown_by_get_reveal_and_by_nothing_else(hermes: Shell) -> None:
    out, _ = hermes("set", "database.url", URL)
    assert ".env" in out
    assert PASSWORD not in out
    assert [path.name for path in hermes.home.iterdir()] == [".env"]
    everything = [("show",), ("show", "--origin"), ("show", "--json"), ("get", "database.url"), ("check",)]
    for words in (*everything, ("explain", "database.url"), ("set", "database.url", URL), ("unset", "database.url")):
        assert PASSWORD not in "".join(hermes(*words))
        if words[0] == "set":
            assert hermes("get", "database.url", "--reveal")[0] == f"{URL}\n"


def test_the_mask_is_not_taken_for_a_secret(hermes: Shell) -> None:
    hermes("set", "database.url", URL)
    masked = hermes("get", "database.url")[0].strip()
    assert "mask" in hermes("set", "database.url", masked, code=3)[1]
    assert hermes("get", "database.url", "--reveal")[0] == f"{URL}\n"


def test_explain_names_every_place_and_marks_the_winner(hermes: Shell) -> None:
    hermes("set", "jobs.workers", "3")
    (hermes.home / ".env").write_text("HERMES_JOBS_WORKERS=4\n")
    (hermes.home / ".env").chmod(0o600)
    out, err = hermes.in_process("explain", "jobs.workers", environ={"HERMES_JOBS_WORKERS": "5"})
    places = out.partition("wins):\n")[2].splitlines()
    assert [place.split()[-1] for place in places] == ["5", "4", "3", "8"]
    assert [place[0] for place in places] == ["*", " ", " ", " "]
    assert "environment variable HERMES_JOBS_WORKERS" in places[0]
    assert f"{hermes.home / '.env'}:1" in places[1]
    assert f"{hermes.home / 'config.yaml'}:3:12" in places[2]
    assert SCHEMA.settings["jobs.workers"].about.doc in out
    assert "at least 1" in out
    assert all(line.startswith("hermes: note: ") for line in err.splitlines())


def test_set_says_when_a_stronger_place_wins(hermes: Shell) -> None:
    _, err = hermes.in_process("set", "jobs.workers", "3", environ={"HERMES_JOBS_WORKERS": "5"})
    assert "HERMES_JOBS_WORKERS" in err
    assert hermes("set", "jobs.workers", "4")[1] == ""


@pytest.mark.parametrize("words", [("get",), ("set", "1"), ("unset",), ("explain",)])
def test_an_unknown_key_is_not_found_and_the_nearest_is_named(hermes: Shell, words: tuple[str, ...]) -> None:
    _, err = hermes(words[0], "job.workers", *words[1:], code=5)
    assert "did you mean 'jobs.workers'?" in err


def test_a_wrong_value_is_refused(hermes: Shell) -> None:
    _, err = hermes("set", "jobs.workers", "many", code=3)
    assert "'many'" in err
    assert not hermes.home.exists()


def test_path_works_whatever_is_in_the_file(hermes: Shell) -> None:
    hermes.home.mkdir()
    (hermes.home / "config.yaml").write_text("jobs: [\n")
    assert hermes("path")[0] == f"{hermes.home / 'config.yaml'}\n"
    assert "config.yaml:2:1: " in hermes("check", code=3)[1]


@pytest.mark.skipif("os.name != 'posix'", reason="Windows has no such limit")
def test_a_disk_that_takes_no_more_leaves_the_file_as_it_was(hermes: Shell) -> None:
    hermes("set", "jobs.workers", "3")
    before = (hermes.home / "config.yaml").read_text()
    code = (
        "import resource, sys\nfrom hermes.cli import main\nresource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        f"sys.exit(main(['config', 'set', '--home', {str(hermes.home)!r}, 'jobs.workers', '4']))\n"
    )
    done = subprocess.run([sys.executable, "-B", "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 3
    assert "config.yaml cannot be written" in done.stderr
    assert (hermes.home / "config.yaml").read_text() == before
    assert [path.name for path in hermes.home.iterdir()] == ["config.yaml"]


def test_check_fix_closes_the_dotenv(hermes: Shell) -> None:
    hermes.home.mkdir()
    (hermes.home / ".env").write_text("A=1\n")
    (hermes.home / ".env").chmod(0o644)
    assert "0644" in hermes("check")[1]
    assert hermes("check", "--fix")[1] == ""


def editor(tmp_path: Path, line: str) -> str:
    script = tmp_path / "editor.py"
    script.write_text(
        f"import pathlib, sys\nwith pathlib.Path(sys.argv[-1]).open('a') as file:\n    file.write({line!r})\n"
    )
    return f"{sys.executable} {script} --wait"


def test_edit_opens_the_file_and_then_says_what_is_wrong(hermes: Shell, tmp_path: Path) -> None:
    good, bad = editor(tmp_path, "jobs: {workers: 3}\n"), editor(tmp_path, "jobs: {workers: 3}\n")
    assert "in order" in hermes.in_process("edit", environ={"EDITOR": good})[0]
    assert hermes("get", "jobs.workers")[0] == "3\n"
    _, err = hermes.in_process("edit", environ={"VISUAL": bad, "EDITOR": "no-such-editor-anywhere"}, code=3)
    assert "config.yaml:3:1: 'jobs' stands here again" in err


def test_edit_says_when_there_is_no_editor(hermes: Shell) -> None:
    assert "EDITOR" in hermes.in_process("edit", environ={}, code=8)[1]
    assert "no-such-editor" in hermes.in_process("edit", environ={"EDITOR": "no-such-editor-anywhere"}, code=5)[1]


def test_show_loads_no_module_that_only_edits_need(hermes: Shell) -> None:
    code = (
        "import sys\nfrom hermes.cli import main\n"
        f"main(['config', 'show', '--home', {str(hermes.home)!r}])\n"
        "slow = {'ruamel', 'dotenv', 'yaml', 'asyncio', 'ssl', 'anyio'}.intersection(sys.modules)\n"
        "assert not slow, slow\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
