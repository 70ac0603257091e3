"""Sentences computed from results, in one file for each page."""
