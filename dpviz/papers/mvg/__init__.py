"""Experiments of Chanyaswad, Dytso, Poor and Mittal 2018: one file for each experiment."""
