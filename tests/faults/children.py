"""Other processes for a test: small programs that are started, spoken to by their standard output, and ended."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 30.0
OLD_ENGINE = "import sys; sys.modules['pysqlite3'] = None\n"
"""Put before a program: it then uses the SQLite that Python was linked with."""

HOLD = """
import sys, anyio
from hermes.domain.clock import SystemClock
from hermes.store.database import Place, open_database
async def main():
    async with open_database(Place(sys.argv[1]), SystemClock()) as store:
        await store.write(lambda tx: tx.now())
        print("open", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.readline)
try:
    anyio.run(main)
except Exception as error:
    print(type(error).__name__, error, flush=True)
    sys.exit(3)
"""
"""Opens the database of its argument and holds it until a line comes in."""


def run(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, with nothing to read."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, stdin=subprocess.DEVNULL
    )


@contextmanager
def running(program: str, *arguments: str, first_line: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a program, wait for its first line, and kill it when the block is left."""
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline().strip()
            assert said == first_line, said
            yield process
        finally:
            process.kill()


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"
