"""Sentences, made from results: one file a page."""
