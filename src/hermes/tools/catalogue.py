"""The built-in toolsets, wired to what they share."""

from hermes.domain.machine import Machine
from hermes.domain.records import dataclass
from hermes.domain.session import SessionId
from hermes.domain.tool import Toolset
from hermes.effects.spill import Spill
from hermes.effects.toolset import Tools
from hermes.tools.clarify import clarify_tool
from hermes.tools.notices import Notices
from hermes.tools.patching import patch_tool
from hermes.tools.process import process_tool
from hermes.tools.reading import read_file_tool
from hermes.tools.searching import search_files_tool
from hermes.tools.seen import Seen
from hermes.tools.terminal import Shells, terminal_tool
from hermes.tools.todo import todo_tool
from hermes.tools.writing import write_file_tool


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """All built-in toolsets, and what their background processes have to say. What they remember of sessions is
    theirs, so one process makes them once.
    """

    toolsets: tuple[Toolset, ...]
    notices: Notices
    shells: Shells

    async def stop(self, machine: Machine, session: SessionId) -> int:
        """End every process of a session; return how many there were."""
        self.notices.forget(session)
        self.shells.forget(session, [one.id for one in machine.processes(session)])
        ended = await machine.end_session(session)
        await machine.end_session(f"{session}:search")
        return ended


def built_in(spill: Spill, *, is_lasting: bool = False) -> BuiltIn:
    """Make the toolsets anew. `is_lasting` says that their sessions outlive a run."""
    notices, seen, shells = Notices(), Seen(), Shells.none()
    toolsets: tuple[Toolset, ...] = (
        Tools("terminal", (terminal_tool(shells, spill, notices, is_lasting=is_lasting), process_tool(shells))),
        Tools("file", (read_file_tool(seen), write_file_tool(seen), patch_tool(seen), search_files_tool())),
        Tools("todo", (todo_tool(),)),
        Tools("clarify", (clarify_tool(),)),
    )
    return BuiltIn(toolsets, notices, shells)
