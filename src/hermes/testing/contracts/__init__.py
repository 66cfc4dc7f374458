"""What every implementation must do, as suites: subclass one, give it a `world`, and run it with pytest."""
