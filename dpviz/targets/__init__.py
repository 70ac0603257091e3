"""Inverse questions: the least epsilon, or the least n, for a target."""
