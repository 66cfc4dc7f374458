"""Opens the model that was chosen, at a vendor or in a process of its own.

Invariant: what only the embedded model needs is loaded only for it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hermes.config.settings import Settings
from hermes.config.variables import process_environment
from hermes.domain.clock import Clock
from hermes.domain.model import Provider
from hermes.llm.choice import Choice
from hermes.llm.opening import open_provider


@asynccontextmanager
async def open_model(choice: Choice, settings: Settings, clock: Clock) -> AsyncIterator[Provider]:
    """Open a model; close it in the end."""
    if choice.wire != "local":
        async with open_provider(choice, settings, clock) as provider:
            yield provider
        return
    from hermes.llm.local.manners import Mannered
    from hermes.llm.local.opening import open_local_model

    async with open_local_model(choice, settings, clock, process_environment()) as model:
        yield Mannered(model, clock)
