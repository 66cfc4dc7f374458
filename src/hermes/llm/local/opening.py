"""Opens the embedded model of a home.

Invariant: what is missing is said in one line before a process is started.
"""

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.config.settings import Settings
from hermes.domain.clock import Clock
from hermes.domain.errors import Misconfigured, Unsupported
from hermes.llm.catalogue.weights import FOLDER, Weights, weights
from hermes.llm.choice import Choice
from hermes.llm.local.link import Link, start
from hermes.llm.local.provider import Local, Terms, Times

_ENGINE = "xllamacpp"
_MEMORY_BEYOND, _MEMORY_A_THREAD = 1 << 30, 80 << 20
"""What the process may reserve beyond the file and what it has read."""
_MEMORY_A_TOKEN = 32 << 10
_MEMORY_NEEDED = 300 << 20
"""What must be free beyond the file and what is read for it to be of use."""
_PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH")


@asynccontextmanager
async def open_local_model(
    choice: Choice, settings: Settings, clock: Clock, environment: Mapping[str, str]
) -> AsyncIterator[Local]:
    """Open the embedded model; its process is started by the first call, and ended with the block."""
    wanted = weights(choice.model)
    require(wanted, settings.home)
    model = settings.model
    times = Times(silence=model.idle_timeout.total_seconds(), call=model.timeout.total_seconds())
    terms = Terms(choice.name, choice.window, model.max_tokens, model.temperature, times)
    provider = Local(terms, lambda: _start(wanted, settings, choice.window, environment), clock)
    try:
        yield provider
    finally:
        provider.close()


def require(wanted: Weights, home: Path) -> None:
    """Raise Misconfigured when the engine or the weights are missing."""
    require_engine()
    if not wanted.is_there(home):
        raise Misconfigured(f"the weights of {wanted.name!r} are not here: `hermes model pull` brings them")


def require_memory(wanted: Weights, window: int) -> None:
    """Raise Unsupported when the memory does not suffice."""
    free, needed = memory_available(), wanted.size + window * _MEMORY_A_TOKEN + _MEMORY_NEEDED
    if free is not None and free < needed:
        raise Unsupported(
            f"the local model needs about {needed >> 20:,} MiB of memory, and {free >> 20:,} MiB are available; "
            "close other programs, or connect a provider (`hermes model list`)"
        )


def require_engine() -> None:
    """Raise Misconfigured when nothing is installed that could read weights."""
    if importlib.util.find_spec(_ENGINE) is None:
        raise Misconfigured(
            "the local model needs the extra 'local', which is there for Linux and for macOS on Apple's chips: "
            "`pip install 'hermes-os[local]'`"
        )


def memory_available(path: Path = Path("/proc/meminfo")) -> int | None:
    """Return how many bytes a program could take now; None where nobody says."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if found is None else int(found) * 1024


def _start(wanted: Weights, settings: Settings, window: int, environment: Mapping[str, str]) -> Link:
    require_memory(wanted, window)
    threads = settings.local.threads
    most = wanted.size + _MEMORY_BEYOND + 2 * window * _MEMORY_A_TOKEN + threads * _MEMORY_A_THREAD
    folder = tempfile.mkdtemp(prefix="hermes-model-")
    words = [
        *(sys.executable, "-P", "-m", "hermes.llm.local.process"),
        *(str(wanted.path(settings.home)), wanted.sha256, str(settings.home / FOLDER / "state")),
        *(str(threads), str(window), str(most), folder),
    ]
    passed = {name: environment[name] for name in _PASSED if name in environment}
    return start(words, passed, lambda: shutil.rmtree(folder, ignore_errors=True))
