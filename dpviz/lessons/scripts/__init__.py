"""One lesson a file, found by being here."""
