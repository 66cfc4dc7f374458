"""Settings are read from every place, the strongest wins, and all that is wrong is said at once."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.config import Default, InDotenv, InEnvironment, InFile, InFlag, Secret, Settings, Url, load, secrets
from hermes.config.kinds import kind_of
from hermes.config.reading import Reading
from hermes.config.schema import About, schema_of, setting
from hermes.domain.errors import Misconfigured


def write(home: Path, *, config: str | bytes | None = None, dotenv: str | None = None) -> Path:
    if config is not None:
        (home / "config.yaml").write_bytes(config if isinstance(config, bytes) else config.encode())
    if dotenv is not None:
        (home / ".env").write_text(dotenv)
        (home / ".env").chmod(0o600)
    return home


def mistakes_of(home: Path, *, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(Misconfigured) as caught:
        load(home=home, environ=environ or {})
    return str(caught.value).splitlines()


def test_without_any_place_every_setting_has_its_default(tmp_path: Path) -> None:
    settings = load(home=tmp_path / "not there", environ={})
    assert settings == Settings(home=tmp_path / "not there")
    assert settings.origin("jobs.workers") == Default()
    assert not (tmp_path / "not there").exists()


def test_each_place_is_overruled_by_the_next(tmp_path: Path) -> None:
    write(tmp_path, config="jobs:\n  workers: 1\n", dotenv="\nHERMES_JOBS_WORKERS=2\n")
    flags, environ = {"jobs.workers": "4"}, {"HERMES_JOBS_WORKERS": "3"}
    settings = load(home=tmp_path, environ=environ, flags=flags)
    assert [g.value for g in settings.given["jobs.workers"]] == [1, 2, 3, 4]
    assert [g.origin for g in settings.given["jobs.workers"]] == [
        InFile(tmp_path / "config.yaml", 2, 12),
        InDotenv(tmp_path / ".env", 2, "HERMES_JOBS_WORKERS"),
        InEnvironment("HERMES_JOBS_WORKERS"),
        InFlag("jobs.workers"),
    ]
    assert settings.jobs.workers == 4
    assert load(home=tmp_path, environ=environ).jobs.workers == 3
    assert load(home=tmp_path, environ={}).jobs.workers == 2


def test_the_home_is_the_flag_else_the_variable_else_a_folder_of_the_user(tmp_path: Path) -> None:
    environ = {"HERMES_HOME": str(tmp_path / "b"), "HOME": str(tmp_path)}
    assert load(home=tmp_path / "a", environ=environ).home == tmp_path / "a"
    assert load(environ=environ).home == tmp_path / "b"
    assert load(environ={"HOME": str(tmp_path)}).home == tmp_path / ".hermes"


def test_a_dotenv_that_contradicts_another_place_gives_a_notice_with_both_places_and_the_winner(tmp_path: Path) -> None:
    write(tmp_path, config="jobs: {workers: 1}\n", dotenv="HERMES_JOBS_WORKERS=2\n")
    (notice,) = load(home=tmp_path, environ={}).notices
    assert "config.yaml:1:17 says '1'" in notice
    assert notice.endswith(".env:1 (HERMES_JOBS_WORKERS) wins")
    over = load(home=tmp_path, environ={"HERMES_JOBS_WORKERS": "3"}).notices
    assert all(n.endswith("environment variable HERMES_JOBS_WORKERS wins") for n in over)
    assert any(".env:1" in n and "environment variable" in n.partition(";")[0] for n in over)


def test_places_that_agree_or_overrule_as_documented_give_no_notice(tmp_path: Path) -> None:
    write(tmp_path, config="jobs: {workers: 2}\n", dotenv="HERMES_JOBS_WORKERS=2\n")
    assert load(home=tmp_path, environ={"HERMES_JOBS_WORKERS": "2"}).notices == ()
    (tmp_path / ".env").unlink()
    assert load(home=tmp_path, environ={"HERMES_JOBS_WORKERS": "3"}).notices == ()


def test_a_notice_never_shows_a_password(tmp_path: Path) -> None:
    write(tmp_path, dotenv="DATABASE_URL=postgresql://u:hunter22@h/d\n")
    settings = load(home=tmp_path, environ={"DATABASE_URL": "postgresql://u:hunter33@h/d"})
    assert settings.notices
    assert "hunter" not in str(settings.notices) + repr(settings)


def test_an_alias_works_and_the_own_name_is_stronger(tmp_path: Path) -> None:
    alias = {"HERMES_DB_URI": "sqlite:///alias"}
    assert load(home=tmp_path, environ=alias).database.url == Url("sqlite:///alias")
    both = alias | {"DATABASE_URL": "sqlite:///name"}
    settings = load(home=tmp_path, environ=both)
    assert settings.database.url == Url("sqlite:///name")
    assert "HERMES_DB_URI" in settings.notices[0]


def test_an_empty_variable_counts_as_none(tmp_path: Path) -> None:
    assert load(home=tmp_path, environ={"DATABASE_URL": "", "HERMES_JOBS_WORKERS": ""}) == Settings(home=tmp_path)


def test_an_unknown_variable_of_ours_is_noticed_with_the_nearest_and_those_of_others_are_not(tmp_path: Path) -> None:
    environ = {"HERMES_JOB_WORKERS": "3", "HERMES_PORT": "1", "HERMES_API_KEY": "k", "PATH": "/"}
    (notice,) = load(home=tmp_path, environ=environ).notices
    assert "HERMES_JOB_WORKERS" in notice
    assert "did you mean HERMES_JOBS_WORKERS?" in notice


@pytest.mark.skipif("os.name != 'posix'", reason="Windows has no such permissions")
def test_a_dotenv_that_others_may_read_is_noticed(tmp_path: Path) -> None:
    write(tmp_path, dotenv="X=1\n")
    assert load(home=tmp_path, environ={}).notices == ()
    (tmp_path / ".env").chmod(0o644)
    assert "0644" in load(home=tmp_path, environ={}).notices[0]


def test_all_mistakes_of_all_places_come_at_once_each_with_its_place(tmp_path: Path) -> None:
    config = "databse:\n  url: x\njobs:\n  wrkers: 3\n  lease: 30\n  workers: 0\ntime: {zone: Mars/Olympus}\n"
    home = write(tmp_path, config=config, dotenv="HERMES_LOGGING_LEVEL=loud\nnonsense\n")
    found = mistakes_of(home, environ={"HERMES_EVENTS_KEEP": "soon"})
    file = tmp_path / "config.yaml"
    assert f"{file}:1:1: unknown key 'databse'; did you mean 'database'?" in found
    assert f"{file}:4:3: unknown key 'jobs.wrkers'; did you mean 'workers'?" in found
    starts = (
        f"{file}:5:10: ",
        f"{file}:6:12: ",
        f"{file}:7:14: ",
        f"{tmp_path / '.env'}:1 ",
        f"{tmp_path / '.env'}:2: ",
    )
    for start in (*starts, "environment variable HERMES_EVENTS_KEEP: "):
        assert [m for m in found if m.startswith(start)], start
    assert len(found) == 8


@pytest.mark.parametrize(
    ("config", "place", "word"),
    [
        ("jobs:\n  workers: 1\n  workers: 2\n", "3:3", "line 2"),
        ("jobs: {}\njobs: {}\n", "2:1", "line 1"),
        ("- a\n", "1:1", "list"),
        ("text\n", "1:1", "'text'"),
        ("jobs: [1\n", "2:1", "not YAML"),
        ("jobs:\n\tworkers: 1\n", "2:1", "tab"),
        (b"jobs:\n  workers: \xff\n", "2:12", "UTF-8"),
        ("jobs:\n  workers: \x01\n", "2:12", "not allowed"),
        ("jobs: 3\n", "1:7", "expected settings"),
        ("jobs:\n  workers: '3'\n", "2:12", "quoted"),
        ("jobs:\n  workers: [3]\n", "2:12", "a list"),
        ("jobs:\n  workers: !mine 3\n", "2:12", "the tag '!mine'"),
        ("jobs:\n  workers:\n", "2:11", "nothing"),
        ("jobs:\n  workers: yes\n", "2:12", "whole number"),
        ("logging: {to_stderr: 1.5}\n", "1:22", "true or false"),
        ("? [a]\n: 1\n", "1:3", "a word"),
        ("a: 1\n---\nb: 2\n", "2:1", "not YAML"),
        ("workers: 4\n", "1:1", "under 'jobs:'"),
        ("jobs.workers: 4\n", "1:1", "under 'jobs:'"),
        ("_config_version: 99\n", "1:18", "newer Hermes"),
        ("_config_version: one\n", "1:18", "version"),
        ("database: {url: nonsense}\n", "1:17", "URL"),
    ],
)
def test_a_mistake_in_the_file_is_pointed_at(tmp_path: Path, config: str | bytes, place: str, word: str) -> None:
    (mistake,) = mistakes_of(write(tmp_path, config=config))
    assert mistake.startswith(f"{tmp_path / 'config.yaml'}:{place}: ")
    assert word in mistake


@pytest.mark.parametrize(
    "config", ["", "# nothing\n", "jobs:\n", "---\n", "\ufeffjobs: {workers: 8}\n", "x-mine: [1, {a: 2}]\n"]
)
def test_a_file_that_says_nothing_new_changes_nothing(tmp_path: Path, config: str) -> None:
    assert load(home=write(tmp_path, config=config), environ={}).jobs == Settings(home=tmp_path).jobs


def test_keys_of_third_parties_are_left_alone_in_sections_too(tmp_path: Path) -> None:
    write(tmp_path, config="jobs:\n  x-note: {any: thing}\n  workers: 2\nx-other:\n  a: {b: c}\n")
    assert load(home=tmp_path, environ={}).jobs.workers == 2


def test_a_folder_in_the_place_of_the_file_is_a_clear_mistake(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").mkdir()
    (mistake,) = mistakes_of(tmp_path)
    assert str(tmp_path / "config.yaml") in mistake


def test_a_mistake_never_shows_a_secret(tmp_path: Path) -> None:
    found = mistakes_of(tmp_path, environ={"DATABASE_URL": "hunter22 is not a URL"})
    assert "hunter22" not in str(found)


def test_an_unknown_flag_names_the_nearest_key(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"did you mean 'jobs.workers'\?"):
        load(home=tmp_path, environ={}, flags={"job.worker": "1"})


def test_every_secret_is_known_also_the_ones_that_lost(tmp_path: Path) -> None:
    dotenv = "DATABASE_URL=postgresql://u:p%40ss-one@h/d\nMY_TOKEN=token-two\nMY_COLOUR=blue-three\n"
    write(tmp_path, config="redis: {url: 'redis://:pass-four@h/0'}\n", dotenv=dotenv)
    known = set(secrets(load(home=tmp_path, environ={"DATABASE_URL": "postgresql://u:pass-five@h/d"})))
    assert known == {"p%40ss-one", "p@ss-one", "token-two", "pass-four", "pass-five"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:p4ss@h:1/d", "postgresql://u:[secret]@h:1/d"),
        ("redis://:p4ss@h", "redis://:[secret]@h"),
        ("postgresql://u:p4/ss@h/d", "postgresql://u:[secret]@h/d"),
        ("postgresql://h/d?user=a&password=p4ss", "postgresql://h/d?user=a&password=[secret]"),
        ("sqlite:///some/file.db", "sqlite:///some/file.db"),
        ("postgresql://u@h:5432/d", "postgresql://u@h:5432/d"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert str(Url(url)) == shown
    assert "p4" not in repr(Url(url))
    assert all(secret in url for secret in Url(url).secrets)
    assert Url(url).reveal() == url


def test_the_database_is_in_the_home_unless_a_url_says_otherwise(tmp_path: Path) -> None:
    home = tmp_path / "a b%20#?"
    url = load(home=home, environ={}).database_url
    assert url.scheme == "sqlite"
    assert unquote(url.reveal()) == f"sqlite:///{home}/state.db"
    assert load(home=home, environ={"DATABASE_URL": "sqlite:///x"}).database_url == Url("sqlite:///x")


def test_a_secret_is_shown_only_when_it_is_asked_to() -> None:
    secret = Secret("hunter22")
    assert "hunter" not in f"{secret} {secret!r} {[secret]} {secret:>20}"
    assert secret.reveal() == "hunter22"
    assert secret == Secret("hunter22") != Secret("hunter33")


@dataclass(frozen=True, slots=True)
class Every:
    """One setting of each kind."""

    flag: bool = setting(False, About("d"))
    whole: int = setting(1, About("d", at_least=0, at_most=10))
    real: float = setting(1.0, About("d"))
    text: str = setting("t", About("d"))
    key: Secret = setting(Secret("s"), About("d"))  # it makes a field
    place: Path = setting(Path("p"), About("d"))  # it makes a field
    word: Literal["a", "b"] = setting("a", About("d"))
    maybe: int | None = setting(3, About("d"))
    names: tuple[str, ...] = setting((), About("d"))
    span: timedelta = setting(timedelta(0), About("d"))  # it makes a field


@dataclass(frozen=True, slots=True)
class Whole:
    every: Every = field(default_factory=Every)


def test_every_kind_of_value_is_read_from_yaml_and_from_text_alike(tmp_path: Path) -> None:
    config = (
        "flag: yes, whole: 7, real: 1e3, text: no, key: k, place: sub/x, word: b, maybe: ~, names: [a, b], span: 1h30m"
    )
    flags = {"flag": "on", "whole": "7", "real": "1000", "text": "no", "key": "k", "place": "sub/x", "word": "b"}
    flags |= {"maybe": "", "names": "a, b", "span": "90m"}
    from_file, from_flags = Reading(schema_of(Whole), tmp_path), Reading(schema_of(Whole), tmp_path)
    from_file.file(f"every: {{{config}}}")
    from_flags.flags({f"every.{name}": text for name, text in flags.items()})
    assert from_file.sections() == from_flags.sections()
    every = from_file.sections()["every"]
    assert every == Every(
        True, 7, 1000.0, "no", Secret("k"), tmp_path / "sub/x", "b", None, ("a", "b"), timedelta(minutes=90)
    )


def test_bounds_are_kept_at_both_ends(tmp_path: Path) -> None:
    for text, is_right in (("-1", False), ("0", True), ("10", True), ("11", False)):
        reading = Reading(schema_of(Whole), tmp_path)
        reading.flags({"every.whole": text})
        assert bool(reading.mistakes) is not is_right


def test_a_type_that_no_setting_can_have_is_refused_when_the_schema_is_made() -> None:
    with pytest.raises(TypeError, match="dict"):
        kind_of(dict[str, str])


@given(st.timedeltas(min_value=timedelta(0)))
def test_a_duration_is_read_back_as_it_was_written(span: timedelta) -> None:
    kind = kind_of(timedelta)
    assert kind.parse(kind.write(span), Path("/")) == span


@given(st.text(max_size=20))
def test_any_text_is_refused_or_read_back_as_it_was_written(text: str) -> None:
    for one in schema_of(Whole).settings.values():
        with suppress(ValueError):
            value = one.parse(text, Path("/"))
            assert one.parse(one.kind.write(value), Path("/")) == value
