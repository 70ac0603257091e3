"""Browser tests and their helpers."""
