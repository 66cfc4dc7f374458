"""Layer 5: facts: publish them, follow them live, or subscribe durably with a cursor that moves with the work."""
