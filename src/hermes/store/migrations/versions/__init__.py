"""One file per step; its number is the schema it leads to."""
