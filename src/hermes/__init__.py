"""Hermes carries messages between people, agents and services, and loses none."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class
    """Give `AIAgent` to those who ask for it; nothing is loaded before."""
    if name == "AIAgent":
        return import_module("hermes.app.aiagent").AIAgent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
