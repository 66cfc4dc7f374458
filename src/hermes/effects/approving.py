"""Asks a person about one effect, and remembers a yes that was meant for more than once.

Invariant: no yes without a person. Nobody there, no answer in time, an approver that fails, a question that had its
answer already: no. A yes belongs to the effect that was shown.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

import anyio

from hermes.domain.approval import Approval, Approver, Decision, Scope, State
from hermes.domain.clock import Clock
from hermes.domain.effect import Effect, fingerprint
from hermes.domain.errors import HermesError
from hermes.domain.principal import Principal
from hermes.domain.protocols import Store
from hermes.domain.records import dataclass
from hermes.domain.session import SessionId
from hermes.domain.tool import ToolContext
from hermes.effects.policy import Verdict
from hermes.effects.shown import draw
from hermes.store import approval as approvals

PATIENCE = timedelta(minutes=5)
_MOST_REMEMBERED = 10_000
_log = logging.getLogger("hermes.effects")


class Memory(Protocol):
    """Where questions and answers are kept. The first answer to a question counts; `decide` is False for another."""

    async def request(self, principal: Principal, asked: Approval) -> None:
        """Keep a question."""
        ...

    async def decide(self, principal: Principal, asked: str, state: State, scope: Scope) -> bool:
        """Keep an answer."""
        ...

    async def is_granted(self, principal: Principal, pattern: str, session: SessionId) -> bool:
        """Whether a person has said yes to the pattern for this session or for always."""
        ...


class StoredMemory:
    """Implements `Memory` in the database."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def request(self, principal: Principal, asked: Approval) -> None:
        """Keep a question."""
        await self._store.write(lambda tx: approvals.request(tx, principal, asked))

    async def decide(self, principal: Principal, asked: str, state: State, scope: Scope) -> bool:
        """Keep an answer."""
        return await self._store.write(lambda tx: approvals.decide(tx, principal, asked, state, scope))

    async def is_granted(self, principal: Principal, pattern: str, session: SessionId) -> bool:
        """Whether a person has said yes to the pattern."""
        return await self._store.read(lambda tx: approvals.is_granted(tx, principal, pattern, session))


class OwnMemory:
    """Implements `Memory` in this process, for what has no session in a database. It knows one person."""

    def __init__(self) -> None:
        self._asked: dict[str, Approval] = {}

    async def request(self, _principal: Principal, asked: Approval) -> None:
        """Keep a question."""
        self._asked.setdefault(asked.id, asked)
        while len(self._asked) > _MOST_REMEMBERED:
            del self._asked[next(iter(self._asked))]

    async def decide(self, _principal: Principal, asked: str, state: State, scope: Scope) -> bool:
        """Keep an answer."""
        found = self._asked.get(asked)
        if found is None or found.state != "requested":
            return False
        self._asked[asked] = replace(found, state=state, scope=scope)
        return True

    async def is_granted(self, _principal: Principal, pattern: str, session: SessionId) -> bool:
        """Whether a person has said yes to the pattern."""
        return any(
            one.pattern == pattern
            and one.state == "given"
            and (one.scope == "always" or (one.scope == "session" and one.session == session))
            for one in self._asked.values()
        )


@dataclass(frozen=True, slots=True)
class Asked:
    """Told to whoever listens: a question was put, or had its answer."""

    approval: Approval


Tell = Callable[[Asked], None]


class Gate:
    """Asks one question at a time: the person of the run, else `approver`, who is None when nobody can be asked."""

    def __init__(
        self, memory: Memory, approver: Approver | None, clock: Clock, *, patience: timedelta = PATIENCE
    ) -> None:
        self._memory = memory
        self._approver = approver
        self._clock = clock
        self._patience = patience.total_seconds()
        self._one_at_a_time = anyio.Lock()

    @property
    def is_attended(self) -> bool:
        """Whether somebody can be asked."""
        return self._approver is not None

    async def is_granted(self, context: ToolContext, pattern: str) -> bool:
        """Whether a wider yes covers the pattern. A memory that does not answer knows of none."""
        if not pattern:
            return False
        try:
            return await self._memory.is_granted(context.principal, pattern, context.session)
        except HermesError:
            _log.exception("what was granted cannot be read; taken for nothing")
            return False

    async def ask(self, context: ToolContext, effect: Effect, verdict: Verdict) -> Decision:
        """Ask about an effect and return the answer; it never raises but when it is cancelled."""
        approver = context.approver or self._approver
        if approver is None:
            return Decision("denied", reason="nobody is there to be asked")
        async with self._one_at_a_time:
            # Whoever was asked just before may have said yes to this one too.
            if await self.is_granted(context, verdict.pattern):
                return Decision("given", "session")
            try:
                return await self._ask(approver, context, self._question(context, effect, verdict))
            except Exception:  # noqa: BLE001 - an approver is somebody else's; what fails is no yes
                _log.exception("an approval failed; taken for a no")
                return Decision("denied", reason="the question could not be asked")

    def _question(self, context: ToolContext, effect: Effect, verdict: Verdict) -> Approval:
        return Approval(
            id=self._clock.new_id(),
            session=context.session,
            run=context.run,
            effect=fingerprint(effect),
            pattern=verdict.pattern,
            shown=draw(effect),
            rule=verdict.rule,
            created_at=self._clock.now(),
        )

    async def _ask(self, approver: Approver, context: ToolContext, asked: Approval) -> Decision:
        await self._memory.request(context.principal, asked)
        began = self._clock.monotonic()
        decision = Decision("expired", reason="nobody answered in time")
        try:
            with anyio.move_on_after(self._patience):
                decision = await approver.decide(asked)
            if self._clock.monotonic() - began > self._patience:
                decision = Decision("expired", reason="the answer came too late")
            decision = _bounded(decision, asked)
        except BaseException:
            with anyio.move_on_after(5, shield=True):
                await self._memory.decide(context.principal, asked.id, "denied", "once")
            raise
        is_first = await self._memory.decide(context.principal, asked.id, decision.state, decision.scope)
        return decision if is_first else Decision("denied", reason="the question had its answer already")


def _bounded(decision: Decision, asked: Approval) -> Decision:
    """An answer that is none is a no; a yes can be no wider than its pattern."""
    if decision.state not in ("given", "denied", "expired") or decision.scope not in ("once", "session", "always"):
        return Decision("denied", reason="the answer was not understood")
    return decision if asked.pattern or decision.scope == "once" else replace(decision, scope="once")
