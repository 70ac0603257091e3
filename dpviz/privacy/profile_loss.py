"""A dominating loss from a privacy profile alone, for composition with others.

A profile delta(epsilon) is a convex function of x = e^epsilon, so the chords between points of it
lie above: they are the profile of a pair of laws whose losses are those points ("Connect the
dots", Doroshenko, Ghazi, Kamath, Kumar & Manurangsi 2022, Section 4), which dominates. With both
orders of the neighbours under one curve the pair is symmetric: the second law gives the loss l the
probability that the first gives -l, which is e^-l times that of l.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.privacy.profiles import RowProfile
from dpviz.values.problem import Relation

# Points of the profile: a replaced row costs a quadrature for each.
_NODES = {Relation.ZERO_OUT: 1_024, Relation.REPLACE: 96}
_CROWDED = 1.5  # power by which they crowd towards 0
_NOTHING = 1e-14  # of delta: what lies beyond counts as told
_LARGEST = 2.0**20


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
    def epsilon(self) -> float:
        """Where the profile has fallen to next to nothing, or falls no further."""
        return _reach(self.profile, self.relation)

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
    # Twice the least power of two beyond which the profile no longer falls: some have a floor.
    reach = 2.0**-10
    while reach < _LARGEST:
        here, far = _deltas(profile, relation, np.array([reach, 4 * reach]))
        if here - far <= max(_NOTHING, 1e-9 * here):
            break
        reach *= 2
    low, high = reach / 2, reach
    for _ in range(6):  # a reach that is too long wastes points
        middle = 0.5 * (low + high)
        here, far = _deltas(profile, relation, np.array([middle, 4 * middle]))
        low, high = (low, middle) if here - far <= max(_NOTHING, 1e-9 * here) else (middle, high)
    return high


@lru_cache(maxsize=256)
def _on_grid(profile: RowProfile, relation: Relation, step: float) -> tuple[FloatArray, float]:
    count = max(1, math.ceil(_reach(profile, relation) / step))
    # any points of the grid will do: more of them where the profile bends most
    even = np.linspace(0.0, 1.0, min(count, _NODES[relation]) + 1)
    places = np.unique(np.rint(count * even**_CROWDED).astype(np.intp))
    deltas = _deltas(profile, relation, step * places.astype(np.float64))
    widths = step * np.diff(places)
    # c_i = e^(epsilon_i) times the slope of chord i: what rounding did to the order of slopes is
    # raised again, from the far end on
    slopes = np.maximum(deltas[:-1] - deltas[1:], 0.0) / np.expm1(widths)
    for index in range(len(slopes) - 2, -1, -1):
        slopes[index] = max(slopes[index], slopes[index + 1] * math.exp(-widths[index]))
    above = slopes * np.exp(widths)
    above[:-1] -= slopes[1:]
    above = np.maximum(above, 0.0)  # probabilities of the losses at the places but the first
    below = above * np.exp(-step * places[1:])
    failing = float(deltas[-1])
    masses = np.zeros(2 * count + 1)
    masses[count + places[1:]] = above
    masses[count - places[1:]] = below
    masses[count] = max(0.0, 1.0 - failing - float(above.sum() + below.sum()))
    masses.setflags(write=False)
    return masses, failing
