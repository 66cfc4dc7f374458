"""An API key as it is remembered: its beginning to recognise it, a hash to check it, never the key itself."""

from datetime import datetime
from typing import NewType

from hermes.domain.principal import Tenant
from hermes.domain.records import dataclass

KeyId = NewType("KeyId", str)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key that a program shows to act for `user`. `digest` is the SHA-256 of the whole secret."""

    id: KeyId
    tenant: Tenant
    user: str
    name: str
    prefix: str
    digest: str
    scopes: frozenset[str]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None
