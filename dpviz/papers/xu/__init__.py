"""Xu et al. 2019, redone: one file an experiment."""
