"""Metrics of the released subspace."""

from __future__ import annotations

import math

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics._base import (
    FLAT,
    Outcome,
    chance_share,
    farthest_distance,
    metric,
    one,
    optimum,
    recovery_of,
)


@metric(
    "recovery",
    place=10,
    better="higher",
    upper=one,
    lower=-math.inf,
)
def recovery(outcome: Outcome) -> FloatArray | None:
    """Captured variance on a scale from 0, a random subspace, to 1, exact PCA."""  # noqa: D401  # what pages say
    # at k = d, or with a flat spectrum, any subspace is as good and 0/0 is left
    chance = chance_share(outcome.reference, outcome.k)
    if 1 - chance < FLAT:
        return None
    return np.asarray(recovery_of(_share(outcome), chance))


@metric(
    "captured share of the optimum",
    place=20,
    better="higher",
    upper=one,
)
def captured_share(outcome: Outcome) -> FloatArray:
    """Variance captured by the released components, as a share of what the best k capture."""
    return _share(outcome)


def _share(outcome: Outcome) -> FloatArray:
    share: FloatArray = outcome.captured_each.sum(axis=1) / optimum(outcome.reference, outcome.k)
    return share


@metric(
    "captured share of all variance",
    place=30,
    better="higher",
    upper=one,
)
def captured_total(outcome: Outcome) -> FloatArray:
    """Variance captured by the released components, as a share of the total variance."""
    share: FloatArray = outcome.captured_each.sum(axis=1) / outcome.reference.total
    return share


@metric(
    "projection distance",
    place=40,
    better="lower",
    upper=farthest_distance,
)
def projection_distance(outcome: Outcome) -> FloatArray:
    """Frobenius norm of the difference of the two projections: 0 if the subspaces agree."""
    # ||VV' - UU'||_F = sqrt(2) times the norm of the sines of the principal angles
    sines = np.sin(outcome.angles)
    distance: FloatArray = np.sqrt(2 * np.einsum("tj,tj->t", sines, sines))
    return distance


@metric(
    "largest principal angle",
    place=50,
    better="lower",
    upper=lambda d, k: math.pi / 2,
    unit="radians",
)
def largest_angle(outcome: Outcome) -> FloatArray:
    """Largest angle between the released and the true subspace."""
    return outcome.angles[:, -1]
