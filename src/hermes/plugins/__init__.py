"""Layer 3: discovery: names to lazily imported factories."""

from hermes.plugins.registry import Registry

__all__ = ["Registry"]
