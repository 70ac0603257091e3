"""Experiments of Chaudhuri, Sarwate and Sinha 2012: one file for each experiment."""
