"""Bounds, growth and predictions: what can be said without a draw."""
