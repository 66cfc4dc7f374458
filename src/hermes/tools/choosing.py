"""Which of the tools that can be had an assistant has: by setting, by flag, by platform.

Invariant: what is switched off anywhere is off; a name that means nothing is told of, not passed over.
"""

import difflib
from collections.abc import Collection, Iterable

from hermes.domain.errors import NotFound
from hermes.domain.records import dataclass
from hermes.domain.tool import Toolset, ToolSpec
from hermes.effects.toolset import filtered

SMALL_TOOLS = ("read_file", "terminal")
"""What a small model can use; each further tool makes it choose worse, and read longer before it answers."""


@dataclass(frozen=True, slots=True)
class Choosing:
    """What is on and off. Each name is a tool, a toolset, or one of them after `platform:`."""

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    platform: str = "cli"

    def is_on(self, spec: ToolSpec) -> bool:
        """Whether a tool is there."""
        names = {spec.name, spec.toolset, f"{self.platform}:{spec.name}", f"{self.platform}:{spec.toolset}"}
        # What is enabled for another platform says nothing about this one.
        meant = [one for one in self.enabled if ":" not in one or one.startswith(f"{self.platform}:")]
        return (not meant or not names.isdisjoint(meant)) and names.isdisjoint(self.disabled)

    def of(self, toolset: Toolset) -> Toolset:
        """Leave out what is off."""
        return filtered(toolset, self.is_on)


def known_names(toolset: Toolset) -> list[str]:
    """Return the names of all tools and toolsets."""
    return sorted({name for one in toolset.tools() for name in (one.spec.name, one.spec.toolset)})


def require_known(names: Iterable[str], known: Collection[str]) -> None:
    """Raise NotFound for a name that is neither a tool nor a toolset."""
    for name in names:
        plain = name.rpartition(":")[2]
        if plain not in known:
            near = difflib.get_close_matches(plain, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(known)}"
            raise NotFound(f"there is no tool or toolset {name!r}; {hint}")
