"""The built-in toolsets, wired to what they share."""

from collections.abc import Sequence
from dataclasses import dataclass

from hermes.domain.tool import Toolset
from hermes.effects.spill import Spill
from hermes.effects.toolset import Tools
from hermes.tools.notices import Notices
from hermes.tools.reading import read_file_tool
from hermes.tools.seen import Seen
from hermes.tools.terminal import Shells, terminal_tool


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """All built-in toolsets, and what their background processes have to say."""

    toolsets: tuple[Toolset, ...]
    notices: Notices


def built_in(spill: Spill) -> BuiltIn:
    """Make the toolsets anew; what they remember of sessions is theirs."""
    notices, seen, shells = Notices(), Seen(), Shells.none()
    terminal: Toolset = Tools("terminal", (terminal_tool(shells, spill, notices),))
    file: Toolset = Tools("file", (read_file_tool(seen),))
    return BuiltIn((terminal, file), notices)


def names(toolsets: Sequence[Toolset]) -> list[str]:
    """Return the names of the toolsets."""
    return [one.name for one in toolsets]
