"""A picture of the rows in a released subspace that may be published: counts, noise, points."""
