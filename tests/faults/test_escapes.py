"""Nobody leaves the sandbox: real attempts, judged from outside, as root and as an ordinary user."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import escaping
import pytest
from outside import Outside

from hermes.config import Settings
from hermes.config.variables import process_environment
from hermes.domain.clock import SystemClock
from hermes.domain.machine import Command
from hermes.machines.local import open_local

HERE = Path(__file__).parent
ATTEMPTS = HERE / "escapes.txt"
ROUNDS = 5
NOBODY = 65_534


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that an ordinary user can be given; pytest's own are closed to others."""
    made = Path(tempfile.mkdtemp(prefix="hermes-world-", dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    subprocess.run(["chmod", "-R", "u+rwX", made], check=False, capture_output=True)
    shutil.rmtree(made, ignore_errors=True)


def python_of_others() -> list[str]:
    """Return the words that start a Python with our packages as nobody; skip where none can be."""
    if os.getuid() != 0:
        pytest.skip("this is an ordinary user already")
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            done = subprocess.run(
                [*drop, python, "-c", "import anyio, hermes"], env=_paths(), capture_output=True, check=False
            )
        except OSError:
            continue
        if done.returncode == 0:
            return [*drop, python]
    pytest.skip("no Python here can be read by an ordinary user")


def _paths() -> dict[str, str]:
    packages = [path for path in sys.path if path.endswith("site-packages")]
    path = os.pathsep.join([str(HERE.parents[1] / "src"), *packages])
    return {
        "PYTHONPATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": process_environment()["PATH"],
        "LANG": "C.UTF-8",
    }


def run(words: list[str], folder: Path, rounds: int, *names: str) -> None:
    argv = [*words, str(HERE / "escaping.py"), str(folder), str(ATTEMPTS), str(rounds), *names]
    done = subprocess.run(argv, env=_paths(), capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout)
    if "skipped" in result:
        pytest.skip(result["skipped"])
    figures = f"{result['attempts']} attempts in {result['seconds']:.0f} s, {len(result['effects'])} effects"
    print(f"user {result['user']}: {figures}")
    assert result["effects"] == []
    assert result["attempts"] == rounds * (len(names) or len(escaping.scripts(ATTEMPTS)))


def test_there_are_enough_attempts_and_all_of_them_are_shell() -> None:
    attempts = escaping.scripts(ATTEMPTS)
    assert len(attempts) >= 120
    for name, text in attempts.items():
        done = subprocess.run(["bash", "-n", "-c", text], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), name


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_attempt_has_an_effect_outside(folder: Path) -> None:
    run([sys.executable], folder, 1)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_no_attempt_has_an_effect_outside_time_and_again(folder: Path) -> None:
    run([sys.executable], folder, ROUNDS)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_no_attempt_of_an_ordinary_user_has_an_effect_outside(folder: Path) -> None:
    os.chown(folder, NOBODY, NOBODY)
    run(python_of_others(), folder, ROUNDS)


SEEN = {
    "echo x > $OUT/escaped": "protected/escaped changed",
    "echo x >> $PERSON/.bashrc": ".bashrc changed",
    "cat $PERSON/.netrc": "a secret was printed",
    "env": "a secret was printed",
    "cp $PERSON/.netrc copy": "copy holds a secret",
    "git config core.fsmonitor x": ".git/config changed",
    "echo x > .git/hooks/pre-push": "pre-push changed",
    "curl -s -m 1 --noproxy '*' http://127.0.0.1:$TCP/": "somebody reached tcp",
    "echo x > /dev/udp/127.0.0.1/$UDP": "somebody sent a packet",
    "curl -s -m 1 --unix-socket $SOCK http://x/": "somebody reached unix",
    "curl -s -m 1 --abstract-unix-socket $ABSTRACT http://x/": "somebody reached abstract",
    "env -i setsid sleep $SECS >/dev/null 2>&1 & disown": "is left",
    "curl -s --noproxy '*' http://$ALLOWED/smuggled": "smuggled to the allowed host",
    "touch /tmp/on-purpose-$TOKEN": "names in /tmp changed",
}


@pytest.mark.anyio
async def test_the_observer_sees_what_is_done_without_a_sandbox(folder: Path) -> None:
    outside = Outside(folder)
    outside.build()
    with outside.watching():
        settings = Settings(home=outside.hermes)
        async with open_local(settings, SystemClock(), environment=outside.person()) as machine:
            outside.look()
            for text, effect in SEEN.items():
                free = {**outside.env, **outside.person(), "TOKEN": outside.token}
                done = await machine.run(
                    Command(text, outside.work, "s", outside.work, "full", environment=free), _heed
                )
                await anyio.sleep(0.05)
                found = outside.look(done.output)
                assert any(effect in one for one in found), (text, found)
        outside.end_left()
        await machine.files.remove(Path(f"/tmp/on-purpose-{outside.token}"))


def _heed(_: bytes) -> None:
    return
