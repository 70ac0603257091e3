"""Planted faults: small mistakes of each kind that matter, each with the tests that must see it.

``python -m tests.faults`` plants one after the other in a copy of the project and says which test
found it, after how long. A test is dropped only where these are still found without it.
"""
