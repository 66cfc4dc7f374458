"""Layer 7: models: what vendors speak, encoded once and read as it streams, with one kind of error for each remedy."""
