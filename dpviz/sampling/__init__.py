"""Random matrices and directions: symmetric noise, Wishart, Bingham; batched over draws."""
