"""Built-in metrics of the released subspace, a released matrix and a published chart.

A metric that does not apply to a release is absent.
"""

from __future__ import annotations

import math

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.eigen import residual_norms, spectral_norms
from dpviz.core.metrics._base import (
    Outcome,
    chance_share,
    farthest_distance,
    metric,
    nothing_to_recover,
    one,
    optimum,
    recovery_of,
    unlimited,
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
    chance = chance_share(outcome.reference, outcome.k)
    if nothing_to_recover(chance):  # If chance captures all the variance, the ratio would be 0/0.
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
    best = optimum(outcome.reference, outcome.k)
    # If no direction has any variance, any directions capture all of the variance.
    captured = outcome.captured_each.sum(axis=1)
    share: FloatArray = captured / best if best > 0 else np.ones(len(captured))
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
    # ||VV' - UU'||_F is sqrt(2) times the norm of the sines of the principal angles. Use angles and
    # not V'U: close to the true space, 1 - cos^2 has no correct digits.
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


@metric(
    "noise, spectral norm",
    place=60,
    better="lower",
    upper=unlimited,
    needs="matrix",
    unit="squared row bound",
)
def noise_spectral(outcome: Outcome) -> FloatArray | None:
    """Largest eigenvalue, in size, of the released matrix minus the exact one."""
    if outcome.release.exact:
        return np.zeros(len(outcome.release.components))
    return None if outcome.noise is None else spectral_norms(outcome.noise)


@metric(
    "noise, Frobenius norm",
    place=70,
    better="lower",
    upper=unlimited,
    needs="matrix",
    unit="squared row bound",
)
def noise_frobenius(outcome: Outcome) -> FloatArray | None:
    """Root of the summed squares of the released matrix minus the exact one."""
    if outcome.release.exact:
        return np.zeros(len(outcome.release.components))
    if outcome.noise is None:
        return None
    # Sum each release on its own: rounding in one sum over all would depend on the batch size.
    return np.array([float(np.linalg.norm(matrix)) for matrix in outcome.noise])


@metric(
    "low-rank error",
    place=80,
    better="lower",
    upper=unlimited,
    needs="matrix",
    unit="squared row bound",
)
def low_rank_error(outcome: Outcome) -> FloatArray | None:
    """Spectral norm of A minus the rank-k matrix of the released top k."""
    values = outcome.release.eigenvalues
    if values is None:
        return None
    true = outcome.reference
    return residual_norms(*true.span, outcome.release.components, values[:, : outcome.k])


@metric(
    "negative eigenvalues",
    place=90,
    better="neither",
    upper=lambda d, k: float(d),
    needs="matrix",
    unit="count",
)
def negative_eigenvalues(outcome: Outcome) -> FloatArray | None:
    """How many eigenvalues of the released matrix are below zero; a variance cannot be."""
    values = outcome.release.eigenvalues
    if values is None:
        return None
    # Rounding may make a zero eigenvalue negative, so do not count tiny negative values.
    noise_floor = 8 * np.finfo(float).eps * values.shape[1] * np.abs(values).max(axis=1)
    count: FloatArray = (values < -noise_floor[:, None]).sum(axis=1).astype(float)
    return count


@metric("fidelity of the picture", place=110, better="higher", upper=one, needs="picture")
def fidelity(outcome: Outcome) -> FloatArray | None:
    """Similarity of the published points' spread to the true one: 1 is equal, 0 a single point."""
    # Without a chart, return no value instead of 0, because 0 would mean a bad chart.
    return None if outcome.pictured is None else outcome.pictured.fidelity


@metric("labels told by the picture", place=120, better="higher", upper=one, needs="picture")
def class_picture(outcome: Outcome) -> FloatArray | None:
    """Labels predicted by the nearest published points: 0 is the largest label for all, 1 exact."""
    return None if outcome.pictured is None else outcome.pictured.class_picture
