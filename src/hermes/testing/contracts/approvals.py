"""What the memory of approvals promises, wherever it is."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from hermes.domain.approval import Approval
from hermes.domain.principal import Principal
from hermes.domain.session import RunId, SessionId
from hermes.effects.approving import Memory

_NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Remembering:
    """A memory, somebody whose questions it keeps, and two sessions of theirs."""

    memory: Memory
    principal: Principal
    session: SessionId
    other: SessionId

    async def ask(self, name: str, pattern: str = "p") -> Approval:
        """Keep a question."""
        asked = Approval(name, self.session, RunId("r"), "effect", pattern, "shown", "rule", _NOON)
        await self.memory.request(self.principal, asked)
        return asked

    async def is_granted(self, pattern: str = "p", session: SessionId | None = None) -> bool:
        """Whether the pattern is covered."""
        return await self.memory.is_granted(self.principal, pattern, session or self.session)


class MemoryContract:
    """`remembering` is a fixture."""

    async def test_nothing_is_granted_that_nobody_has_answered(self, remembering: Remembering) -> None:
        """A question is no answer."""
        assert not await remembering.is_granted()
        await remembering.ask("1")
        assert not await remembering.is_granted()

    async def test_only_the_first_answer_counts(self, remembering: Remembering) -> None:
        """A no cannot be made a yes, nor a yes a wider one."""
        memory, who = remembering.memory, remembering.principal
        await remembering.ask("1")
        assert await memory.decide(who, "1", "denied", "once")
        assert not await memory.decide(who, "1", "given", "always")
        assert not await remembering.is_granted()

    async def test_a_question_that_was_never_put_has_no_answer(self, remembering: Remembering) -> None:
        """Whoever answers is told."""
        assert not await remembering.memory.decide(remembering.principal, "none", "given", "always")

    async def test_asking_again_with_the_same_id_is_nothing(self, remembering: Remembering) -> None:
        """Also after the answer."""
        asked = await remembering.ask("1")
        assert await remembering.memory.decide(remembering.principal, "1", "denied", "once")
        await remembering.memory.request(remembering.principal, replace(asked, state="requested"))
        assert not await remembering.memory.decide(remembering.principal, "1", "given", "always")

    async def test_a_yes_reaches_as_far_as_it_was_meant(self, remembering: Remembering) -> None:
        """Once, for the session, for always; for the pattern and no other."""
        memory, who = remembering.memory, remembering.principal
        for name, scope in (("1", "once"), ("2", "session"), ("3", "always")):
            await remembering.ask(name, scope)
            assert await memory.decide(who, name, "given", scope)  # type: ignore[arg-type] # each is a scope
        assert not await remembering.is_granted("once")
        assert await remembering.is_granted("session")
        assert not await remembering.is_granted("session", remembering.other)
        assert await remembering.is_granted("always", remembering.other)
        assert not await remembering.is_granted("alway")
