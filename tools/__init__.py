"""Scripts that generate parts of the documentation."""
