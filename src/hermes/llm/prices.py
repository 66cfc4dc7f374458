"""What a call costs, in millionths of a dollar, by the bundled table.

Invariant: None means that nobody knows, never that it is free.
"""

from hermes.domain.model import Usage
from hermes.llm.catalogue.models import facts
from hermes.llm.catalogue.vendors import vendor


def cost(model: str, usage: Usage) -> int | None:
    """Return what a call of a model (`vendor/name`) costs; 0 for what runs on this machine, None when unknown."""
    name, _, rest = model.partition("/")
    row = vendor(name)
    if row is not None and row.is_local:
        return 0
    known = facts(row.name, rest) if row is not None else facts("openrouter", model)
    if known is None or known.price is None:
        return None
    price = known.price
    for tier in known.above:
        if usage.input > tier[0]:
            price = tier[1:]
    read = price[2] if price[2] is not None else price[0]
    write = price[3] if price[3] is not None else price[0]
    fresh = max(usage.input - usage.cache_read - usage.cache_write, 0)
    return round(fresh * price[0] + usage.output * price[1] + usage.cache_read * read + usage.cache_write * write)
