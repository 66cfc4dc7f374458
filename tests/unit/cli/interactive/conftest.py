"""A real terminal with `hermes` in it, and a vendor on loopback that it talks to."""

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from hermes.config.variables import process_environment
from hermes.testing.model_server import ModelServer

SECONDS = 30.0
_COMMAND = f"{shlex.quote(sys.executable)} -c 'import sys; from hermes.cli import main; sys.exit(main())'"
_MASKS = (
    (re.compile(r"\d+\.\ds\b"), "N.Ns"),
    (re.compile(r"\d{8}_\d{6}_[0-9a-f]{8}"), "SESSION"),
    (re.compile(r"Hermes \d\S*"), "Hermes VERSION"),
    (re.compile(r"(sandbox|confined): workspace|UNSANDBOXED|…: workspace"), "PROTECTION"),
    (re.compile(r"^.*\(Ctrl-C stops\)$", re.MULTILINE), "FACE works… Ns  (Ctrl-C stops)"),
    (re.compile(r"/tmp/h\w{8}"), "/tmp/HOMEHOMEH"),
    (re.compile(r"\$0\.\d{4}"), "$COST"),
)


class Terminal:
    """One terminal of its own, in which a person types and looks."""

    def __init__(self, place: Path, environment: dict[str, str], columns: int, rows: int, words: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="hs"))
        self._environment = environment
        # tmux names the terminal by itself.
        term = f"export TERM={environment['TERM']} && " if "TERM" in environment else ""
        line = f"cd {shlex.quote(str(place))} && {term}{_COMMAND} {words}; echo left with $?; sleep 1000"
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), line)

    def _tmux(self, *words: str, given: str | None = None) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", str(self._folder / "s"), *words],
            env=self._environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def keys(self, *keys: str) -> None:
        """Press keys, by their names, or type words."""
        self._tmux("send-keys", *keys)

    def say(self, words: str) -> None:
        """Type words and press Enter."""
        self._tmux("send-keys", "-l", words)
        self._tmux("send-keys", "Enter")

    def paste(self, text: str) -> None:
        """Paste as a terminal does."""
        self._tmux("load-buffer", "-", given=text)
        self._tmux("paste-buffer", "-p")

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def title(self) -> str:
        """The title that programs may set."""
        return self._tmux("display-message", "-p", "#{pane_title}").strip()

    def seen(self, *, is_all: bool = False) -> str:
        """Return what stands on the screen, or all of the scrollback, without what differs each time."""
        text = self._tmux("capture-pane", "-p", *(("-S", "-") if is_all else ()))
        for pattern, mask in _MASKS:
            text = pattern.sub(mask, text)
        return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"

    def until(self, *words: str, gone: str = "") -> str:
        """Wait until words are seen, and others are not; return what is seen."""
        give_up_at = time.monotonic() + SECONDS
        while True:
            seen = self.seen()
            if all(word in seen for word in words) and not (gone and gone in seen):
                return seen
            assert time.monotonic() < give_up_at, f"{words} did not come:\n{seen}"
            time.sleep(0.03)

    def close(self) -> None:
        """End it, with all that runs in it."""
        subprocess.run(["tmux", "-S", str(self._folder / "s"), "kill-server"], capture_output=True, check=False)
        shutil.rmtree(self._folder, ignore_errors=True)


Open = Callable[..., Terminal]


@pytest.fixture
def vendor() -> Iterator[ModelServer]:
    """A vendor on a thread of its own."""
    server = ModelServer()
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server.opened()):
        yield server


@pytest.fixture
def home() -> Iterator[Path]:
    """The folder of a user, with a workspace in it; its name is as long each time, so that lines wrap alike."""
    with tempfile.TemporaryDirectory(prefix="h", dir="/tmp") as made:
        (Path(made) / "work").mkdir()
        yield Path(made)


@pytest.fixture
def terminal(home: Path, vendor: ModelServer) -> Iterator[Open]:
    """Opens terminals; skips where there is no tmux."""
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux on this machine")
    opened: list[Terminal] = []
    present = process_environment()

    def start(words: str = "", *, columns: int = 60, rows: int = 40, **more: str) -> Terminal:
        environment = {
            "PATH": present["PATH"],
            "PYTHONPATH": present.get("PYTHONPATH", ""),
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "OPENAI_API_KEY": "sk-fake",
            "OPENAI_BASE_URL": f"{vendor.url}/v1",
            **more,
        }
        opened.append(Terminal(home / "work", environment, columns, rows, words))
        return opened[-1]

    yield start
    for one in opened:
        one.close()
