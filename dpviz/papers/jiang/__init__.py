"""Jiang, Xie and Zhang 2016, redone: one file an experiment."""
