"""How far to trust a release's numbers, judged from its file alone as free post-processing.

The distribution of the noise is public, so error bars need no data. Releases are simulated around
the released numbers (`dpviz.releasing.chain`), and a bar covers the distance of 95 of 100 simulated
releases from their start. The start is the released matrix minus the average effect of noise. To
first order the noise N turns eigenvector i by v_j v_j'N v_i / (l_i - l_j) towards each other
eigenvector and moves l_i by v_i'N v_i. To second order l_i is released too large by the sum of s^2
/ (l_i - l_j), with s the standard deviation of N off the diagonal.

The same simulated releases show how much structure remains. New noise on the released matrix has
nearly the same effect as the noise on the true matrix, while the step from component k to the next
is longer than the edge of the noise spectrum.

Error bars and remaining structure hold while the steps between eigenvalues are longer than noise
may have made them (`Size.edge`). From the first shorter step on, dpviz states nothing. It also
states nothing if the error of a released mean turned rows that were clipped to a length.
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
"""Pairs (most features, number of simulated releases); order statistics give 95 % bars."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Reliable facts about a release.

    Attributes
    ----------
    names : tuple of str
        Names of the d features.
    loadings : ndarray of shape (d, k)
    bars : ndarray of shape (d, k)
        Half lengths of 95 % bars; NaN if a component cannot be distinguished from noise.
    variances : ndarray of shape (d,)
        Eigenvalues, descending, in squared units of the table; reliable eigenvalues are corrected
        for the average effect of noise.
    variance_bars : ndarray of shape (k,)
        Half lengths of 95 % bars of the k first eigenvalues; NaN if an eigenvalue is not reliable.
    edge : float
        Largest step between eigenvalues that noise may make, in squared units of the table.
    turned : bool
        Whether the error of a released mean turned rows that were clipped to a length. If so, no
        single component is reliable, whatever the edge.
    readable : int
        Number of leading components that differ from all noise and from each other; at most k.
    total : float
        Trace of the released matrix.
    recovery : float or None
        Mean recovery of k components when noise of the same law is added to the released matrix
        once more. None if all subspaces are equally good, or if the step from k to the next
        component is shorter than the edge of the noise: spread of noise would look like structure.
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
        Content of a release's file.
    """
    noise, unit = release["noise"], release["declared"]["row_bound"] ** 2
    std = off_diagonal_std(Law(noise["law"]), noise["scale"], rows_of(release), noise["grid_bits"])
    return float(unit * std)


def read(release: Mapping[str, Any]) -> Reading:
    """Return the reliable facts about a release.

    Parameters
    ----------
    release : mapping
        Release as data, from `dpviz.releasing.outputs.read_release`.
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
    # All k may stand out from the rest although two of them are too close to distinguish.
    stand = not turned and (k == d or values[k - 1] - values[k] > edge)
    short = np.flatnonzero(-np.diff(values) <= edge)
    readable = int(short[0]) if len(short) else d - 1
    gaps = values[:readable, np.newaxis] - values
    # A component cannot rotate towards itself, so the diagonal is infinite and adds nothing.
    gaps[np.arange(readable), np.arange(readable)] = math.inf
    variances = values.copy()
    variances[:readable] -= s**2 * (1 / gaps).sum(1)
    if turned:  # This limit for noise then includes the first eigenvalue, which may be only error.
        edge = unit * size.edge(d, people, None) + max(float(values[0]), 0.0)
    readable = min(readable, k)
    bars, variance_bars, recovery = np.full((d, k), math.nan), np.full(k, math.nan), None
    if readable or stand:
        structure = np.maximum(variances, 0)  # A negative variance is only noise.
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
    """Return the bounds on rows that a release used around its released mean."""
    said = release["declared"]
    low, high = np.array(said["low"]), np.array(said["high"])
    scale = model.scale * said["row_bound"]
    return Transform(low, high, model.mean, scale, unit=said["rows"] == "unit")


def _moment(began: FloatArray, how: Transform | None) -> Callable[[FloatArray], FloatArray]:
    """Return the moment as a function of noise on the rows' sum and count, for `simulated`."""
    if how is None:
        return lambda noise: began / (1 + noise[-1])
    # The release summed the rows about the middle of the feature limits, not about the mean.
    off = (how.center - (how.low / 2 + how.high / 2)) / how.scale

    def moment(noise: FloatArray) -> FloatArray:
        error = (off + noise[:-1]) / (1 + noise[-1]) - off
        found: FloatArray = (began + np.outer(error, error)) / (1 + noise[-1])
        return found

    return moment


def _recovery(structure: FloatArray, vectors: FloatArray, found: FloatArray) -> float | None:
    """Return a structure's mean recovery over releases; None if all subspaces are equally good.

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
