"""Pictures: charts of the rows in a released subspace that may be published, from noisy counts."""
