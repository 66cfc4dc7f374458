"""One table of names per kind of part: ours and those of installed distributions come in by the same door.

Invariant: nothing is imported before it is asked for by name, and one broken part never hides another.
"""

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar, cast

from hermes.domain.errors import Conflict, Misconfigured, NotFound
from hermes.domain.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Part:
    """Where a name leads: `target` is `package.module:attribute`, `distribution` None for what Hermes brings."""

    name: str
    target: str
    distribution: str | None = None

    @property
    def source(self) -> str:
        """Who offers it, for people."""
        return "Hermes itself" if self.distribution is None else f"the distribution {self.distribution!r}"


def installed(group: str) -> list[Part]:
    """Return what installed distributions offer in one entry-point group."""
    if not _is_offered(group):
        return []
    from importlib.metadata import entry_points

    return [Part(e.name, e.value, e.dist.name if e.dist else "of an unknown name") for e in entry_points(group=group)]


def _is_offered(group: str) -> bool:
    """Whether any distribution may offer something. Usually none does, and asking importlib costs 30 ms of CPU."""
    wanted = f"[{group}]".encode()
    for place in dict.fromkeys(sys.path):
        folder = Path(place or ".")
        if folder.is_file():
            # An archive, which only importlib looks into.
            return True
        for path in folder.glob("*.*-info/entry_points.txt"):
            with suppress(OSError):
                if wanted in path.read_bytes():
                    return True
    return False


class Registry(Generic[T]):
    """Names of one kind of part, such as `hermes.jobs`, and the factories they lead to.

    `discover` is called once, when a name is first wanted.
    """

    def __init__(
        self, group: str, built_in: Mapping[str, str], *, discover: Callable[[str], Iterable[Part]] = installed
    ) -> None:
        self.group = group
        self._built_in = [Part(name, target) for name, target in built_in.items()]
        self._discover = discover

    def names(self) -> tuple[str, ...]:
        """Return every name, also of parts that cannot be loaded, in alphabetical order. Nothing is imported."""
        return tuple(sorted(self._parts))

    def load(self, name: str) -> T:
        """Import what a name leads to and return it.

        Raises NotFound with the nearest name, Conflict when two offer the name, Misconfigured when it cannot be
        imported.
        """
        parts = self._parts.get(name)
        if parts is None:
            raise NotFound(f"{self.group} has no {name!r}; {self._hint(name)}")
        if len(parts) > 1:
            sources = " and ".join(f"{part.source} ({part.target})" for part in parts)
            raise Conflict(f"{self.group} has {name!r} from {sources}; {_removal(parts)}")
        return cast("T", _imported(self.group, parts[0]))

    @cached_property
    def _parts(self) -> dict[str, list[Part]]:
        found: dict[str, list[Part]] = {}
        for part in (*self._built_in, *self._discover(self.group)):
            found.setdefault(part.name, []).append(part)
        return found

    def _hint(self, name: str) -> str:
        import difflib

        near = difflib.get_close_matches(name, self.names(), n=1)
        return f"did you mean {near[0]!r}?" if near else f"there is {', '.join(self.names()) or 'nothing'}"


def _imported(group: str, part: Part) -> object:
    module, colon, attributes = part.target.partition(":")
    try:
        if not colon or not attributes:
            raise ValueError("expected package.module:attribute")  # noqa: TRY301  # told like any other failure
        found: object = importlib.import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except Exception as error:
        # Importing runs a stranger's code, which may raise anything.
        reason = f"{type(error).__name__}: {error}"
        what = f"{group} {part.name!r} ({part.target}) of {part.source} cannot be loaded: {reason}"
        raise Misconfigured(f"{what}; {_removal([part])}") from error
    return found


def _removal(parts: Iterable[Part]) -> str:
    removable = [part.distribution for part in parts if part.distribution is not None]
    if not removable:
        return "this is a fault of this installation; install Hermes again"
    return "to remove it: " + " or ".join(f"`pip uninstall {name}`" for name in removable)
