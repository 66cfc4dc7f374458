"""Layer 5: identities and rights: the owner, and the keys that programs show."""
