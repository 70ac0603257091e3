"""Chaudhuri, Sarwate and Sinha 2012, redone: one file an experiment."""
