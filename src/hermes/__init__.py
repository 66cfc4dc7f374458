"""Hermes carries messages between people, agents and services, and loses none."""

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    # `typing` alone costs half of what `hermes --version` does.
    from typing import Any


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - a class
    """Give `AIAgent` to those who ask for it; nothing is loaded before."""
    if name == "AIAgent":
        from importlib import import_module

        return import_module("hermes.app.aiagent").AIAgent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
