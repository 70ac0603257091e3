"""Experiments of Jiang, Xie and Zhang 2016: one file for each experiment."""
