"""Layer 7: where commands run: a sandboxed shell, its background processes, and the files beside it."""
