"""Planted faults: one small mistake of each important kind, and the tests that must find it.

``python -m tests.faults`` plants each fault in turn in a copy of the project. It prints which test
found the fault and after how long. Drop a test only if all faults are still found without it.
"""
