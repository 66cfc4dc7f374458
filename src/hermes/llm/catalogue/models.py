"""Windows and prices of models, from the bundled table, whose source and date it names."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

TABLE = Path(__file__).with_name("models.json")


class Facts(msgspec.Struct, frozen=True):
    """One model. Prices are dollars per million tokens, which is millionths of a dollar per token:
    input, output, read from the cache, written to it. `above` gives other prices for longer requests.
    """

    window: int | None = None
    price: tuple[float, float, float | None, float | None] | None = None
    above: tuple[tuple[int, float, float, float | None, float | None], ...] = ()


class Table(msgspec.Struct, frozen=True):
    """The whole table."""

    source: str
    date: str
    vendors: Mapping[str, Mapping[str, Facts]]


@cache
def table() -> Table:
    """Read the bundled table, once."""
    return msgspec.json.decode(TABLE.read_bytes(), type=Table)


def facts(vendor: str, model: str) -> Facts | None:
    """Return what is known of a model, None when nothing is.

    A dated name (`gpt-5-2025-08-07`) is its model; a name with a maker before it is also looked up without.
    """
    vendors = table().vendors
    bare = model.rpartition("/")[2]
    for table_name, name in ((vendor, model), ("openrouter", model), (_maker(model), bare)):
        if (found := _nearest(vendors.get(table_name, {}), name)) is not None:
            return found
    return None


def _maker(model: str) -> str:
    return model.rpartition("/")[0].rpartition("/")[2]


def _nearest(known: Mapping[str, Facts], name: str) -> Facts | None:
    if name in known:
        return known[name]
    stem = name.partition(":")[0].partition("@")[0]
    while stem not in known:
        stem, dash, rest = stem.rpartition("-")
        if not dash or not (rest.isdigit() or rest == "latest"):
            return None
    return known[stem]
