"""The suite of the approvals' memory, in the database and in the process."""

from pathlib import Path

import pytest

from hermes.domain.principal import LOCAL, Principal
from hermes.domain.protocols import Tx
from hermes.domain.session import Session, SessionId
from hermes.effects.approving import OwnMemory, StoredMemory
from hermes.store import session as sessions
from hermes.testing.contracts.approvals import MemoryContract, Remembering
from hermes.testing.world import World

OWNER = Principal.owner()
S, T = SessionId("s"), SessionId("t")


@pytest.mark.anyio
class TestOwnMemory(MemoryContract):
    @pytest.fixture
    def remembering(self) -> Remembering:
        return Remembering(OwnMemory(), OWNER, S, T)


@pytest.mark.anyio
class TestStoredMemory(MemoryContract):
    @pytest.fixture
    async def remembering(self, world: World) -> Remembering:
        now = world.clock.now()

        def work(tx: Tx) -> None:
            for name in (S, T):
                sessions.create(tx, OWNER, Session(name, LOCAL, "owner", "test", now, now, workspace=str(Path("/w"))))

        await world.store.write(work)
        return Remembering(StoredMemory(world.store), OWNER, S, T)
