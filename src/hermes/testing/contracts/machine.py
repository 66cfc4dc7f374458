"""What a machine promises, wherever it is: commands, background processes, files."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import anyio

from hermes.domain.errors import Denied, HermesError, Misconfigured, NotFound
from hermes.domain.machine import Command, Finished, Machine, ProcessState
from hermes.testing.contracts.asserting import raises
from hermes.testing.machine import Forever, Said

_PATIENCE = 20


@dataclass(frozen=True, slots=True)
class Ground:
    """A machine with a workspace. `link` makes a link in it: the path, then what it leads to."""

    machine: Machine
    workspace: Path
    link: Callable[[Path, Path], None]

    def command(self, text: str, *, session: str = "s", seconds: float = _PATIENCE) -> Command:
        """Return an order to run in the workspace."""
        return Command(text, self.workspace, session, self.workspace, timeout=timedelta(seconds=seconds))

    async def run(self, text: str, *, seconds: float = _PATIENCE) -> Finished:
        """Run to the end."""
        return await self.machine.run(self.command(text, seconds=seconds), lambda _: None)

    async def spawn(self, text: str, *, session: str = "s") -> ProcessState:
        """Start in the background."""
        return await self.machine.spawn(self.command(text, session=session))


def answer(command: Command) -> "Said | Forever":
    """The few commands of this suite, for a machine that runs nothing."""
    match command.text.split():
        case ["echo", *words]:
            return Said(" ".join(words).encode() + b"\n")
        case ["exit", code]:
            return Said(exit_code=int(code))
        case ["sleep", _] | ["cat"]:
            return Forever()
        case _:
            return Said(b"not found\n", 127)


class MachineContract:
    """`ground` is a fixture; its machine knows `echo`, `exit`, `sleep` and `cat`."""

    async def test_a_command_tells_what_it_printed_and_how_it_ended(self, ground: Ground) -> None:
        """Both to whoever looks on and at the end."""
        heard = bytearray()
        done = await ground.machine.run(ground.command("echo one two"), heard.extend)
        assert (done.output, done.exit_code, done.total, done.is_timed_out) == (b"one two\n", 0, 8, False)
        assert bytes(heard) == done.output
        assert (await ground.run("exit 3")).exit_code == 3

    async def test_a_command_that_takes_too_long_is_ended(self, ground: Ground) -> None:
        """And says so."""
        with anyio.fail_after(_PATIENCE):
            done = await ground.run("sleep 71", seconds=0.2)
        assert done.is_timed_out
        assert done.exit_code != 0

    async def test_a_command_can_be_cancelled(self, ground: Ground) -> None:
        """At once."""
        with anyio.fail_after(_PATIENCE):
            with anyio.move_on_after(0.1) as scope:
                await ground.run("sleep 71")
            assert scope.cancelled_caught

    async def test_a_background_process_belongs_to_its_session(self, ground: Ground) -> None:
        """Nobody else is told of it."""
        one = await ground.spawn("sleep 71")
        assert one.exit_code is None
        assert [state.id for state in ground.machine.processes("s")] == [one.id]
        assert ground.machine.processes("other") == []
        assert await ground.machine.end_session("s") == 1
        assert ground.machine.processes("s") == []
        assert await ground.machine.end_session("s") == 0

    async def test_what_a_background_process_prints_is_read_in_parts(self, ground: Ground) -> None:
        """From any place, also after its end."""
        one = await ground.spawn("echo one two")
        done = await ground.machine.wait(one.id, timedelta(seconds=_PATIENCE))
        assert (done.exit_code, done.total) == (0, 8)
        assert await ground.machine.output(one.id, offset=4, limit=3) == b"two"
        assert await ground.machine.output(one.id, offset=100, limit=3) == b""

    async def test_waiting_ends_with_the_time(self, ground: Ground) -> None:
        """The process goes on."""
        one = await ground.spawn("sleep 71")
        assert (await ground.machine.wait(one.id, timedelta(milliseconds=50))).exit_code is None
        killed = await ground.machine.kill(one.id)
        assert killed.exit_code is not None
        assert (await ground.machine.kill(one.id)).exit_code == killed.exit_code

    async def test_one_can_write_to_what_lives_and_not_to_what_has_ended(self, ground: Ground) -> None:
        """Whoever writes is told."""
        one = await ground.spawn("cat")
        await ground.machine.write(one.id, b"hello\n")
        await ground.machine.kill(one.id)
        await raises(Misconfigured, ground.machine.write(one.id, b"more"))

    async def test_a_process_that_is_none_is_not_found(self, ground: Ground) -> None:
        """Whatever is asked of it."""
        machine = ground.machine
        await raises(NotFound, machine.output("none", offset=0, limit=1))
        await raises(NotFound, machine.wait("none", timedelta(seconds=1)))
        await raises(NotFound, machine.write("none", b""))
        await raises(NotFound, machine.kill("none"))

    async def test_a_file_is_written_as_a_whole_and_read_in_part(self, ground: Ground) -> None:
        """Folders on the way are made."""
        files, path = ground.machine.files, ground.workspace / "deep" / "a"
        await files.write(path, b"first")
        await files.write(path, b"second")
        assert await files.read(path, limit=100) == b"second"
        assert await files.read(path, limit=3) == b"sec"
        found = await files.status(path)
        assert found is not None
        assert (found.path, found.size, found.is_folder) == (path, 6, False)
        folder = await files.status(ground.workspace / "deep")
        assert folder is not None
        assert folder.is_folder

    async def test_a_folder_is_listed_by_name(self, ground: Ground) -> None:
        """Files and folders, one level."""
        files = ground.machine.files
        for name in ("b", "a", "c/d/e"):
            await files.write(ground.workspace / name, b"")
        names = [(one.path.name, one.is_folder) for one in await files.names(ground.workspace)]
        assert names == [("a", False), ("b", False), ("c", True)]

    async def test_what_is_not_there_is_not_found(self, ground: Ground) -> None:
        """A status is no error."""
        files, path = ground.machine.files, ground.workspace / "none"
        assert await files.status(path) is None
        assert await files.status(path / "below") is None
        await raises(NotFound, files.read(path, limit=1))
        await raises(NotFound, files.remove(path))
        await raises(NotFound, files.names(path))

    async def test_a_removed_file_is_gone(self, ground: Ground) -> None:
        """Once."""
        files, path = ground.machine.files, ground.workspace / "a"
        await files.write(path, b"x")
        await files.remove(path)
        assert await files.status(path) is None

    async def test_a_folder_is_no_file_and_a_file_no_folder(self, ground: Ground) -> None:
        """Each is told of as what it is."""
        files = ground.machine.files
        await files.write(ground.workspace / "f" / "a", b"x")
        for wrong in (
            files.read(ground.workspace / "f", limit=1),
            files.write(ground.workspace / "f", b"x"),
            files.remove(ground.workspace / "f"),
            files.names(ground.workspace / "f" / "a"),
            files.write(ground.workspace / "f" / "a" / "b", b"x"),
        ):
            await raises(Misconfigured, wrong)

    async def test_only_resolved_paths_are_taken(self, ground: Ground) -> None:
        """What leads back, or is no path, is refused before anything is touched."""
        files = ground.machine.files
        for path in (Path("a"), ground.workspace / ".." / "a", ground.workspace / "a\0b"):
            await raises(HermesError, files.read(path, limit=1))
            await raises(HermesError, files.write(path, b"x"))
        try:
            files.resolve(Path("a"))
        except Misconfigured:
            return
        raise AssertionError("a path that is not absolute was resolved")

    async def test_a_link_is_followed_by_resolving_and_by_nothing_else(self, ground: Ground) -> None:
        """So that what was judged is what is touched."""
        files, link, target = ground.machine.files, ground.workspace / "link", ground.workspace / "target"
        await files.write(target / "a", b"x")
        ground.link(link, target)
        assert files.resolve(link / "a") == target / "a"
        assert files.resolve(link / "new" / ".." / "b") == target / "b"
        await raises((Denied, Misconfigured), files.read(link / "a", limit=1))
        await raises((Denied, Misconfigured), files.write(link / "b", b"x"))
        assert await files.status(target / "b") is None
