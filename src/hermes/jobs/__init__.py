"""Layer 5: intentions: the one queue, its worker, and the schedules that put jobs into it."""
