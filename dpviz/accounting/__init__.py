"""Privacy accounts: sensitivities, the exact Gaussian profile, and composition.

`sensitivity` says how far one person can move a statistic, `gaussian` turns a
noise-to-signal ratio into (epsilon, delta) and back without approximation, and
`accounting` recomputes what a mechanism really spends from what it says it
does, by code that did not calibrate it.
"""
