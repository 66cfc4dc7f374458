"""What a model is sent only grows: over runs, steps back, branches, words said into a run, restarts and crashes."""

import random
from dataclasses import dataclass, field

import pytest
from tests.unit.agent.conftest import OWNER, Desk, MakeDesk, Said

from hermes.agent.compaction import Terms
from hermes.agent.steering import Steering
from hermes.domain.errors import Misconfigured
from hermes.domain.session import Session
from hermes.store import session as sessions

pytestmark = pytest.mark.anyio
WAYS = ("say", "say", "say", "tools", "tools", "steer", "note", "undo", "branch", "switch", "restart")


@dataclass
class Walk:
    """A random walk through sessions, which remembers what each one was sent last."""

    desk: Desk
    chance: random.Random
    known: list[Session] = field(default_factory=list)
    last: dict[str, bytes] = field(default_factory=dict)
    gone_back: set[str] = field(default_factory=set)
    checked: int = 0
    contexts: int = 0

    async def step(self) -> None:
        match self.chance.choice(WAYS):
            case "say":
                await self.run("answer")
            case "tools":
                orders: list[Said] = [self._orders() for _ in range(self.chance.randint(1, 3))]
                await self.run(*orders, "answer")
            case "steer":
                steering = Steering()
                steering.steer(f"rather {self.chance.random()}")
                await self.run(self._orders(), "answer", steering=steering)
            case "note":
                # What is loaded later, such as a skill, comes as a message and never into the prefix.
                await self.run("answer", text=f"[skill loaded]\n{'how to ' * self.chance.randint(1, 50)}")
            case "undo":
                await self._undo()
            case "branch":
                if self.desk.session.id in self.last:
                    made = await self.desk.sessions.branch(OWNER, self.desk.session.id)
                    # A branch begins with what its origin has.
                    self.last[made.id] = self.last[self.desk.session.id]
                    self.gone_back |= {made.id} & ({made.id} if self.desk.session.id in self.gone_back else set())
                    self.known.append(made)
            case "switch":
                self.desk.session = self.chance.choice(self.known)
            case _:
                self.desk.agent = self.desk.make()

    def _orders(self) -> Said:
        names = ["look" if self.chance.random() < 0.5 else "do" for _ in range(self.chance.randint(1, 3))]
        return [(name, {"what": str(self.chance.random())}) for name in names]

    async def _undo(self) -> None:
        try:
            await self.desk.sessions.undo(OWNER, self.desk.session.id, self.chance.randint(1, 2))
        except Misconfigured:
            return
        self.gone_back.add(self.desk.session.id)

    async def run(self, *says: Said, text: str = "", steering: Steering | None = None) -> None:
        desk, session = self.desk, self.desk.session.id
        before = len(desk.script.sent)
        desk.script.says.clear()
        ended = await desk.say(text or f"words {self.chance.random()}", *says, steering=steering or Steering())
        assert ended.error is None
        for number, sent in enumerate(desk.script.sent[before:]):
            earlier = self.last.get(session)
            if earlier is not None and not (number == 0 and session in self.gone_back):
                assert sent.startswith(earlier), (session, number)
                self.checked += 1
            self.last[session] = sent
        self.gone_back.discard(session)


async def walked(make_desk: MakeDesk, seed: int, runs: int) -> Walk:
    async with make_desk(compaction=Terms(is_on=False)) as desk:
        walk = Walk(desk, random.Random(seed))
        walk.known.append(desk.session)
        await walk.run("first")
        while len(desk.script.sent) < runs:
            await walk.step()
        await check_stored(walk)
        return walk


async def check_stored(walk: Walk) -> None:
    """What is stored gives the same bytes again, and no context's prefix ever changed."""
    desk = walk.desk
    for session in walk.known:
        found = await desk.world.store.read(lambda tx, name=session.id: sessions.contexts(tx, OWNER, name))  # type: ignore[misc]
        assert [one.number for one in found] == [1]
        path = await desk.path(session)
        again = b"\n".join([found[0].prefix, *map(desk.script.encode, path)])
        if session.id not in walk.gone_back:
            assert again.startswith(walk.last.get(session.id, b""))


@pytest.mark.parametrize("seed", range(4))
async def test_a_prefix_only_grows(make_desk: MakeDesk, seed: int) -> None:
    walk = await walked(make_desk, seed, 60)
    assert walk.checked > 30


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_prefix_only_grows_over_hundreds_of_runs(make_desk: MakeDesk) -> None:
    walk = await walked(make_desk, 99, 1500)
    print(f"{len(walk.desk.script.sent)} requests in {len(walk.known)} sessions, {walk.checked} compared")
    assert walk.checked > 500
