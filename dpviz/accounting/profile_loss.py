"""A dominating loss from a privacy profile alone, for composition with others.

The points of the profile are connected (`dpviz.accounting.dots`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpviz.accounting.dots import connected
from dpviz.accounting.profiles import RowProfile
from dpviz.core.arrays import FloatArray
from dpviz.core.problem import (
    Relation,
)

_NODES = {Relation.ZERO_OUT: 1_024, Relation.REPLACE: 96}
_CROWDED = 1.5  # power by which they crowd towards 0
_NOTHING = 1e-14  # of delta: what lies beyond counts as told
_MOST_QUARTERS = 80  # of an octave, on either side of 1


@dataclass(frozen=True)
class ProfileLoss:
    """The loss of a release of which the profile of one row is known.

    Attributes
    ----------
    profile : RowProfile
    relation : Relation
    """

    profile: RowProfile
    relation: Relation

    @property
    def reach(self) -> float:
        """Where the profile has fallen to next to nothing, or falls no further."""
        return _reach(self.profile, self.relation)

    def delta(self, epsilon: float) -> float:
        """Return the delta given at epsilon, rounded up."""
        return self.profile.delta(self.relation, epsilon)

    def epsilon(self, delta: float) -> float:
        """Return the epsilon spent at delta, rounded up; may be infinite."""
        return self.profile.epsilon(self.relation, delta)

    def repeated(self, releases: int) -> ProfileLoss | None:
        """Return the loss of that many releases, where their profile is known."""
        if releases == 1:
            return self
        longer = self.profile.repeated(releases)
        return None if longer is None else ProfileLoss(longer, self.relation)

    def on_grid(self, step: float) -> tuple[FloatArray, float]:
        """Return the masses of the loss on [-m, m] steps, and the probability that all is told.

        Parameters
        ----------
        step : float

        Returns
        -------
        masses : ndarray of shape (2 m + 1,)
            They and the second number sum to 1 or a rounding more.
        failing : float
        """
        return _on_grid(self.profile, self.relation, step)


def _deltas(profile: RowProfile, relation: Relation, epsilons: FloatArray) -> FloatArray:
    found: FloatArray = np.maximum(profile.with_row(epsilons), profile.without_row(epsilons))
    if relation is Relation.REPLACE:
        found = np.maximum(found, [profile.replaced(float(epsilon)) for epsilon in epsilons])
    return found


@lru_cache(maxsize=4096)
def _reach(profile: RowProfile, relation: Relation) -> float:
    # The least quarter of an octave beyond which the profile no longer falls: some have a floor.
    # Fixed steps, so that the composed loss moves smoothly with the profile's parameters.
    def flat(quarters: int) -> bool:
        at = 2.0 ** (quarters / 4)
        here, far = _deltas(profile, relation, np.array([at, 4 * at]))
        return bool(here - far <= max(_NOTHING, 1e-9 * here))

    quarters = 0
    while not flat(quarters) and quarters < _MOST_QUARTERS:
        quarters += 8
    while flat(quarters) and quarters > -_MOST_QUARTERS:
        quarters -= 4
    low, high = quarters, quarters + 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if flat(middle) else (middle, high)
    return float(2.0 ** (high / 4))


@lru_cache(maxsize=256)
def _on_grid(profile: RowProfile, relation: Relation, step: float) -> tuple[FloatArray, float]:
    count = max(1, math.ceil(_reach(profile, relation) / step))
    # any points of the grid will do: more of them where the profile bends most
    even = np.linspace(0.0, 1.0, min(count, _NODES[relation]) + 1)
    places = np.unique(np.rint(count * even**_CROWDED).astype(np.intp))
    deltas = _deltas(profile, relation, step * places.astype(np.float64))
    return connected(places, deltas, step)
