"""The embedded model: weights had once, a process of its own, one step at a time. Works without a key or a network."""
