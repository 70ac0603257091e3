"""Browser tests and their harness."""
