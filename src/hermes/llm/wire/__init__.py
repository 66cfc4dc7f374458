"""One wire format each: how a request is written and how its answer is read."""
