"""Our figures, each beside its floor in the same interleaved run. `python -m bench [ROW…]`."""
