"""Chanyaswad, Dytso, Poor and Mittal 2018, redone: one file an experiment."""
