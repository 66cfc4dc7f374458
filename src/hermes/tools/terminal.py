"""The tools `terminal` and `process`: commands on the machine, in the foreground and in the background."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from hermes.domain.effect import Effect, RunCommand
from hermes.domain.errors import Misconfigured
from hermes.domain.event import JSON
from hermes.domain.machine import Command, Finished, Machine
from hermes.domain.records import dataclass
from hermes.domain.session import SessionId
from hermes.domain.tool import Outcome, ToolContext
from hermes.effects.spill import Spill, clip
from hermes.effects.tool import Effects, FunctionTool, answer, tool
from hermes.tools.notices import Notices
from hermes.tools.paths import resolve

_MOST_SECONDS = 600
_MOST_BYTES, _MOST_LINES = 40_000, 1_900
_HEAD = 12_000
_MOST_SESSIONS = 1_000
_EXPECTED = timedelta(seconds=30)
_ENDS_WITH_RUN = "it ends when you have given your final answer: nothing goes on after that here, so tell the user"
_INSIDE = "a server in it is reached by commands of this session only, not by the user's browser"
_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True)
class Terminal:
    """What `terminal` takes."""

    command: str
    background: Annotated[bool, "start and return its session_id at once"] = False
    timeout: Annotated[int, Meta(ge=1, description="seconds, at most 600")] = 180
    workdir: str | None = None
    pty: bool = False
    notify_on_complete: Annotated[bool, "background: tell me when it ends"] = False
    watch_patterns: Annotated[tuple[str, ...], "background: tell me when a line holds one of these"] = ()
    full_access: Annotated[bool, "outside the sandbox; a person is asked"] = False


@dataclass(slots=True)
class Shells:
    """Where the shell of each session stands, and which background processes nothing holds. Bounded."""

    folders: OrderedDict[SessionId, Path]
    unheld: set[str]

    @classmethod
    def none(cls) -> "Shells":
        """No session has run anything."""
        return cls(OrderedDict(), set())

    def stand(self, session: SessionId, folder: Path) -> None:
        """A command left the shell there."""
        self.folders[session] = folder
        self.folders.move_to_end(session)
        while len(self.folders) > _MOST_SESSIONS:
            self.folders.popitem(last=False)

    def leave_unheld(self, process: str) -> None:
        """A background process runs with nothing to hold it."""
        self.unheld.add(process)

    def forget(self, session: SessionId, processes: Iterable[str]) -> None:
        """The session has ended."""
        self.folders.pop(session, None)
        self.unheld.difference_update(processes)


def terminal_tool(shells: Shells, spill: Spill, notices: Notices, *, is_lasting: bool = False) -> FunctionTool:
    """Make the tool. Where sessions do not outlive a run, a model that starts something in the background is told."""

    def plan(arguments: Terminal, context: ToolContext) -> Sequence[Effect]:
        if not arguments.command.strip() or "\0" in arguments.command:
            raise Misconfigured(f"{arguments.command[:100]!r} is no command; write a shell line")
        folder = shells.folders.get(context.session, context.workspace)
        if arguments.workdir:
            folder = resolve(arguments.workdir, context)
        return (RunCommand(arguments.command, folder, arguments.background, arguments.full_access),)

    @tool(
        toolset="terminal",
        access="write",
        effects=plan,
        timeout=timedelta(seconds=_MOST_SECONDS) + _EXPECTED,
        see_also={
            "read_file": "Read files with read_file, not cat.",
            "search_files": "Search with search_files, not grep or find.",
            "patch": "Edit with patch, not sed.",
            "process": "Look after background processes with process.",
        },
    )
    async def terminal(arguments: Terminal, effects: Effects, context: ToolContext) -> Outcome:
        """Run a shell command in the workspace. Directory and exported variables stay for the next call."""
        command = _command(arguments, effects, context)
        if arguments.background:
            return await _start(arguments, command, context)
        done = await context.machine.run(command, _Progress(context))
        shells.stand(context.session, done.cwd)
        return await _answer(done, arguments, spill, context)

    async def _start(arguments: Terminal, command: Command, context: ToolContext) -> Outcome:
        state = await context.machine.spawn(command)
        is_held = context.machine.protection == "sandbox" and command.mode != "full"
        if not is_held:
            shells.leave_unheld(state.id)
        notices.watch(
            context.machine,
            state,
            is_told_of_end=arguments.notify_on_complete,
            patterns=arguments.watch_patterns,
        )
        said = ([] if is_lasting else [_ENDS_WITH_RUN]) + ([_INSIDE] if is_held else [])
        fields: dict[str, JSON] = {"session_id": state.id, "pid": state.pid, "output": "started in the background"}
        return answer({**fields, "exit_code": 0, **({"note": "; ".join(said)} if said else {})})

    return terminal


async def _answer(done: Finished, arguments: Terminal, spill: Spill, context: ToolContext) -> Outcome:
    fields: dict[str, JSON] = {"output": await _output(done, spill, context), "exit_code": done.exit_code}
    if done.is_timed_out:
        fields["error"] = f"it took longer than {arguments.timeout} s and was ended; use background for what takes long"
    if done.notes:
        fields["note"] = "; ".join(done.notes)
        for note in done.notes:
            context.progress(note)
    if done.denied_hosts:
        fields["denied_hosts"] = list(done.denied_hosts)
    return answer(fields)


def _command(arguments: Terminal, effects: Effects, context: ToolContext) -> Command:
    effect = effects[0]
    if not isinstance(effect, RunCommand):
        raise TypeError(f"expected the plan of a command, not {effect!r}")
    return Command(
        text=effect.command,
        cwd=effect.cwd,
        session=context.session,
        workspace=context.workspace,
        mode="full" if effect.is_full else context.mode,
        timeout=timedelta(seconds=min(arguments.timeout, _MOST_SECONDS)),
        is_pty=arguments.pty,
        may_connect=context.may_connect,
    )


async def _output(done: Finished, spill: Spill, context: ToolContext) -> str:
    tail = readable(done.output)
    if done.spilled is None:
        if clip(tail, _MOST_BYTES, _MOST_LINES) is None:
            return tail
        path = await spill.keep(context.session, tail, name="terminal")
        cut = clip(tail, _MOST_BYTES, _MOST_LINES, where=str(path))
        return cut.text if cut else tail
    path = await spill.adopt(context.session, done.spilled, name="terminal")
    head = readable(await head_of(context.machine, done.spilled))
    between = f"… {done.total:,} bytes in all, the middle is left out; all of it: read_file {path} …"
    start = clip(head, _HEAD, _MOST_LINES // 3)
    rest = tail.encode()[-(_MOST_BYTES - _HEAD) :].decode("utf-8", "ignore").split("\n")[-_MOST_LINES * 2 // 3 :]
    return f"{start.text if start else head}\n{between}\n" + "\n".join(rest)


async def head_of(machine: Machine, path: Path) -> bytes:
    """Return the beginning of a long output."""
    raw = await machine.files.read(machine.files.resolve(path), limit=_HEAD // 2)
    return raw[: raw.rfind(b"\n") + 1] or raw


def readable(raw: bytes) -> str:
    """Decode what a program printed: without colours, and of a line that was drawn again and again the last state."""
    text = _COLOURS.sub("", raw.decode("utf-8", "replace")).replace("\r\n", "\n")
    if "\r" not in text:
        return text
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


class _Progress:
    """Shows the last line of a command's output, at most once a second."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._next = context.clock.monotonic() + 1

    def __call__(self, data: bytes) -> None:
        now = self._context.clock.monotonic()
        lines = data.decode("utf-8", "replace").split("\n")
        line = next((one.strip() for one in reversed(lines) if one.strip()), "")
        if now < self._next or not line:
            return
        self._next = now + 1
        self._context.progress(_COLOURS.sub("", line)[:200])
