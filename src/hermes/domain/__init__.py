"""Layer 1: nouns and protocols of the whole house; standard library only."""
