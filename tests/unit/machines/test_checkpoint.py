"""Checkpoints of a workspace: kept before the first change, brought back whole."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.domain.errors import NotFound
from hermes.machines.checkpoint import Checkpoints, Difference
from hermes.machines.manifest import Bounds
from hermes.testing.clock import FakeClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def kept(tmp_path: Path, clock: FakeClock) -> Checkpoints:
    return Checkpoints(tmp_path / "home", clock)


def put(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def look(folder: Path) -> dict[str, bytes | str]:
    found: dict[str, bytes | str] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[str(path.relative_to(folder))] = str(path.readlink())
        elif path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


async def test_changed_removed_and_added_files_are_brought_back(
    kept: Checkpoints, clock: FakeClock, work: Path
) -> None:
    put(work, {"a.txt": "one", "sub/b.txt": "two", "same.txt": "same", "run.sh": "#!/bin/sh\n"})
    (work / "run.sh").chmod(0o755)
    (work / "link").symlink_to("a.txt")
    before = look(work)
    await kept.keep(work, "r1")
    put(work, {"a.txt": "changed", "new/c.txt": "three"})
    for name in ("sub/b.txt", "link", "run.sh"):
        (work / name).unlink()
    assert await kept.diff(work, "r1") == [
        Difference("a.txt", "changed"),
        Difference("link", "removed"),
        Difference("new/c.txt", "added"),
        Difference("run.sh", "removed"),
        Difference("sub/b.txt", "removed"),
    ]
    clock.advance(1)
    done = await kept.restore(work, "r1")
    assert done.failed == ()
    assert look(work) == before
    assert (work / "run.sh").stat().st_mode & 0o777 == 0o755
    assert await kept.diff(work, "r1") == []


async def test_going_back_can_be_taken_back(kept: Checkpoints, clock: FakeClock, work: Path) -> None:
    put(work, {"a": "one"})
    await kept.keep(work, "r1")
    clock.advance(1)
    put(work, {"a": "two", "b": "new"})
    after = look(work)
    done = await kept.restore(work, "r1")
    assert look(work) == {"a": b"one"}
    await kept.restore(work, done.undo)
    assert look(work) == after


async def test_a_run_goes_back_to_before_its_first_change(kept: Checkpoints, clock: FakeClock, work: Path) -> None:
    put(work, {"a": "one"})
    await kept.keep(work, "r1")
    for content in ("two", "three"):
        clock.advance(1)
        put(work, {"a": content})
        await kept.restore(work, "r1")
        assert look(work) == {"a": b"one"}


async def test_a_change_that_keeps_size_and_time_is_noticed(kept: Checkpoints, clock: FakeClock, work: Path) -> None:
    put(work, {"a": "one"})
    os.utime(work / "a", ns=(10**18, 10**18))
    await kept.keep(work, "r1")
    put(work, {"a": "two"})
    os.utime(work / "a", ns=(10**18, 10**18))
    assert await kept.diff(work, "r1") == [Difference("a", "changed")]
    clock.advance(1)
    await kept.keep(work, "r2")
    await kept.restore(work, "r1")
    assert look(work) == {"a": b"one"}
    await kept.restore(work, "r2")
    assert look(work) == {"a": b"two"}


async def test_what_is_left_out_is_told_and_never_removed(tmp_path: Path, work: Path) -> None:
    kept = Checkpoints(tmp_path / "home", FakeClock(), bounds=Bounds(file_bytes=10))
    put(work, {"small": "x", "large": "x" * 50, ".git/objects/1": "git", "node_modules/m/index.js": "m"})
    made = await kept.keep(work, "r1")
    assert (made.files, made.note) == (1, "left out: node_modules; too large or not readable: large")
    put(work, {"large": "now small", ".git/objects/2": "git"})
    await kept.restore(work, "r1")
    assert set(look(work)) == {"small", "large", ".git/objects/1", ".git/objects/2", "node_modules/m/index.js"}


async def test_of_too_many_files_none_that_was_not_kept_is_removed(tmp_path: Path, work: Path) -> None:
    kept = Checkpoints(tmp_path / "home", FakeClock(), bounds=Bounds(files=3))
    put(work, {f"{n}": "x" for n in range(6)})
    made = await kept.keep(work, "r1")
    assert (made.files, made.note) == (3, "there are more files than are kept")
    put(work, {"1": "changed"})
    (work / "0").unlink()
    await kept.restore(work, "r1")
    assert look(work) == {str(n): b"x" for n in range(6)}


async def test_only_the_last_twenty_are_kept_and_old_contents_go(
    kept: Checkpoints, clock: FakeClock, work: Path, tmp_path: Path
) -> None:
    put(work, {"stays": "for ever" * 1_000})
    for n in range(30):
        put(work, {"a": f"{n}" * 100})
        await kept.keep(work, f"r{n}")
        clock.advance(1)
    found = await kept.find(work)
    assert [one.run for one in found] == [f"r{n}" for n in range(29, 9, -1)]
    assert len(list((tmp_path / "home" / "checkpoints").rglob("*.pack"))) == 21
    await kept.restore(work, found[-2].id)
    assert look(work) == {"stays": b"for ever" * 1_000, "a": b"11" * 100}


async def test_nothing_is_written_through_a_link_that_came_later(kept: Checkpoints, work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, {"b.txt": "precious"})
    put(work, {"sub/b.txt": "two", "c.txt": "three"})
    await kept.keep(work, "r1")
    (work / "sub/b.txt").unlink()
    (work / "sub").rmdir()
    (work / "sub").symlink_to(outside)
    (work / "c.txt").unlink()
    (work / "c.txt").symlink_to(outside / "b.txt")
    done = await kept.restore(work, "r1")
    assert look(outside) == {"b.txt": b"precious"}
    assert look(work) == {"sub/b.txt": b"two", "c.txt": b"three"}
    assert done.failed == ()


async def test_a_damaged_content_is_not_brought_back(kept: Checkpoints, work: Path, tmp_path: Path) -> None:
    put(work, {"a": "one", "b": "two"})
    await kept.keep(work, "r1")
    (pack,) = (tmp_path / "home").rglob("*.pack")
    pack.write_bytes(b"oneXXX")
    put(work, {"a": "1", "b": "2"})
    done = await kept.restore(work, "r1")
    assert len(done.failed) == 1
    assert look(work) == {"a": b"one", "b": b"2"}


async def test_a_half_written_manifest_is_no_checkpoint(kept: Checkpoints, work: Path, tmp_path: Path) -> None:
    put(work, {"a": "one"})
    await kept.keep(work, "r1")
    place = next((tmp_path / "home").rglob("*.json")).parent
    (place / "zzz.json").write_text('{"id": "zz')
    (place / "zzz.part").write_text("")
    assert len(await kept.find(work)) == 1
    await kept.keep(work, "r2")
    assert len(await kept.find(work)) == 2


async def test_what_is_not_there_is_told(kept: Checkpoints, work: Path) -> None:
    for word in ("none", ""):
        with pytest.raises(NotFound):
            await kept.restore(work, word)
    assert await kept.find(work) == []


async def test_names_that_are_no_text_are_left_alone(kept: Checkpoints, work: Path) -> None:
    odd = os.fsdecode(b"caf\xe9")
    put(work, {odd: "x", "a": "one"})
    await kept.keep(work, "r1")
    put(work, {"a": "two"})
    await kept.restore(work, "r1")
    assert look(work) == {odd: b"x", "a": b"one"}


_NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a"])
_TREES = st.dictionaries(_NAMES, st.binary(max_size=20), max_size=5)


@given(st.lists(_TREES, min_size=2, max_size=5), st.integers(0, 4))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
async def test_every_checkpoint_is_exactly_what_was_there(
    tmp_path: Path, trees: list[dict[str, str | bytes]], wanted: int
) -> None:
    clock = FakeClock()
    folder = tmp_path / str(time.monotonic_ns())
    kept, work = Checkpoints(folder / "home", clock), folder / "work"
    work.mkdir(parents=True)
    for number, tree in enumerate(trees):
        for name in look(work):
            (work / name).unlink()
        put(work, tree)
        clock.advance(1)
        await kept.keep(work, f"r{number}")
    done = await kept.restore(work, f"r{wanted % len(trees)}")
    assert done.failed == ()
    assert look(work) == trees[wanted % len(trees)]


async def test_a_thousand_files_are_kept_in_a_moment(kept: Checkpoints, work: Path) -> None:
    put(work, {f"d{n % 20}/f{n}.py": f"x = {n}\n" * 50 for n in range(1_000)})
    began = time.monotonic()
    await kept.keep(work, "r1")
    cold = time.monotonic() - began
    began = time.monotonic()
    await kept.keep(work, "r2")
    assert time.monotonic() - began < 0.6
    assert cold < 3


def git(folder: Path, *words: str) -> str:
    told = ("-c", "user.name=x", "-c", "user.email=x@x")
    done = subprocess.run(["git", *told, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=20)
    return done.stdout + done.stderr


@pytest.mark.parametrize("gone", [".git/objects", ".git", ".git/refs", ".git/HEAD", "sub/.git"])
async def test_a_repository_that_was_removed_is_whole_again(kept: Checkpoints, work: Path, gone: str) -> None:
    for place in (work, work / "sub"):
        place.mkdir(exist_ok=True)
        put(place, {"a.txt": "one"})
        git(place, "init", "-q", ".")
        git(place, "add", "a.txt")
        git(place, "commit", "-qm", "one")
        git(place, "gc", "-q") if place == work else None
    await kept.keep(work, "r1")
    path = work / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = await kept.restore(work, "r1")
    assert done.failed == ()
    for place in (work, work / "sub"):
        assert "one" in git(place, "log", "--oneline")
        assert git(place, "fsck", "--full") == ""
        assert git(place, "status", "--porcelain").replace("?? sub/\n", "") == ""


async def test_what_git_has_done_since_is_not_undone(kept: Checkpoints, work: Path) -> None:
    put(work, {"a.txt": "one"})
    git(work, "init", "-q", ".")
    await kept.keep(work, "r1")
    git(work, "add", "a.txt")
    git(work, "commit", "-qm", "made since")
    assert await kept.diff(work, "r1") == []
    await kept.restore(work, "r1")
    assert "made since" in git(work, "log", "--oneline")


async def test_empty_folders_are_kept(kept: Checkpoints, work: Path) -> None:
    (work / "a/empty").mkdir(parents=True)
    await kept.keep(work, "r1")
    shutil.rmtree(work / "a")
    assert await kept.diff(work, "r1") == [Difference("a/empty", "removed")]
    await kept.restore(work, "r1")
    assert (work / "a/empty").is_dir()


async def test_what_is_not_covered_is_named(tmp_path: Path, clock: FakeClock, work: Path) -> None:
    kept = Checkpoints(tmp_path / "home", clock, bounds=Bounds(file_bytes=10))
    put(work, {"node_modules/a.js": "x", "large.bin": "x" * 11, "small": "x"})
    made = await kept.keep(work, "r1")
    assert "node_modules" in made.note
    assert "large.bin" in made.note
    put(work, {"small": "y" * 20})
    done = await kept.restore(work, "r1")
    assert (work / "small").read_text() == "x"
    assert "large.bin" in done.missing
    assert "small" in done.undo_missing


async def test_objects_that_no_checkpoint_names_are_forgotten(tmp_path: Path, clock: FakeClock, work: Path) -> None:
    kept = Checkpoints(tmp_path / "home", clock, kept=1)
    git(work, "init", "-q", ".")
    put(work, {"a.txt": "one"})
    git(work, "add", "a.txt")
    await kept.keep(work, "r1")
    shutil.rmtree(work / ".git")
    clock.advance(1)
    git(work, "init", "-q", ".")
    put(work, {"a.txt": "two"})
    git(work, "add", "a.txt")
    await kept.keep(work, "r2")
    (folder,) = (tmp_path / "home/checkpoints").glob("*/objects")
    assert len(list(folder.iterdir())) == 2
