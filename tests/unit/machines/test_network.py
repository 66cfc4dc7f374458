"""What a sandboxed command reaches: whom it was allowed to, by a proxy, and what runs beside it in its session."""

import subprocess
import sys
import threading
import zipfile
from collections.abc import AsyncIterator, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest
from tests.unit.machines.conftest import Place

from hermes.config import Settings
from hermes.config.sections import Sandbox
from hermes.domain.clock import SystemClock
from hermes.domain.effect import Connect
from hermes.machines.local import open_local

pytestmark = pytest.mark.anyio


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A folder, and the port of the loopback on which it is served."""
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield folder, server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
async def listing(tmp_path: Path, workspace: Path, served: tuple[Path, int]) -> AsyncIterator[Place]:
    """A machine whose owner listed the served folder."""
    settings = Settings(home=tmp_path / "home", sandbox=Sandbox(listed=(f"127.0.0.1:{served[1]}",)))
    async with open_local(settings, SystemClock()) as machine:
        if machine.protection != "sandbox":
            pytest.skip(machine.describe())
        yield Place(machine, workspace, settings.home)


async def everybody(connect: Connect) -> bool:
    return connect.host != "evil.example"


async def test_a_listed_host_is_reached_through_the_proxy_and_another_is_refused_and_named(
    listing: Place, served: tuple[Path, int]
) -> None:
    folder, port = served
    (folder / "hello.txt").write_text("hello from outside\n")
    done = await listing.sh(f"curl -sS --noproxy '' http://127.0.0.1:{port}/hello.txt", may_connect=everybody)
    assert done.output == b"hello from outside\n"
    done = await listing.sh("curl -sS http://evil.example/; curl -sS https://evil.example/", may_connect=everybody)
    assert b"'evil.example:80' may not be reached" in done.output
    assert done.denied_hosts == ("evil.example:80", "evil.example:443")
    done = await listing.sh(f"curl -sS --noproxy '' http://127.0.0.1:{port}/hello.txt")
    assert done.denied_hosts == (f"127.0.0.1:{port}",)


async def test_a_package_is_installed_through_the_proxy(listing: Place, served: tuple[Path, int]) -> None:
    folder, port = served
    page = folder / "simple" / "tiny"
    page.mkdir(parents=True)
    name = "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(page / name, "w") as wheel:
        wheel.writestr("tiny.py", "word = 'tiny indeed'\n")
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "")
    (page / "index.html").write_text(f'<a href="{name}">{name}</a>')
    index = f"--isolated --index-url http://127.0.0.1:{port}/simple --disable-pip-version-check --no-deps"
    text = f"no_proxy= NO_PROXY= {sys.executable} -m pip install -q {index} --target got tiny && cat got/tiny.py"
    done = await listing.sh(text, may_connect=everybody, seconds=50)
    assert done.output.endswith(b"word = 'tiny indeed'\n"), done.output.decode()


def bare_repository(folder: Path) -> None:
    """Make `one.git` with one commit, ready to be served as plain files."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q", "one"], cwd=folder, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], cwd=folder / "one", check=True)
    subprocess.run(["git", "clone", "-q", "--bare", "one", "one.git"], cwd=folder, check=True)
    subprocess.run(["git", "update-server-info"], cwd=folder / "one.git", check=True)


async def test_a_repository_is_cloned_through_the_proxy(listing: Place, served: tuple[Path, int]) -> None:
    folder, port = served
    bare_repository(folder)
    text = f"no_proxy= NO_PROXY= git clone -q http://127.0.0.1:{port}/one.git && git -C one log --format=%s"
    done = await listing.sh(text, may_connect=everybody)
    assert done.output == b"first\n"
    done = await listing.sh("git clone -q https://evil.example/one.git two", may_connect=everybody)
    assert done.exit_code != 0
    assert done.denied_hosts == ("evil.example:443",)


async def printed(place: Place, process: str) -> None:
    while not await place.machine.output(process, offset=0, limit=10):  # noqa: ASYNC110 - there is nothing to wait for
        await anyio.sleep(0.02)


async def test_commands_of_one_session_reach_each_other_and_those_of_another_do_not(sandboxed: Place) -> None:
    serve = (
        'exec python3 -c \'import socket; s=socket.create_server(("127.0.0.1",8000)); print(1, flush=True)\nwhile 1: '
    )
    begun = await sandboxed.machine.spawn(
        sandboxed.command(serve + 'c,_=s.accept(); c.sendall(b"hi there"); c.close()\'')
    )
    with anyio.fail_after(10):
        await printed(sandboxed, begun.id)
    ask = "exec 3<>/dev/tcp/127.0.0.1/8000 && cat <&3"
    assert (await sandboxed.sh(ask)).output == b"hi there"
    assert (await sandboxed.sh(ask, session="other")).exit_code != 0


async def test_each_command_has_a_way_out_of_its_own_also_in_the_background(sandboxed: Place) -> None:
    asked: dict[str, list[str]] = {"one": [], "two": []}

    def judge(name: str):  # type: ignore[no-untyped-def] # noqa: ANN202 - a closure of this test
        async def judged(connect: Connect) -> bool:
            asked[name].append(connect.host)
            return False

        return judged

    text = "sleep 0.3; curl -sS http://{}.example/; echo ended"
    begun = await sandboxed.machine.spawn(sandboxed.command(text.format("a"), may_connect=judge("one")))
    done = await sandboxed.sh(text.format("b"), may_connect=judge("two"))
    assert done.denied_hosts == ("b.example:80",)
    await sandboxed.machine.wait(begun.id, sandboxed.command("").timeout)
    assert asked == {"one": ["a.example"], "two": ["b.example"]}


async def test_a_connection_is_cut_when_its_command_ends(listing: Place, served: tuple[Path, int]) -> None:
    ask = f"printf 'CONNECT 127.0.0.1:{served[1]} HTTP/1.1\\r\\n\\r\\n' >&3"
    text = f"exec 3<>/dev/tcp/127.0.0.1/${{http_proxy##*:}}; {ask}"
    done = await listing.sh(text + "; head -n 1 <&3; sleep 60 & ", may_connect=everybody)
    assert done.output == b"HTTP/1.1 200 Connection established\r\n"
    assert done.seconds < 10
