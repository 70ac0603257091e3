"""What the numbers of a release can bear, from its file alone: post-processing costs nothing.

The law of the noise is public, so bars need no data. Off the diagonal each entry of the released
matrix has noise of one standard deviation s. To first order the noise N turns eigenvector i by
v_j v_j'N v_i / (l_i - l_j) towards each other one and moves l_i by v_i'N v_i, where v_j'N v_i has
variance s^2 for i != j and 2 s^2 for i = j (Gaussian orthogonal ensemble). Laplace noise has the
same variance on the diagonal as off it, so these are upper bounds there. On average l_i is released
too large by the sum of s^2 / (l_i - l_j), to second order, which is taken off.

What survives is judged by noise of that law on the released matrix once more, which is nearly what
it did to the true one while the step from component k to the next is longer than the noise edge.

Both hold while the steps between eigenvalues are longer than the noise edge, 2 s sqrt d, the length
that noise alone has; from the first shorter step on nothing is said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from scipy.special import ndtri

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import chance_share, nothing_to_recover, recovery_of
from dpviz.core.moments import SecondMoment
from dpviz.core.seeding import generator
from dpviz.releasing.noise import Law, off_diagonal_std
from dpviz.releasing.picture import rows_of
from dpviz.simulation.bounds import noise_edge

CONFIDENCE = 0.95
_DRAWS, _WIDE_DRAWS, _WIDE = 64, 8, 200
# many features average out within one draw
_HALF = float(ndtri(0.5 + CONFIDENCE / 2))


@dataclass(frozen=True, eq=False)
class Reading:
    """A release as it may be read.

    Attributes
    ----------
    names : tuple of str
        Of the d features.
    loadings : ndarray of shape (d, k)
    bars : ndarray of shape (d, k)
        Half lengths of 95 % bars; NaN where a component cannot be told from noise.
    variances : ndarray of shape (d,)
        Eigenvalues, descending, in squared units of the table; those that can be read are
        corrected for what noise adds.
    variance_bar : float
        Half length of a 95 % bar of each of them.
    edge : float
        Noise edge, in the same units.
    readable : int
        Leading components that can be told from noise and from each other; at most k.
    total : float
        Trace of the released matrix.
    recovery : float or None
        Mean recovery of k components when noise of the same law is added to the released matrix
        once more; None where any subspace is as good as another, and where the step from the k to
        the next one is shorter than the noise edge: the spread of noise would pass for structure.
    """

    names: tuple[str, ...]
    loadings: FloatArray
    bars: FloatArray
    variances: FloatArray
    variance_bar: float
    edge: float
    readable: int
    total: float
    recovery: float | None


def noise_std(release: Mapping[str, Any]) -> float:
    """Return the standard deviation of the noise off the diagonal, in squared units of the table.

    Parameters
    ----------
    release : mapping
        As a release's file holds it.
    """
    noise, unit = release["noise"], release["declared"]["row_bound"] ** 2
    std = off_diagonal_std(Law(noise["law"]), noise["scale"], rows_of(release), noise["grid_bits"])
    return float(unit * std)


def read(release: Mapping[str, Any]) -> Reading:
    """Return what may be read from a release.

    Parameters
    ----------
    release : mapping
        As `dpviz.releasing.outputs.read_release` returns it.
    """
    matrix = np.array(release["matrix"])
    loadings = np.array(release["components"]).T
    d, k = loadings.shape
    s = noise_std(release)
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    # together they may stand out where two of them are too near to be told apart
    stand = k == d or values[k - 1] - values[k] > noise_edge(s, d)
    edge = noise_edge(s, d)
    short = np.flatnonzero(-np.diff(values) <= edge)
    readable = int(short[0]) if len(short) else d - 1
    gaps = values[:readable, np.newaxis] - values
    # a component does not turn towards itself
    gaps[np.arange(readable), np.arange(readable)] = math.inf
    bars = np.full((d, k), math.nan)
    bars[:, :readable] = _HALF * s * np.sqrt(np.square(vectors) @ (1 / gaps[:k] ** 2).T)
    variances = values.copy()
    variances[:readable] -= s**2 * (1 / gaps).sum(1)
    return Reading(
        tuple(release["declared"]["columns"]),
        loadings,
        bars,
        variances,
        _HALF * math.sqrt(2) * s,
        edge,
        min(readable, k),
        float(np.trace(matrix)),
        _recovery(matrix, values, vectors, s, k) if stand else None,
    )


def _recovery(
    matrix: FloatArray, values: FloatArray, vectors: FloatArray, s: float, k: int
) -> float | None:
    """Return what is left of the released structure once noise is added again.

    The stream is named by nothing of the release: the same file gives the same number.
    """
    d = len(values)
    # noise leaves eigenvalues below 0, which no structure has
    cut = np.maximum(values, 0)
    reference = SecondMoment((vectors * cut) @ vectors.T, 1)
    chance = chance_share(reference, k) if cut[0] > 0 else 1.0
    if nothing_to_recover(chance):
        return None
    share, draws = 0.0, _DRAWS if d <= _WIDE else _WIDE_DRAWS
    for draw in range(draws):
        drawn = generator(0, "noise on a release", draw).standard_normal((d, d))
        noisy = matrix + s / math.sqrt(2) * (drawn + drawn.T)
        # the first k alone: LAPACK orders them ascending
        top = scipy.linalg.eigh(noisy, subset_by_index=(d - k, d - 1))[1]
        share += float((cut @ np.square(vectors.T @ top)).sum()) / (draws * cut[:k].sum())
    return float(recovery_of(share, chance))
