"""A change alters one value and nothing else, or nothing at all."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.config import Secret, Settings, Url, load
from hermes.config.changes import Editor
from hermes.config.migrations import Migrations
from hermes.config.reading import read
from hermes.config.schema import About, schema_of, setting
from hermes.domain.errors import Misconfigured, NotFound

COMMENTED = """\
# my settings
_config_version: 1

jobs:   # how work is done
    # four is enough
    workers: 4      # for now

# the log
logging:
    level:   info # quiet

x-theirs: [1,   2]
"""


def home_with(home: Path, config: str | None = None, dotenv: str | None = None) -> Path:
    for name, text in (("config.yaml", config), (".env", dotenv)):
        if text is not None:
            (home / name).write_bytes(text.encode())
            (home / name).chmod(0o600)
    return home


def config_of(home: Path) -> str:
    return (home / "config.yaml").read_bytes().decode()


def test_a_changed_value_leaves_every_other_byte_as_it_was(tmp_path: Path) -> None:
    home = home_with(tmp_path, COMMENTED)
    Editor(home).put("jobs.workers", "16")
    assert config_of(home) == COMMENTED.replace("workers: 4 ", "workers: 16 ")


def test_a_new_value_comes_after_the_last_of_its_section_and_before_the_comments_of_the_next(tmp_path: Path) -> None:
    home = home_with(tmp_path, COMMENTED)
    Editor(home).put("jobs.lease", "1m")
    assert config_of(home) == COMMENTED.replace("# for now\n", "# for now\n    lease: 1m\n")


def test_a_value_that_is_taken_out_takes_its_line_and_no_comment_of_others(tmp_path: Path) -> None:
    home = home_with(tmp_path, COMMENTED)
    Editor(home).drop("jobs.workers")
    assert config_of(home) == COMMENTED.replace("    workers: 4      # for now\n", "")


def test_what_was_put_and_taken_out_again_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    home = home_with(tmp_path, COMMENTED)
    for key, text in (("jobs.lease", "1m"), ("events.keep", "2d"), ("time.zone", "Europe/Berlin")):
        Editor(home).put(key, text)
        assert config_of(home) != COMMENTED
        Editor(home).drop(key)
        assert config_of(home) == COMMENTED


@pytest.mark.parametrize(
    "config",
    [
        "",
        "# only a comment",
        "jobs:",
        "jobs:\n",
        "jobs: {}\n",
        "jobs: {workers: 1, lease: 5s}\n",
        "jobs: {workers: 1}",
        "{jobs: {workers: 1}}\n",
        "jobs: ~\n",
        "jobs:\n  workers: &n 1\n",
        "jobs:\n  workers:\n    1\n",
        "jobs:\n  workers: 1\nlogging:\n  backups: 3\n",
        "  jobs:\n     workers: 1\n",
        "jobs:\r\n  workers: 1\r\n",
        "---\njobs:\n  workers: 1\n...\n",
        "---\nlogging:\n  backups: 3\n...\n",
        "x-a: 1",
        "jobs:\n  x-mine:\n    - 1\n    - 2\n\n# next\ntime: {zone: UTC}\n",
        '"jobs":\n  "workers": 1\n',
    ],
)
def test_every_way_to_write_yaml_can_be_changed(tmp_path: Path, config: str) -> None:
    home = home_with(tmp_path, config)
    before = load(home=home, environ={})
    Editor(home).put("jobs.workers", "77")
    after = load(home=home, environ={})
    assert after.jobs.workers == 77
    assert after.jobs.lease == before.jobs.lease
    assert (after.logging, after.time) == (before.logging, before.time)
    Editor(home).drop("jobs.workers")
    assert "jobs.workers" not in load(home=home, environ={}).given


TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=30)
SPANS = st.integers(1, 10**6).map(lambda n: f"{n}s")
KEYS: dict[str, st.SearchStrategy[str]] = {
    "jobs.workers": st.integers(1, 10_000).map(str),
    "jobs.lease": SPANS,
    "events.keep": SPANS,
    "logging.to_stderr": st.sampled_from(["true", "no", "ON"]),
    "logging.level": st.sampled_from(["debug", "error"]),
    "time.zone": st.sampled_from(["UTC", "Europe/Berlin", "Etc/GMT+5"]),
    "database.url": st.text(st.characters(min_codepoint=33, exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc"))).map(
        lambda text: f"sqlite:///{text}"
    ),
}
CHANGES = st.lists(st.sampled_from(sorted(KEYS)).flatmap(lambda key: st.tuples(st.just(key), st.none() | KEYS[key])))


@settings(max_examples=60, deadline=None)
@given(changes=CHANGES, start=st.sampled_from(["", COMMENTED, "jobs: {lease: 9s}\n", "x-a: 1"]))
def test_whatever_was_put_last_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, str | None]], start: str
) -> None:
    home = home_with(tmp_path_factory.mktemp("home"), start)
    wanted = {key: load(home=home, environ={}).value(key) for key in KEYS}
    for key, text in changes:
        if text is None:
            Editor(home).drop(key)
            wanted[key] = Settings(home=home).value(key)
        else:
            Editor(home).put(key, text)
            wanted[key] = load(home=home, environ={}, flags={key: text}).value(key)
        assert {key: load(home=home, environ={}).value(key) for key in KEYS} == wanted
    whole_lines = [line for line in start.splitlines() if line.lstrip().startswith("#")]
    assert [line for line in config_of(home).splitlines() if line in whole_lines] == whole_lines


@dataclass(frozen=True, slots=True)
class Free:
    """Settings that may be any text, open and secret."""

    text: str = setting("t", About("d"))
    names: tuple[str, ...] = setting((), About("d"))
    key: Secret = setting(Secret("s"), About("d"))  # it makes a field


@dataclass(frozen=True, slots=True)
class Whole:
    free: Free = field(default_factory=Free)


@settings(max_examples=200, deadline=None)
@given(text=TEXTS, key=st.sampled_from(["free.text", "free.names", "free.key"]))
def test_any_text_is_kept_exactly_or_refused_with_nothing_written(
    tmp_path_factory: pytest.TempPathFactory, text: str, key: str
) -> None:
    home = home_with(tmp_path_factory.mktemp("home"), "# kept\nfree:\n  x-a: 1 # kept\n", "# kept\nB='2'\n")
    schema = schema_of(Whole)
    before = (config_of(home), (home / ".env").read_text())
    try:
        Editor(home, schema).put(key, text)
    except Misconfigured:
        assert (config_of(home), (home / ".env").read_text()) == before
        return
    reading = read(home, flags={}, environ={}, schema=schema)
    assert reading.given[key][-1].value == schema.settings[key].parse(text, home)
    assert config_of(home).startswith(before[0].rstrip())
    assert (home / ".env").read_text().startswith(before[1])


def test_a_secret_goes_to_the_dotenv_and_leaves_the_file(tmp_path: Path) -> None:
    home = home_with(
        tmp_path, "database:\n  url: postgresql://u:old-one@h/d\n", "# mine\nA=1\nHERMES_DB_URI=sqlite:///x\n"
    )
    done = Editor(home).put("database.url", "postgresql://u:it's # new@h/d".replace(" ", "%20"))
    assert any(".env" in line for line in done)
    assert "new" not in "".join(done)
    assert "old-one" not in config_of(home)
    assert load(home=home, environ={}).database.url == Url("postgresql://u:it's%20#%20new@h/d")
    assert load(home=home, environ={}).notices == ()
    assert (home / ".env").read_text().startswith("# mine\nA=1\n")


@pytest.mark.skipif("os.name != 'posix'", reason="Windows has no such permissions")
def test_what_is_made_is_for_its_owner_only(tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    Editor(home).put("jobs.workers", "3")
    Editor(home).put("redis.url", "redis://:secret-one@h")
    assert home.stat().st_mode & 0o077 == 0
    assert {path.name: path.stat().st_mode & 0o777 for path in home.iterdir()} == {"config.yaml": 0o600, ".env": 0o600}


def test_a_value_that_is_wrong_is_refused_with_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match="at least 1"):
        Editor(tmp_path / "home").put("jobs.workers", "0")
    with pytest.raises(NotFound, match=r"jobs\.workers"):
        Editor(tmp_path / "home").put("jobs.worker", "1")
    assert not (tmp_path / "home").exists()


def test_a_file_that_is_wrong_elsewhere_is_left_alone_and_its_mistake_is_named(tmp_path: Path) -> None:
    for broken, place in (("jobs:\n  wrkers: 1\n", ":2:3: "), ("jobs: [\n", ":2:1: ")):
        home = home_with(tmp_path, broken)
        with pytest.raises(Misconfigured, match=place):
            Editor(home).put("jobs.lease", "1m")
        assert config_of(home) == broken


@pytest.mark.parametrize("mend", [lambda e: e.put("jobs.workers", "2"), lambda e: e.drop("jobs.workers")])
def test_a_wrong_value_can_be_mended(tmp_path: Path, mend: Callable[[Editor], list[str]]) -> None:
    home = home_with(tmp_path, "jobs:\n  workers: many\n", "HERMES_JOBS_WORKERS=more\n")
    mend(Editor(home))
    assert load(home=home, environ={}).jobs.workers in {2, Settings(home=home).jobs.workers}


def test_a_change_moves_a_value_out_of_the_other_file(tmp_path: Path) -> None:
    home = home_with(tmp_path, "", "HERMES_JOBS_WORKERS=5\nB=2\n")
    Editor(home).put("jobs.workers", "6")
    assert load(home=home, environ={}).jobs.workers == 6
    assert (home / ".env").read_text() == "B=2\n"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "kept.yaml").write_text("jobs: {workers: 1}\n")
    (tmp_path / "home" / "config.yaml").symlink_to(tmp_path / "kept.yaml")
    Editor(tmp_path / "home").put("jobs.workers", "2")
    assert (tmp_path / "home" / "config.yaml").is_symlink()
    assert "2" in (tmp_path / "kept.yaml").read_text()


@pytest.mark.skipif("os.name != 'posix'", reason="Windows has no such lock")
def test_changes_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    changes = {"jobs.workers": "3", "jobs.lease": "3s", "events.keep": "3d", "logging.backups": "3", "time.zone": "UTC"}
    threads = [threading.Thread(target=Editor(tmp_path).put, args=change) for change in changes.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(load(home=tmp_path, environ={}).given) == set(changes)
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def rename_workers(document: Any) -> None:  # noqa: ANN401  # a round-trip document has no type of use
    jobs = document.get("jobs") or {}
    if "hands" in jobs:
        jobs.insert(list(jobs).index("hands"), "workers", jobs.pop("hands"))


TO_TWO: Migrations = {1: rename_workers}
OLD = "# mine\njobs:\n  lease: 5s  # short\n  hands: 3\nlogging:\n  backups: 2\n"


def test_an_old_file_is_read_as_the_newest_version_and_stays_as_it_is(tmp_path: Path) -> None:
    home = home_with(tmp_path, OLD)
    with pytest.raises(Misconfigured, match="hands"):
        load(home=home, environ={})
    read = load(home=home, environ={}, migrations=TO_TWO)
    assert read.jobs.workers == 3
    assert config_of(home) == OLD
    assert "check --fix" in read.notices[0]
    assert str(read.origin("logging.backups")).endswith("config.yaml:6:12")
    assert ":4:" in str(read.origin("jobs.workers"))


def test_a_mistake_in_an_old_file_is_pointed_at_where_it_stands(tmp_path: Path) -> None:
    home = home_with(tmp_path, OLD.replace("backups", "bakups"))
    with pytest.raises(Misconfigured, match=r"config\.yaml:6:3: "):
        load(home=home, environ={}, migrations=TO_TWO)


def test_an_old_file_that_cannot_be_rewritten_is_a_clear_mistake(tmp_path: Path) -> None:
    home = home_with(tmp_path, OLD + "logging: {}\n")
    for act in (
        lambda: load(home=home, environ={}, migrations=TO_TWO),
        lambda: Editor(home, migrations=TO_TWO).put("jobs.lease", "1s"),
    ):
        with pytest.raises(Misconfigured, match=r"config\.yaml.* line 7"):
            act()


def test_fix_writes_the_newest_version_with_its_comments_and_keeps_a_copy(tmp_path: Path) -> None:
    home = home_with(tmp_path, OLD)
    assert len(Editor(home, migrations=TO_TWO).fix()) == 2
    assert (home / "config.yaml.v1").read_text() == OLD
    assert "_config_version: 2" in config_of(home)
    assert "# mine" in config_of(home)
    assert "# short" in config_of(home)
    read = load(home=home, environ={}, migrations=TO_TWO)
    assert (read.jobs.workers, read.notices) == (3, ())
    assert Editor(home, migrations=TO_TWO).fix() == []


def test_a_change_of_an_old_file_brings_it_up_to_date_and_keeps_a_copy(tmp_path: Path) -> None:
    home = home_with(tmp_path, OLD)
    (home / "config.yaml.v1").write_text("older copy")
    Editor(home, migrations=TO_TWO).put("jobs.lease", "6s")
    assert (home / "config.yaml.v1").read_text() == "older copy"
    assert (home / "config.yaml.v1.2").read_text() == OLD
    assert load(home=home, environ={}, migrations=TO_TWO).jobs.workers == 3


def test_a_file_from_the_future_is_refused_and_left_alone(tmp_path: Path) -> None:
    future = "_config_version: 3\nnew_things: 1\n"
    home = home_with(tmp_path, future)
    for act in (lambda: load(home=home, environ={}), lambda: Editor(home).put("jobs.workers", "1"), Editor(home).fix):
        with pytest.raises(Misconfigured, match="version 3"):
            act()
    assert config_of(home) == future


@pytest.mark.skipif("os.name != 'posix'", reason="Windows has no such permissions")
def test_fix_closes_the_dotenv_to_others(tmp_path: Path) -> None:
    home = home_with(tmp_path, None, "A=1\n")
    (home / ".env").chmod(0o664)
    Editor(home).fix()
    assert (home / ".env").stat().st_mode & 0o777 == 0o600
