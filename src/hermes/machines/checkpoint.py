"""Keeps what was in a workspace before a run first changed something, and brings it back.

Invariant: a checkpoint that can be seen is whole: contents are on disk before the manifest that names them, and each is
checked when it is brought back. Bringing back is itself preceded by a checkpoint.
"""

import fcntl
import hashlib
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

import anyio
import anyio.to_thread
import msgspec

from hermes.domain.clock import Clock
from hermes.domain.errors import HermesError, NotFound, Unavailable
from hermes.domain.records import dataclass
from hermes.domain.tool import ToolContext
from hermes.machines.files import LocalFiles
from hermes.machines.manifest import Bounds, Kept, Manifest, Scan, State, is_of_git, scan
from hermes.machines.objects import Objects
from hermes.machines.outside import OldFile, OldFiles

T = TypeVar("T")

KEPT = 20
LATEST = "latest"
_MOST_RUNS = 1_000
_PRIVATE, _PRIVATE_FILE = 0o700, 0o600
_log = logging.getLogger("hermes.machines")

Kind = Literal["changed", "removed", "added"]
"""What has happened to a file since the checkpoint."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One moment of a workspace. `note` says what is not in it."""

    id: str
    run: str
    at: str
    workspace: Path
    files: int
    note: str
    why: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A file that is not as it was."""

    path: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Restored:
    """What was brought back. `failed` names each file that could not be, with the reason; `undo` is the checkpoint of
    how it was before.
    """

    differences: tuple[Difference, ...]
    failed: tuple[str, ...]
    undo: str
    objects: int = 0
    """How many objects of git came back."""
    missing: str = ""
    """What was not in the checkpoint, and so is as it is now."""
    undo_missing: str = ""
    """What of now is not in the way back."""


class Checkpoints:
    """The checkpoints of all workspaces of a home. Several processes may use it. All work is done in threads."""

    def __init__(self, home: Path, clock: Clock, *, bounds: Bounds | None = None, kept: int = KEPT) -> None:
        self._folder = home / "checkpoints"
        self._clock = clock
        self._bounds = bounds or Bounds()
        self._kept = kept
        self._files = LocalFiles()
        self._runs: OrderedDict[str, set[Path]] = OrderedDict()
        """By run, the files outside the workspace that were kept."""

    async def before_write(self, context: ToolContext, outside: Sequence[Path] = ()) -> str | None:
        """Keep the workspace, the first time in a run, and each file outside it that will be written over. Returns
        what a person should know; a failure is told, too.
        """
        if context.machine.name != "local":
            return None
        said = [await self._first_of_run(context)]
        said += [await self._keep_outside(context, path) for path in outside if path not in self._runs[context.run]]
        return "; ".join(one for one in said if one) or None

    async def _keep_outside(self, context: ToolContext, path: Path) -> str | None:
        self._runs[context.run].add(path)
        try:
            made = await self.keep_outside(context.workspace, context.run, path)
        except HermesError as error:
            return str(error)
        return f"how {str(path)!r} was is kept: hermes checkpoints restore {made.id}" if made else None

    async def keep_outside(self, workspace: Path, run: str, path: Path) -> OldFile | None:
        """Keep one file that is not in the workspace; None when there is none. Raises Unavailable."""
        name, at = self._clock.new_id(), self._clock.now().isoformat()
        try:
            return await anyio.to_thread.run_sync(lambda: self._outside(workspace).keep(name, run, at, path))
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(f"{str(path)!r} was not kept before it is written over: {error}") from error

    async def outside(self, workspace: Path) -> list[OldFile]:
        """Return the files outside that runs of a workspace have written over, the newest first."""
        return await _in_thread(lambda: list(self._outside(workspace).all()))

    async def restore_outside(self, workspace: Path, word: str) -> tuple[OldFile, str] | None:
        """Bring back one file that is not in the workspace; return it, and how to undo this. None when `word` names
        none, or several.
        """
        found = [one for one in await self.outside(workspace) if word and one.id.startswith(word)]
        if len(found) != 1:
            return None
        (one,), path = found, Path(found[0].path)
        content = await _in_thread(lambda: self._outside(workspace).content(one))
        undo = await self.keep_outside(workspace, one.run, path)
        await self._files.write(self._files.resolve(path), content)
        await _in_thread(lambda: _set_mode(path, one.mode))
        return one, undo.id if undo else ""

    def _outside(self, workspace: Path) -> OldFiles:
        return OldFiles(self._place(workspace) / "outside")

    async def _first_of_run(self, context: ToolContext) -> str | None:
        if context.run in self._runs:
            return None
        self._runs[context.run] = set()
        while len(self._runs) > _MOST_RUNS:
            self._runs.popitem(last=False)
        try:
            made = await self.keep(context.workspace, context.run, why="before the first change")
        except HermesError as error:
            _log.warning("no checkpoint was made", extra={"fields": {"run": context.run, "error": str(error)}})
            return f"no checkpoint was made: {error}"
        return f"the checkpoint does not hold everything: {made.note}" if made.note else None

    async def keep(self, workspace: Path, run: str, *, why: str = "") -> Checkpoint:
        """Make a checkpoint now. Raises Unavailable when the disk does not take it."""
        name, at = self._clock.new_id(), self._clock.now().isoformat()
        return await _in_thread(lambda: _described(self._keep(workspace, run, name, at, why)))

    async def find(self, workspace: Path) -> list[Checkpoint]:
        """Return the checkpoints of a workspace, the newest first."""
        return await _in_thread(lambda: [_described(one) for one in self._all(workspace)])

    async def diff(self, workspace: Path, word: str) -> list[Difference]:
        """Return what is not as it was; `word` is a checkpoint or a run. Raises NotFound."""
        return await _in_thread(lambda: self._differences(self._named(workspace, word), workspace))

    async def restore(self, workspace: Path, word: str) -> Restored:
        """Bring back the files as they were; `word` is a checkpoint or a run. Raises NotFound."""
        wanted = await _in_thread(lambda: self._named(workspace, word))
        undo = await self.keep(workspace, wanted.run, why=f"before going back to {wanted.id}")
        differences = await _in_thread(lambda: self._differences(wanted, workspace))
        root = Path(wanted.workspace)
        failed = []
        back, lost = await _in_thread(lambda: self._objects(root).bring_back(wanted.id, root))
        if lost:
            failed.append(f"{lost:,} objects of git are lost")
        for one in differences:
            try:
                await self._bring_back(wanted, one, root)
            except HermesError as error:
                failed.append(f"{one.path}: {error}")
        return Restored(tuple(differences), tuple(failed), undo.id, back, wanted.missing, undo.note)

    async def _bring_back(self, wanted: Manifest, one: Difference, root: Path) -> None:
        path = root / one.path
        if one.path in wanted.folders:
            await _in_thread(lambda: _make_folder(path))
            return
        if one.kind == "added":
            await self._files.remove(path)
            return
        kept = wanted.files[one.path]
        content = b"" if kept.target is not None else await _in_thread(lambda: self._content(root, kept))
        if one.kind == "changed" and (kept.target is not None or await _in_thread(path.is_symlink)):
            await self._files.remove(path)
        if kept.target is not None:
            await _in_thread(lambda: _link(path, str(kept.target)))
            return
        await self._files.write(path, content)
        await _in_thread(lambda: _set_mode(path, kept.state.mode))

    def _place(self, workspace: Path) -> Path:
        real = os.fsencode(os.path.realpath(workspace))
        return self._folder / hashlib.sha256(real).hexdigest()[:24]

    def _differences(self, wanted: Manifest, workspace: Path) -> list[Difference]:
        root = Path(os.path.realpath(workspace))
        return _compared(wanted, scan(root, self._bounds), root)

    def _keep(self, workspace: Path, run: str, name: str, at: str, why: str) -> Manifest:
        place, root = self._place(workspace), Path(os.path.realpath(workspace))
        place.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        with _alone(place):
            last = next(self._all(workspace), None)
            found = scan(root, self._bounds)
            files = _packed(root, found, last, place / f"{name}.pack")
            for link, target in found.links.items():
                files[link] = Kept(State(0, 0, 0, 0, 0), target=target)
            objects = self._objects(root).keep(name, root, found.repositories)
            left_out, folders, skipped = map(tuple, (found.left_out, found.folders, found.skipped))
            made = Manifest(
                name, run, at, str(root), files, left_out, found.is_complete, why, folders, skipped, objects
            )
            _write_whole(place / f"{name}.json", msgspec.json.encode(made))
            self._forget_old(workspace)
        return made

    def _objects(self, workspace: Path) -> Objects:
        return Objects(self._place(workspace) / "objects")

    def _all(self, workspace: Path) -> Iterator[Manifest]:
        for path in sorted(self._place(workspace).glob("*.json"), reverse=True):
            with suppress(FileNotFoundError, msgspec.DecodeError, msgspec.ValidationError):
                yield msgspec.json.decode(path.read_bytes(), type=Manifest)

    def _named(self, workspace: Path, word: str) -> Manifest:
        """A run may have several: the first is how it was before the run. `latest` is the newest of all."""
        every = list(self._all(workspace))
        if word == LATEST and every:
            return every[0]
        found = [one for one in every if word and (one.run == word or one.id.startswith(word))]
        if not found:
            raise NotFound(f"there is no checkpoint {word!r} of {str(workspace)!r}; look at the list")
        return found[-1]

    def _forget_old(self, workspace: Path) -> None:
        place = self._place(workspace)
        names = sorted(path.stem for path in place.glob("*.json"))
        if len(names) <= self._kept:
            return
        for name in names[: -self._kept]:
            (place / f"{name}.json").unlink(missing_ok=True)
        self._objects(workspace).forget(names[-self._kept :])
        used = {kept.pack for one in self._all(workspace) for kept in one.files.values()}
        for pack in place.glob("*.pack"):
            if pack.stem not in used:
                pack.unlink(missing_ok=True)

    def _content(self, workspace: Path, kept: Kept) -> bytes:
        with (self._place(workspace) / f"{kept.pack}.pack").open("rb") as pack:
            pack.seek(kept.offset)
            content = pack.read(kept.state.size)
        if _digest(content) != kept.digest:
            raise Unavailable("its content in the checkpoint is damaged; restore it from a backup")
        return content


async def _in_thread(work: Callable[[], T]) -> T:
    try:
        return await anyio.to_thread.run_sync(work)
    except OSError as error:
        about = f"{error.filename!r}: " if error.filename else ""
        raise Unavailable(f"the checkpoint cannot be used: {about}{error.strerror}; look at the disk") from error


def _packed(root: Path, found: Scan, last: Manifest | None, path: Path) -> dict[str, Kept]:
    """Return every file with where its content is; what is new goes into one new pack."""
    before = last.files if last is not None else {}
    by_digest = {kept.digest: kept for kept in before.values() if kept.target is None}
    files: dict[str, Kept] = {}
    pack: BinaryIO | None = None
    try:
        for name, state in found.files.items():
            known = before.get(name)
            if known is not None and known.state == state:
                files[name] = known
                continue
            content = _read(root / name, state.size)
            if content is None:
                found.leave_out(name)
                continue
            held = State(len(content), state.modified, state.changed, state.inode, state.mode)
            digest = _digest(content)
            same = by_digest.get(digest)
            if same is None:
                pack = pack or _opened(path)
                same = by_digest[digest] = Kept(held, digest, path.stem, pack.tell())
                pack.write(content)
            files[name] = Kept(held, digest, same.pack, same.offset)
        if pack is not None:
            pack.flush()
            os.fsync(pack.fileno())
    finally:
        if pack is not None:
            pack.close()
    return files


def _compared(wanted: Manifest, now: Scan, root: Path) -> list[Difference]:
    found: list[Difference] = []
    for name, kept in wanted.files.items():
        if not os.path.lexists(root / name):
            found.append(Difference(name, "removed"))
        elif is_of_git(name):
            # What git has done since is not undone; only what is gone comes back.
            continue
        elif not _is_same(root / name, kept, now, name):
            found.append(Difference(name, "changed"))
    if wanted.is_complete:
        spared = {*wanted.files, *wanted.left_out}
        new = (name for name in (*now.files, *now.links) if name not in spared and not is_of_git(name))
        found += [Difference(name, "added") for name in new]
    found += [Difference(name, "removed") for name in wanted.folders if not os.path.lexists(root / name)]
    return sorted(found, key=lambda one: one.path)


def _is_same(path: Path, kept: Kept, now: Scan, name: str) -> bool:
    if kept.target is not None:
        return now.links.get(name) == kept.target
    state = now.files.get(name)
    if state is None or (kept.state.size, kept.state.mode) != (state.size, state.mode):
        return False
    if kept.state == state:
        return True
    content = _read(path, state.size)
    return content is not None and _digest(content) == kept.digest


def _read(path: Path, size: int) -> bytes | None:
    """Return a regular file's content; None when it is gone, or has grown meanwhile."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb", buffering=0) as file:
        content = file.read(size + 1) or b""
    return content if len(content) <= size else None


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).digest()


def _opened(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE), "wb")


def _write_whole(path: Path, content: bytes) -> None:
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with _opened(part) as file:
        file.write(content)
    part.rename(path)


def _make_folder(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    if os.path.realpath(path) != str(path):
        raise Unavailable("a link has come into its way; look at its folder")


def _link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.realpath(path.parent) != str(path.parent):
        raise Unavailable("a link has come into its way; look at its folder")
    path.symlink_to(target)


def _set_mode(path: Path, mode: int) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        # What was opened counts, not what the name may mean by now.
        if Path(f"/proc/self/fd/{handle}").readlink() == path:
            os.fchmod(handle, mode & 0o777)
    finally:
        os.close(handle)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """No other process keeps or forgets checkpoints of this workspace meanwhile."""
    handle = os.open(place / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_FILE)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _described(made: Manifest) -> Checkpoint:
    return Checkpoint(made.id, made.run, made.at, Path(made.workspace), len(made.files), made.missing, made.why)
