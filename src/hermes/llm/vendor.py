"""What Hermes knows of a vendor: a row, not code."""

from dataclasses import field
from typing import Literal

from hermes.domain.records import dataclass

Wire = Literal["chat", "anthropic", "local"]


@dataclass(frozen=True, slots=True)
class Quirks:
    """In what a vendor differs from its wire.

    `limit` is the field that bounds the answer. `returns` is the field in which it wants its thoughts back. `effort` is
    how it is told how long to think. `schema` is what it can hold an answer to. `caches` says that the prompt cache is
    asked for at the top of the request. `reads_tags` is for models that write thoughts and calls into their text.
    """

    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    has_usage: bool = True
    returns: Literal["", "reasoning_content", "reasoning_details"] = ""
    effort: Literal["reasoning_effort", "reasoning", "none"] = "reasoning_effort"
    schema: Literal["json_schema", "json_object"] = "json_schema"
    caches: bool = False
    reads_tags: bool = False


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor. `key` and `url` name the settings that hold its key and another base URL."""

    name: str
    wire: Wire
    base_url: str
    summary: str
    key: str = ""
    url: str = ""
    model: str = ""
    """The model that is used when none is named."""
    needs_key: bool = True
    is_local: bool = False
    is_small: bool = False
    """Its model can do little and reads slowly: it is given a compact prompt and a few tools."""
    quirks: Quirks = field(default_factory=Quirks)
