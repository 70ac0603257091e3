"""Stored answers: each question's answer and each page's first view, as text files.

Refactoring must leave these files unchanged, byte for byte. A change in what users get shows as a
difference for a person to read. ``python -m tests.answers --update`` rewrites the files.
"""
