"""Layer 9: one turn of an assistant: what the model is sent, what it orders, and what is kept of both."""
