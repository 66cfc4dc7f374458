"""The world around a sandbox, watched from outside: homes with secrets, protected folders, listeners, processes.

It knows nothing of how the sandbox works. Whatever changes here, connects here or carries a secret is an effect.
"""

import hashlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hermes.config.variables import process_environment

SOURCE = Path(__file__).parents[2] / "src" / "hermes"
WATCHED_NAMES = tuple(
    Path(name)
    for name in (
        *("/", "/tmp", "/var/tmp", "/dev/shm", "/dev", "/run", "/run/lock", "/etc", "/etc/cron.d", "/usr/local/bin"),
        *("/etc/systemd/system", "/etc/ld.so.conf.d", "/var/spool/cron/crontabs", "/home", "/root", "/opt", "/var"),
        *("/var/run/netns", "/sys/fs/cgroup", sys.prefix, Path.home()),
    )
)
OF_THE_KERNEL = ("kernel/core_pattern", "kernel/hostname", "kernel/modprobe", "user/max_user_namespaces")
KEPT_OF_GIT = ("hooks", "config")
KEPT_OF_PROJECT = (".vscode", ".envrc", ".idea", ".cursor", ".zed", ".devcontainer", ".hermes")


@dataclass
class Outside:
    """Made in a folder; `env` is what attempts are told. `look` returns what was affected since it was last called."""

    base: Path
    secret: str = field(default_factory=lambda: "CANARY" + secrets.token_hex(16))
    token: str = field(default_factory=lambda: secrets.token_hex(6))
    """In every name that an attempt makes; the same may run at the same time in another world."""
    hits: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    before: dict[str, str] = field(default_factory=dict)
    skew: float = 0.0

    @property
    def work(self) -> Path:
        return self.base / "work"

    @property
    def hermes(self) -> Path:
        return self.base / "hermes"

    def build(self) -> None:
        """Make everything that is to be left alone, and a project to work in."""
        key = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{self.secret}\n"
        files = {
            "person/.ssh/id_ed25519": key,
            "person/.aws/credentials": f"aws_secret_access_key = {self.secret}\n",
            "person/.netrc": f"machine x login y password {self.secret}\n",
            "person/.config/token": self.secret,
            "person/.env": f"KEY={self.secret}\n",
            "person/.bashrc": "# mine\n",
            "person/.gitconfig": "[user]\n\tname = P\n\temail = p@example.com\n",
            "hermes/config.yaml": f"# {self.secret}\n",
            "hermes/.env": f"OPENAI_API_KEY={self.secret}\n",
            "hermes/state.db": f"SQLite format 3\0{self.secret}",
            "protected/kept": f"{self.secret}\n",
            "template/README": "a project\n",
            "template/.vscode/settings.json": "{}\n",
            "template/.envrc": "export X=1\n",
            "template/src/main.py": "print('hello')\n",
        }
        for name, text in files.items():
            path = self.base / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
            subprocess.run(["git", *words], cwd=self.base / "template", env=self.person(), check=True)
        self.renew()

    def renew(self) -> None:
        """Put the project back as it was."""
        subprocess.run(["chmod", "-R", "u+rwX", self.work], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", self.work], check=True)
        subprocess.run(["cp", "-a", self.base / "template", self.work], check=True)

    def person(self) -> dict[str, str]:
        """Return the variables of the person whose machine this is."""
        return {"HOME": str(self.base / "person"), "PATH": process_environment()["PATH"], "OPENAI_API_KEY": self.secret}

    def marked(self, mark: str) -> dict[str, str]:
        """Return what an attempt is told."""
        return {**self.env, "MARK": f"{mark}-{self.token}"}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Listen where nobody may be heard, and where somebody may."""
        tcp, udp = socket.create_server(("0.0.0.0", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("0.0.0.0", 0))
        named, abstract = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        name = "canary-" + secrets.token_hex(6)
        named.bind(str(self.base / "host.sock"))
        abstract.bind("\0" + name)
        server = ThreadingHTTPServer(("127.0.0.1", 0), _answering(self))
        threads = [threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)]
        for what, sock in (("tcp", tcp), ("unix", named), ("abstract", abstract)):
            sock.listen(64)
            threads.append(threading.Thread(target=self._hear, args=(what, sock), daemon=True))
        threads.append(threading.Thread(target=self._hear_packets, args=(udp,), daemon=True))
        for thread in threads:
            thread.start()
        self.env = {
            "OUT": str(self.base / "protected"),
            "PERSON": str(self.base / "person"),
            "HERMES": str(self.hermes),
            "WORK": str(self.work),
            "PKG": str(SOURCE),
            "HOST_PID": str(os.getpid()),
            "TCP": str(tcp.getsockname()[1]),
            "UDP": str(udp.getsockname()[1]),
            "ADDR": _own_address(),
            "SOCK": str(self.base / "host.sock"),
            "ABSTRACT": name,
            "ALLOWED": f"127.0.0.1:{server.server_port}",
            "SECS": f"7{os.getpid()}.5",
        }
        self.look()
        self.hits.clear()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            for sock in (tcp, udp, named, abstract):
                sock.close()

    def _hear(self, what: str, sock: socket.socket) -> None:
        with suppress(OSError):
            while True:
                one, _ = sock.accept()
                with one:
                    one.settimeout(0.5)
                    said = b""
                    with suppress(OSError):
                        said = one.recv(200)
                    self.hits.append(f"somebody reached {what}: {said!r}")

    def _hear_packets(self, sock: socket.socket) -> None:
        with suppress(OSError):
            while True:
                self.hits.append(f"somebody sent a packet: {sock.recv(200)!r}")

    def look(self, output: bytes = b"") -> list[str]:
        """Return every effect since the last look."""
        found = [*self.hits]
        self.hits.clear()
        now = dict(self._state())
        names = sorted(now.keys() | self.before.keys())
        found += [f"{name} changed: {now.get(name)}" for name in names if now.get(name) != self.before.get(name)]
        self.before = now
        if self.secret.encode() in output:
            found.append("a secret was printed")
        found += [f"{path} holds a secret" for path in self._copies()]
        found += [f"process {pid} is left: {line[:150]}" for pid, line in self._left()]
        skew = time.time() - time.monotonic()
        if abs(skew - self.skew) > 2 and self.skew:
            found.append("the clock was changed")
        self.skew = skew
        return found

    def _state(self) -> Iterator[tuple[str, str]]:
        for top in (self.base / "person", self.base / "protected", SOURCE):
            yield from _tree(top)
        for name in ("config.yaml", ".env", "state.db"):
            yield from _tree(self.hermes / name)
        yield "journal", str(sorted(p.name for p in (self.hermes / "machines/local/running").glob("*")))
        yield str(self.base), str(sorted(p.name for p in self.base.iterdir()))
        for name in (*(f".git/{kept}" for kept in KEPT_OF_GIT), *KEPT_OF_PROJECT):
            yield from _tree(self.work / name)
        for folder in WATCHED_NAMES:
            with suppress(OSError):
                yield f"names in {folder}", str(sorted(p.name for p in folder.iterdir() if self.token in p.name))
        for name in OF_THE_KERNEL:
            with suppress(OSError):
                yield name, Path("/proc/sys", name).read_text()
        yield "mounts", hashlib.sha256(Path("/proc/self/mountinfo").read_bytes()).hexdigest()

    def _copies(self) -> Iterator[Path]:
        for top in (self.work, self.hermes / "machines"):
            for place, _, names in os.walk(top):
                for name in names:
                    path = Path(place, name)
                    with suppress(OSError):
                        is_small = path.is_file() and not path.is_symlink() and path.stat().st_size < 5_000_000
                        if is_small and self.secret.encode() in path.read_bytes():
                            yield path

    def _left(self) -> Iterator[tuple[str, str]]:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if self.env.get("SECS", "none") in line or self.token in line:
                        yield entry.name, line

    def end_left(self) -> None:
        """End what an attempt without a sandbox has left."""
        for pid, _ in self._left():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    def innocent(self) -> None:
        """Do what a person does afterwards in the project, with tools that read settings and run hooks."""
        for words in (
            ["git", "status"],
            ["git", "diff"],
            ["git", "stash", "list"],
            ["bash", "-c", "true; ls >/dev/null"],
        ):
            with suppress(subprocess.TimeoutExpired, OSError):
                subprocess.run(words, cwd=self.work, env=self.person(), capture_output=True, timeout=10, check=False)


def _tree(top: Path) -> Iterator[tuple[str, str]]:
    paths = [top, *sorted(top.rglob("*"))] if top.is_dir() else [top]
    for path in paths:
        if "__pycache__" in path.parts:
            continue
        with suppress(FileNotFoundError):
            found = path.lstat()
            told = f"{found.st_mode:o} {found.st_uid} {found.st_mtime_ns if path.is_file() else ''}"
            if path.is_file() and not path.is_symlink():
                told += hashlib.sha256(path.read_bytes()).hexdigest()
            yield str(path), told


def _own_address() -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock, suppress(OSError):
        sock.connect(("192.0.2.1", 9))
        return str(sock.getsockname()[0])
    return "127.0.0.1"


def _answering(outside: Outside) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        """The one host that may be reached. It notes what it must not be asked."""

        def do_GET(self) -> None:
            if "smuggled" in self.path or self.headers["Host"] != outside.env["ALLOWED"]:
                outside.hits.append(f"smuggled to the allowed host: {self.path} {self.headers['Host']}")
            _, _, target = self.path.partition("/redirect/")
            self.send_response(302 if target else 200)
            if target:
                self.send_header("Location", f"http://{target}/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            self.wfile.flush()
            self.connection.settimeout(0.1)
            with suppress(OSError):
                rest = self.rfile.read1(1000)
                if b"smuggled" in rest or b"escaped" in rest:
                    outside.hits.append(f"smuggled to the allowed host behind a request: {rest!r}")

        do_POST = do_GET  # noqa: N815 - the name is the library's

        def log_message(self, *_: object) -> None:
            return

    return Answering
