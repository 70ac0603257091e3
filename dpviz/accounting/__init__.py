"""What privacy costs: sensitivities, the exact Gaussian profile, and accounting.

`sensitivity` says how far one person can move a statistic, `gaussian` turns a
noise-to-signal ratio into (epsilon, delta) and back without approximation, and
`accounting` recomputes what a mechanism really spends from what it says it
does, by code that did not calibrate it.
"""
