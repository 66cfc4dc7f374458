"""The model that answers, as a run uses it: asked with retries, priced, and noted in the ledger."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from hermes.domain.ledger import Entry
from hermes.domain.model import Provider, Reply, Request, Show, Usage
from hermes.domain.records import dataclass
from hermes.domain.session import Run

Ask: TypeAlias = Callable[[Request, Show], Awaitable[Reply]]
"""Asks the model until it has answered or will not; raises what `Provider.call` raises."""

Price: TypeAlias = Callable[[str, Usage], int | None]
"""Says what a call of a model has cost, in millionths of a dollar; None when that is not known."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model: how it is asked, and what it costs."""

    provider: Provider
    ask: Ask
    price: Price

    def entry(self, run: Run, name: str, used: Usage, purpose: str = "turn") -> Entry:
        """Return the ledger's line for one call."""
        return Entry(
            id=name,
            tenant=run.principal.tenant,
            actor=run.principal.name,
            purpose=purpose,
            model=self.provider.name,
            usage=used,
            cost=self.price(self.provider.name, used),
            session=run.session,
            run=run.id,
        )
