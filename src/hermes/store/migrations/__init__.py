"""Steps from one schema to the next, forward only. Imported only when the stored schema number differs from ours."""
