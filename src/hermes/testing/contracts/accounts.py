"""What accounts and keys promise, whatever is under them."""

from datetime import timedelta

from hermes.accounts.keys import Accounts
from hermes.domain.errors import Conflict, Denied, Misconfigured, NotFound
from hermes.domain.principal import Principal, Tenant
from hermes.domain.protocols import Tx
from hermes.jobs.queue import Order, Queue
from hermes.testing.contracts.asserting import raises
from hermes.testing.world import World, tenants

OWNER = Principal.owner()


class AccountsContract:
    """The owner and the keys."""

    async def test_a_tenant_has_one_owner_however_often_one_asks(self, world: World) -> None:
        """Made the first time."""
        accounts = Accounts(world.store, world.clock)
        first = await accounts.owner()
        world.clock.advance(60)
        assert await accounts.owner() == first
        assert first.principal() == OWNER

    async def test_a_key_opens_what_its_scopes_say(self, world: World) -> None:
        """And acts in the tenant of its maker."""
        accounts = Accounts(world.store, world.clock)
        issued = await accounts.issue(OWNER, "ci", scopes=("jobs:read",))
        principal = await accounts.verify(issued.secret)
        assert (principal.kind, principal.tenant) == ("key", OWNER.tenant)
        assert principal.may("jobs:read")
        assert not principal.may("jobs:write")

    async def test_a_key_cannot_be_read_back_from_anywhere(self, world: World) -> None:
        """Neither from the database nor from how it is shown."""
        accounts = Accounts(world.store, world.clock)
        issued = await accounts.issue(OWNER, "ci")
        rows = await world.store.read(_everything)
        assert issued.secret not in repr(rows) + repr(issued) + repr(await accounts.find(OWNER))
        assert len(issued.secret) >= 43

    async def test_wrong_expired_and_revoked_keys_are_refused_with_the_same_words(self, world: World) -> None:
        """Nobody learns from a refusal what was wrong."""
        accounts = Accounts(world.store, world.clock)
        brief = await accounts.issue(OWNER, "brief", expires_at=world.clock.now() + timedelta(hours=1))
        gone = await accounts.issue(OWNER, "gone")
        await accounts.verify(brief.secret)
        await accounts.verify(gone.secret)
        await accounts.revoke(OWNER, "gone")
        world.clock.advance(hours=2)
        said = {str(await raises(Denied, accounts.verify(s))) for s in (brief.secret, gone.secret, "x", "", "hermes_")}
        assert len(said) == 1

    async def test_nobody_makes_a_key_that_may_more_than_its_maker(self, world: World) -> None:
        """Rights only shrink."""
        accounts = Accounts(world.store, world.clock)
        issued = await accounts.issue(OWNER, "reader", scopes=("jobs:read",))
        reader = await accounts.verify(issued.secret)
        await raises(Denied, accounts.issue(reader, "more", scopes=("jobs:write",)))
        await raises(Denied, accounts.issue(reader, "all"))
        await raises(Denied, accounts.revoke(reader, "reader"))
        await raises(Denied, Queue(world.store, world.clock).put(reader, Order("test")))

    async def test_a_scope_is_one_word(self, world: World) -> None:
        """With a space in it, it would be two when it is read back."""
        accounts = Accounts(world.store, world.clock)
        narrow = Principal("user", "u", OWNER.tenant, frozenset({"jobs:*"}))
        for scope in ("jobs:x *", "", " ", "jobs:", "jobs", "*:*", "jobs:x\n*"):
            await raises(Misconfigured, accounts.issue(narrow, "k", scopes=(scope,)))

    async def test_a_key_of_another_tenant_can_be_neither_seen_nor_revoked(self, world: World) -> None:
        """And a key never acts elsewhere."""
        accounts = Accounts(world.store, world.clock)
        mine, yours = tenants("mine", "yours")
        issued = await accounts.issue(mine, "k")
        assert await accounts.find(yours) == []
        await raises(NotFound, accounts.revoke(yours, issued.key.id))
        assert (await accounts.verify(issued.secret)).tenant == Tenant("mine")

    async def test_a_key_is_revoked_by_name_id_beginning_or_the_key_itself(self, world: World) -> None:
        """And never by what means two of them."""
        accounts = Accounts(world.store, world.clock)
        for number in range(5):
            world.clock.advance(100_000)
            issued = await accounts.issue(OWNER, f"key {number}")
            word = [f"key {number}", issued.key.id, issued.key.id[:13], issued.key.prefix, issued.secret][number]
            assert (await accounts.revoke(OWNER, word)).id == issued.key.id
            await raises(Denied, accounts.verify(issued.secret))
        for _ in range(2):
            await accounts.issue(OWNER, "twin")
        await raises(Conflict, accounts.revoke(OWNER, "twin"))
        for word in ("none", "herme", "hermes_", ""):
            await raises((NotFound, Conflict), accounts.revoke(OWNER, word))

    async def test_a_key_without_a_name_or_with_a_past_end_is_refused(self, world: World) -> None:
        """With a word on what to do."""
        accounts = Accounts(world.store, world.clock)
        await raises(Misconfigured, accounts.issue(OWNER, "  "))
        await raises(Misconfigured, accounts.issue(OWNER, "k", expires_at=world.clock.now()))

    async def test_the_use_of_a_key_is_noted(self, world: World) -> None:
        """At most once a minute."""
        accounts = Accounts(world.store, world.clock)
        issued = await accounts.issue(OWNER, "k")
        world.clock.advance(60)
        await accounts.verify(issued.secret)
        first = world.clock.now()
        world.clock.advance(10)
        await accounts.verify(issued.secret)
        (key,) = await accounts.find(OWNER)
        assert key.used_at == first


def _everything(tx: Tx) -> list[tuple[object, ...]]:
    return [*tx.all("SELECT * FROM api_keys"), *tx.all("SELECT * FROM users"), *tx.all("SELECT * FROM events")]
