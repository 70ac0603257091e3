"""Experiments of Xu et al. 2019: one file for each experiment."""
