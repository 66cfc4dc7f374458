"""Hermes carries messages between people, agents and services, and loses none."""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """Give `AIAgent` to those who ask for it; nothing is loaded before."""
    if name == "AIAgent":
        from hermes.app.aiagent import AIAgent

        return AIAgent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
