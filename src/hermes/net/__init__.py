"""Layer 6: the only way out: dialling, HTTP/1.1 and server-sent events, with a deadline on every wait."""
