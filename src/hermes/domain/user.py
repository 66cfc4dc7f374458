"""A person with an account. The owner of a personal installation is one of them."""

from datetime import datetime
from typing import Literal

from hermes.domain.principal import Principal, Tenant
from hermes.domain.records import dataclass

Role = Literal["owner", "admin", "user"]


@dataclass(frozen=True, slots=True)
class User:
    """One account. `owner` and `admin` may do everything within their tenant."""

    id: str
    tenant: Tenant
    name: str
    role: Role
    created_at: datetime

    def principal(self) -> Principal:
        """Return this person as the one who acts."""
        scopes = frozenset({"*"}) if self.role in {"owner", "admin"} else frozenset[str]()
        return Principal(kind="user", id=self.id, tenant=self.tenant, scopes=scopes)
