"""API keys: made once, shown once, remembered as a digest.

A key is 256 random bits, so a plain SHA-256 protects it; looking it up by digest takes the same time for any guess.
"""

import contextlib
import hashlib
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta

from hermes.domain.clock import Clock, to_micros
from hermes.domain.errors import Denied, LimitReached, Misconfigured, Unavailable
from hermes.domain.key import ApiKey, KeyId
from hermes.domain.principal import LOCAL, Principal, Tenant
from hermes.domain.protocols import Store
from hermes.domain.records import dataclass
from hermes.domain.user import User
from hermes.store import key as keys
from hermes.store import user as users

MARK = "hermes_"
"""How every key begins, so that people and scanners know one when they see it."""

_SCOPE = re.compile(r"\*|[a-z][a-z0-9_.-]*:(\*|[a-z][a-z0-9_.-]*)")
_SECRET_BYTES = 32
_SHOWN = len(MARK) + 8
_NOTE_USE_EVERY = timedelta(minutes=1)
_SYSTEM = Principal.system("check keys")


@dataclass(frozen=True, slots=True)
class Issued:
    """A new key. `secret` is shown now and never again."""

    key: ApiKey
    secret: str

    def __repr__(self) -> str:
        return f"Issued(key={self.key.prefix!r}, secret=…)"


class Accounts:
    """Who is who."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def owner(self, tenant: Tenant = LOCAL) -> User:
        """Return the tenant's owner, who is made the first time."""
        return await self._store.write(lambda tx: users.ensure_owner(tx, _SYSTEM, tenant))

    async def issue(
        self, principal: Principal, name: str, *, scopes: Iterable[str] = ("*",), expires_at: datetime | None = None
    ) -> Issued:
        """Make a key that acts for a person. Raises Denied for scopes that person does not hold, and to keys."""
        if principal.kind != "user":
            raise Denied(f"{principal.name!r} may not make keys; a person does, with `hermes keys create NAME`")
        if not name.strip():
            raise Misconfigured("a key needs a name, so that it can be told from others later")
        wanted = frozenset(scopes)
        for scope in sorted(wanted):
            if not _SCOPE.fullmatch(scope):
                raise Misconfigured(f"{scope!r} is no scope; write one such as 'jobs:read', 'jobs:*' or '*'")
            principal.require(scope)
        now = self._clock.now()
        if expires_at is not None and expires_at <= now:
            raise Misconfigured(f"a key cannot expire in the past ({expires_at.isoformat()}); give a time to come")
        secret = MARK + secrets.token_urlsafe(_SECRET_BYTES)
        key = ApiKey(
            id=KeyId(self._clock.new_id()),
            tenant=principal.tenant,
            user=principal.id,
            name=name.strip(),
            prefix=secret[:_SHOWN],
            digest=_digest(secret),
            scopes=wanted,
            created_at=now,
            expires_at=expires_at,
        )
        return Issued(await self._store.write(lambda tx: keys.put(tx, principal, key)), secret)

    async def verify(self, secret: str) -> Principal:
        """Return who shows this key. Raises Denied, with the same words whatever is wrong with it."""
        digest = _digest(secret)
        key = await self._store.read(lambda tx: keys.by_digest(tx, _SYSTEM, digest))
        now = self._clock.now()
        if key is None or key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now):
            raise Denied("this key is not valid; `hermes keys create NAME` makes one")
        if key.used_at is None or now - key.used_at >= _NOTE_USE_EVERY:
            # A full disk must not lock everybody out.
            with contextlib.suppress(Unavailable, LimitReached):
                await self._store.write(lambda tx: keys.note_use(tx, _SYSTEM, key, to_micros(now)))
        return Principal(kind="key", id=key.id, tenant=key.tenant, scopes=key.scopes)

    async def find(self, principal: Principal) -> list[ApiKey]:
        """Return every key of the principal's tenant, also those that no longer open anything."""
        return await self._store.read(lambda tx: keys.find(tx, principal))

    async def revoke(self, principal: Principal, word: str) -> ApiKey:
        """End a key at once. Raises NotFound, and Denied without the scope `keys:write`."""
        principal.require("keys:write")
        return await self._store.write(lambda tx: keys.revoke(tx, principal, word, _digest(word)))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
