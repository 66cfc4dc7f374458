"""Layer 4: one database, SQLite or PostgreSQL by URL; nothing is acknowledged before it is on disk."""
