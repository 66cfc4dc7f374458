"""The rules of the house: with which prefix a context opens, from the files and settings of this installation.

Invariant: a prefix is made once for a context, and kept with it; what changes in a file later is read by the next one.
"""

import hashlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

import anyio.to_thread
import msgspec

from hermes.agent.guidance import Guidance, gather
from hermes.agent.prompt import COMPACT, SMALL, Facts, system_prompt
from hermes.domain.clock import Clock
from hermes.domain.machine import Mode
from hermes.domain.model import Provider
from hermes.domain.records import dataclass
from hermes.domain.tool import ToolSpec

_PLATFORMS: Mapping[str, str] = {
    "cli": "Your answer is shown in a terminal.",
    "print": "Your answer is the output of a command: give the result alone. Nobody can answer questions now.",
    "job": "Nobody is there now: nobody can answer questions, and what needs an approval is refused.",
}


_HOSTS = "hosts beyond package indexes and git hosts need an approval"
_LIMITS: Mapping[Mode, str] = {
    "read-only": f"Commands run in a sandbox, in which they write nothing; {_HOSTS}.",
    "workspace": f"Commands run in a sandbox, in which they write in the workspace and /tmp only; {_HOSTS}.",
    "full": "Commands run without a sandbox, with all rights of the user: be careful.",
}


@dataclass(frozen=True, slots=True)
class House:
    """What the system prompt is made from. `user` is the user's profile."""

    home: Path
    clock: Clock
    user: Mapping[str, str] = field(default_factory=dict)
    has_files: bool = True
    """Whether SOUL.md and the files of the project are read."""
    is_compact: bool = False
    """Whether the model is so small that it is told next to nothing."""

    async def prefix(
        self,
        provider: Provider,
        specs: Sequence[ToolSpec],
        workspace: Path,
        *,
        mode: Mode,
        platform_name: str,
        **more: str,
    ) -> tuple[bytes, tuple[str, ...]]:
        """Return the bytes every request of a new context begins with, and what the person should know about it."""
        if self.is_compact:
            return provider.prefix(COMPACT, specs), (SMALL,)
        guidance = Guidance()
        if self.has_files:
            guidance = await anyio.to_thread.run_sync(gather, self.home, workspace)
        facts = Facts(
            day=f"{self.clock.now():%Y-%m-%d}",
            system=f"{platform.system()} {platform.machine()}",
            workspace=workspace,
            limits=_LIMITS[mode],
            platform=_PLATFORMS.get(platform_name, ""),
            user=self.user,
            instructions=more.get("instructions", ""),
            more=more.get("more", ""),
        )
        return provider.prefix(system_prompt(facts, guidance), specs), guidance.notices


def fingerprint(specs: Sequence[ToolSpec]) -> str:
    """Name exactly these tools, as the model is told of them."""
    told = [(spec.name, spec.description, spec.parameters) for spec in specs]
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:32]
