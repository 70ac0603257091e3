"""Metrics of a released matrix: absent where none is released."""

from __future__ import annotations

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.eigen import residual_norms, spectral_norms
from dpviz.core.metrics._base import Outcome, metric, unlimited


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
    # one by one: a sum over the batch would round by the size of the batch
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
    # An exact zero that rounding makes negative is not a negative eigenvalue.
    noise_floor = 8 * np.finfo(float).eps * values.shape[1] * np.abs(values).max(axis=1)
    count: FloatArray = (values < -noise_floor[:, None]).sum(axis=1).astype(float)
    return count
