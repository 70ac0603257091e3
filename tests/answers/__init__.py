"""Kept answers: what every question answers, and what every page shows first, as text files.

A restructure leaves these files as they are, to the byte; a change of what users get shows as a
difference that a person reads. ``python -m tests.answers --update`` writes them.
"""
