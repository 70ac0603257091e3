"""Privacy accounting: sensitivities, the exact Gaussian profile, and composition.

`sensitivity` computes how far one person can move a statistic. `gaussian` converts a
noise-to-signal ratio into (epsilon, delta) and back without approximation. `accounting` recomputes
the privacy loss of a mechanism from the parts it declares, by code that did not calibrate it.
"""
