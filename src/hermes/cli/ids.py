"""Ids as people see and type them: cut short, as long as no other begins so."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from hermes.cli.opening import OPERATOR
from hermes.domain.errors import Conflict, NotFound
from hermes.domain.principal import Principal
from hermes.domain.protocols import Store, Tx

SHORTEST = 6
"""So many characters there must be of an id that is cut short."""
_SHOWN = 18
"""So much of an id is shown in a table: its millisecond and twelve random bits."""
_NAMED = 5
"""So many are named of those that a beginning may mean."""


class Known(Protocol):
    """What has an id."""

    @property
    def id(self) -> str:
        """The whole id."""
        ...


K = TypeVar("K", bound=Known)
K_co = TypeVar("K_co", bound=Known, covariant=True)


class Find(Protocol[K_co]):
    """A repository's `beginning_with`: one with just this id is alone."""

    def __call__(self, tx: Tx, principal: Principal, prefix: str, /, *, limit: int) -> Sequence[K_co]:
        """Return those whose id begins so."""
        ...


async def named(store: Store, word: str, find: Find[K], *, noun: str, listing: str) -> K:
    """Return the one whose id is, or begins with, a word; `listing` is the command that shows what there is.

    Raises NotFound, or Conflict naming those it may be.
    """
    found = await store.read(lambda tx: find(tx, OPERATOR, word, limit=_NAMED + 1))
    if len(word) < SHORTEST and [one.id for one in found] != [word]:
        raise NotFound(f"{word!r} is too short for the beginning of an id; give at least {SHORTEST} characters")
    if not found:
        raise NotFound(f"there is no {noun} {word!r}; `{listing}` shows those there are")
    if len(found) > 1:
        shown = ", ".join(shortened([one.id for one in found])[:_NAMED])
        more = " and others" if len(found) > _NAMED else ""
        raise Conflict(f"several {noun}s begin with {word!r}: {shown}{more}; give more of the id")
    return found[0]


def shortened(ids: Sequence[str]) -> list[str]:
    """Return the beginnings of ids, long enough to tell these from each other."""
    for length in range(_SHOWN, max(map(len, ids), default=_SHOWN)):
        if len({name[:length] for name in ids}) == len(set(ids)):
            return [name[:length] for name in ids]
    return list(ids)
