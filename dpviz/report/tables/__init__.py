"""Tidy tables, made from results, for figures and downloads."""
