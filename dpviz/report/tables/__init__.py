"""Tidy tables, computed from results, for figures and downloads."""
