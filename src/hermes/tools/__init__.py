"""Layer 8: what an agent can do: built-in toolsets for commands, files, its own list of work, and questions.

Nothing here acts by itself: each tool says what it would touch, and the choke point decides.
"""

from hermes.tools.catalogue import BuiltIn, built_in

__all__ = ["BuiltIn", "built_in"]
