"""What the numbers of a release can bear, from its file alone: post-processing costs nothing.

The law of the noise is public, so bars need no data: releases are drawn round the released numbers
(`dpviz.releasing.chain`), and a bar reaches as far as 95 of 100 of them lie from where they began.
They begin at the released matrix less what noise adds on average. To first order the noise N turns
eigenvector i by v_j v_j'N v_i / (l_i - l_j) towards each other one and moves l_i by v_i'N v_i; to
second order l_i is released too large by the sum of s^2 / (l_i - l_j), s the standard deviation of
N off the diagonal.

What survives is judged by the same releases: noise on the released matrix once more is nearly what
it did to the true one while the step from component k to the next is longer than the noise edge.

Both hold while the steps between eigenvalues are longer than all that noise may have made of them
(`Size.edge`); from the first shorter step on nothing is said, and nothing at all where the error of
a released mean turned rows that were cut to a length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import chance_share, nothing_to_recover, recovery_of
from dpviz.core.moments import SecondMoment
from dpviz.preparation.transform import Transform
from dpviz.releasing.chain import Size, below, simulated, turned_to
from dpviz.releasing.model import ReleasedModel
from dpviz.releasing.noise import Law, off_diagonal_std
from dpviz.releasing.picture import rows_of

_DRAWS = ((100, 199), (400, 39), (math.inf, 19))
"""Releases drawn up to so many features; of each the bars of 95 of 100 are an order statistic."""


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
    variance_bars : ndarray of shape (k,)
        Half lengths of 95 % bars of the first of them; NaN where one cannot be read.
    edge : float
        What a step between them must pass to be more than noise, in the same units.
    turned : bool
        Whether the error of a released mean turned rows that were cut to a length: then no
        component can be read by itself, whatever the edge.
    readable : int
        Leading components that can be told from all noise and from each other; at most k.
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
    variance_bars: FloatArray
    edge: float
    turned: bool
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
    model = ReleasedModel.of_release(release)
    loadings = model.components.T
    d, k = loadings.shape
    s, people, size = noise_std(release), rows_of(release), Size.of_release(release)
    unit = release["declared"]["row_bound"] ** 2
    how = _centred(release, model) if release.get("mean") else None
    edge = unit * size.edge(d, people, how)
    turned = math.isinf(edge)
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    # together they may stand out where two of them are too near to be told apart
    stand = not turned and (k == d or values[k - 1] - values[k] > edge)
    short = np.flatnonzero(-np.diff(values) <= edge)
    readable = int(short[0]) if len(short) else d - 1
    gaps = values[:readable, np.newaxis] - values
    # a component does not turn towards itself
    gaps[np.arange(readable), np.arange(readable)] = math.inf
    variances = values.copy()
    variances[:readable] -= s**2 * (1 / gaps).sum(1)
    if turned:  # as high as the first, as its error may be all that is seen
        edge = unit * size.edge(d, people, None) + max(float(values[0]), 0.0)
    readable = min(readable, k)
    bars, variance_bars, recovery = np.full((d, k), math.nan), np.full(k, math.nan), None
    if readable or stand:
        structure = np.maximum(variances, 0)  # below 0, which no structure has, is noise
        began = (vectors * variances) @ vectors.T
        draws = next(count for most, count in _DRAWS if d <= most)
        heights, found = np.empty((draws, k)), np.empty((draws, d, k))
        moved = simulated(_moment(began / unit, how), size, d, people, k, range(draws))
        for at, (seen, components) in enumerate(moved):
            heights[at], found[at] = unit * seen[:k], turned_to(loadings, components)
        bars[:, :readable] = below(np.abs(found - loadings))[:, :readable]
        variance_bars[:readable] = below(np.abs(heights - values[:k]))[:readable]
        recovery = _recovery(structure, vectors, found) if stand else None
    return Reading(
        tuple(release["declared"]["columns"]),
        loadings,
        bars,
        variances,
        variance_bars,
        edge,
        turned,
        readable,
        float(np.trace(matrix)),
        recovery,
    )


def _centred(release: Mapping[str, Any], model: ReleasedModel) -> Transform:
    """Return how a release bounded rows around the mean that it released."""
    said = release["declared"]
    low, high = np.array(said["low"]), np.array(said["high"])
    scale = model.scale * said["row_bound"]
    return Transform(low, high, model.mean, scale, unit=said["rows"] == "unit")


def _moment(began: FloatArray, how: Transform | None) -> Callable[[FloatArray], FloatArray]:
    """Return the moment that noise on the sum of rows and on their count leaves, as `simulated`."""
    if how is None:
        return lambda noise: began / (1 + noise[-1])
    # the sum of rows was taken from the middle of the limits
    off = (how.center - (how.low / 2 + how.high / 2)) / how.scale

    def moment(noise: FloatArray) -> FloatArray:
        error = (off + noise[:-1]) / (1 + noise[-1]) - off
        found: FloatArray = (began + np.outer(error, error)) / (1 + noise[-1])
        return found

    return moment


def _recovery(structure: FloatArray, vectors: FloatArray, found: FloatArray) -> float | None:
    """Return what releases keep of a structure on average; None where any subspace is as good.

    Parameters
    ----------
    structure : ndarray of shape (d,)
        Variances along the released directions.
    vectors : ndarray of shape (d, d)
    found : ndarray of shape (draws, d, k)
    """
    k = found.shape[2]
    reference = SecondMoment((vectors * structure) @ vectors.T, 1)
    chance = chance_share(reference, k) if structure[0] > 0 else 1.0
    if nothing_to_recover(chance):
        return None
    best = np.sort(structure)[::-1][:k].sum()
    kept = [structure @ np.square(vectors.T @ one) for one in found]
    return float(recovery_of(float(np.mean(np.sum(kept, axis=1))) / best, chance))
