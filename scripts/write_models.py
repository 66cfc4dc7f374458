#!/usr/bin/env python3
"""Write src/hermes/llm/catalogue/models.json from an installed `genai-prices`: what models read, and what they cost.

python -m venv /tmp/prices && /tmp/prices/bin/pip install genai-prices
/tmp/prices/bin/python scripts/write_models.py 2026-11-10
"""

import json
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices.data import providers

PATH = Path(__file__).parents[1] / "src" / "hermes" / "llm" / "catalogue" / "models.json"
VENDORS = ("anthropic", "deepseek", "openai", "openrouter")
FIELDS = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")


def at(prices: object, start: int) -> list[float | None]:
    """Return dollars per million tokens: input, output, read from the cache, written to it."""
    row: list[float | None] = []
    for name in FIELDS:
        price: Any = getattr(prices, name, None)
        if hasattr(price, "base"):
            fitting = [tier.price for tier in price.tiers if tier.start <= start]
            price = fitting[-1] if fitting else price.base
        row.append(None if price is None else float(price))
    return row


def starts(prices: object) -> list[int]:
    return sorted({tier.start for name in FIELDS for tier in getattr(getattr(prices, name, None), "tiers", [])})


def main() -> None:
    day = datetime.fromisoformat(sys.argv[1]).replace(tzinfo=UTC)
    found: dict[str, dict[str, object]] = {}
    for provider in providers:
        if provider.id not in VENDORS:
            continue
        rows: dict[str, object] = {}
        for model in provider.models:
            prices = model.get_prices(day)
            plain = at(prices, 0)
            if plain[0] is None or plain[1] is None or ":batch" in model.id:
                continue
            row: dict[str, object] = {"window": model.context_window, "price": plain}
            if tiers := starts(prices):
                row["above"] = [[start, *at(prices, start)] for start in tiers]
            rows[model.id] = row
        found[provider.id] = dict(sorted(rows.items()))
    about = {
        "source": f"genai-prices {version('genai-prices')} (MIT)",
        "date": sys.argv[1],
        "unit": "dollars per million tokens",
    }
    lines = [json.dumps(about)[:-1] + ', "vendors": {']
    for number, (vendor, rows) in enumerate(found.items()):
        inside = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        lines.append(f"{json.dumps(vendor)}: {{\n{inside}\n}}{',' if number < len(found) - 1 else ''}")
    PATH.write_text("\n".join(lines) + "\n}}\n")


main()
