"""Who acts. A Principal is an argument all the way down to SQL, never taken from the surroundings or from text."""

from typing import Literal, NewType

from hermes.domain.errors import Denied
from hermes.domain.records import dataclass

Tenant = NewType("Tenant", str)

LOCAL = Tenant("local")
"""The tenant of a personal installation."""

Kind = Literal["system", "user", "key"]


@dataclass(frozen=True, slots=True)
class Principal:
    """One actor with its rights.

    `system` is Hermes itself: it crosses tenants and always says why. `user` is a person; `key` is a program that holds
    an API key and acts for a user within the key's scopes.
    """

    kind: Kind
    id: str
    tenant: Tenant
    scopes: frozenset[str] = frozenset()
    reason: str = ""

    @classmethod
    def system(cls, reason: str, *, tenant: Tenant = LOCAL) -> "Principal":
        """Hermes itself; `reason` is what it will be asked about in the audit, `tenant` whom it acts for."""
        return cls(kind="system", id="hermes", tenant=tenant, reason=reason)

    @classmethod
    def owner(cls, tenant: Tenant = LOCAL) -> "Principal":
        """The person whose installation this is."""
        return cls(kind="user", id="owner", tenant=tenant, scopes=frozenset({"*"}))

    @property
    def is_system(self) -> bool:
        """Whether this is Hermes itself, which may cross tenants."""
        return self.kind == "system"

    @property
    def name(self) -> str:
        """How a log line or an event names this actor."""
        return f"{self.kind}:{self.id}"

    def may(self, scope: str) -> bool:
        """Whether a scope such as `jobs:write` is held, directly, by `jobs:*` or by `*`."""
        area = scope.partition(":")[0]
        return self.is_system or not self.scopes.isdisjoint({scope, f"{area}:*", "*"})

    def require(self, scope: str) -> None:
        """Raise Denied unless the scope is held."""
        if not self.may(scope):
            raise Denied(f"{self.name!r} lacks the scope {scope!r}; use a key that has it")
