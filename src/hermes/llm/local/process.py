"""The process of the model: `python -m hermes.llm.local.process` with what to load in its arguments.

Invariant: it ends with the one who started it, takes no more memory than it was given, and writes frames and nothing
else to standard output.
"""

import os
import resource
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from hermes.llm.local.engine import Llama, Wanted
from hermes.llm.local.serving import serve


def main(words: Sequence[str]) -> None:
    """Serve the model until the other side is gone."""
    path, sha256, states, threads, window, most_bytes, folder = words
    resource.setrlimit(resource.RLIMIT_AS, (int(most_bytes), int(most_bytes)))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wanted = Wanted(Path(path), sha256, Path(states), int(threads), int(window), Path(folder))
    frames = os.dup(1)
    # The engine may print, and a frame must not be broken by that.
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)

    def gone() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        # The engine's threads end for nobody.
        os._exit(0)

    serve(lambda: Llama(wanted), 0, frames, gone)
    gone()


if __name__ == "__main__":
    main(sys.argv[1:])
