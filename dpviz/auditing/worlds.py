"""Both worlds: how often somebody is said to be in the table, when they are out and when in.

The attacker knows every other row and both candidates for the last one, holds either for equally
likely before the release, and guesses so that both errors are equal: a false alarm is as likely as
a miss. No guesser does better in both worlds at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent


@dataclass(frozen=True)
class Worlds:
    """How often a balanced guesser says "in".

    Attributes
    ----------
    out : float
        Share of releases without the person: false alarms, at least what is shown.
    within : float
        Share of releases with the person: at most what is shown; ``1 - out``.
    """

    out: float
    within: float


def both_worlds(spent: Spent | None) -> Worlds:
    """Return what a balanced guesser reaches against a release that costs ``spent``.

    A test with false alarms alpha and misses beta tells two laws apart by
    1 - alpha - beta <= TV, their total variation; with alpha = beta it errs at least
    (1 - TV)/2 of the time in either world. For Gaussian noise that is Phi(-mu/2), for a pure
    epsilon 1/(1 + e^epsilon). Of an (epsilon, delta) bound nothing else is known than
    TV <= 1 - 2 (1 - delta)/(1 + e^epsilon) (Kairouz, Oh & Viswanath 2015).

    Parameters
    ----------
    spent : Spent or None
        What is really spent, not what is claimed; None and an infinite epsilon promise nothing.

    Returns
    -------
    Worlds
        Reached by an attacker on the worst neighbours where ``spent`` is exact and names its total
        variation; otherwise no attacker gets beyond it.
    """
    if spent is None:
        return Worlds(0.0, 1.0)
    apart = 1.0
    if math.isfinite(spent.epsilon):
        shrunk = math.exp(-spent.epsilon)
        apart = 1 - 2 * (1 - spent.delta) * shrunk / (1 + shrunk)
    if spent.total_variation is not None:
        apart = min(apart, spent.total_variation)
    out = min(0.5, max(0.0, (1 - apart) / 2))
    return Worlds(out, 1 - out)
