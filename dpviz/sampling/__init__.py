"""Random matrices and directions in batches: symmetric noise, Wishart, Bingham."""
