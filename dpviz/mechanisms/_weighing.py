"""Features weighed by what their noisy sizes say, before the top k are taken: post-processing.

Under rotation-invariant noise no rotation-equivariant rule beats the top k of the noisy matrix.
Only the basis adds knowledge: features differ in size, and columns of a random basis would not. So
sizes s are estimated from the released diagonal alone, by empirical Bayes, and the components are
the top k of M - k t^2 diag(1/s), t the noise's standard deviation along a direction: the mode, over
subspaces, of the likelihood of M (its signal spread evenly over k components) times a normal prior
whose variance on feature i is in proportion to s_i, with the prior's logarithm counted twice, a
choice made on the tuning half of the tables of docs/defaults.md. As t falls it tends to the top k
of M. Nothing here sees the data, so no account changes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import gammaincinv

from dpviz.core.arrays import FloatArray
from dpviz.core.params import choice
from dpviz.core.release import Calibration, Release
from dpviz.mechanisms._base import AdditiveMechanism, Mechanism

NONE, FEATURES = "none", "features"

# Shapes of the Gamma law that sizes follow, from few large ones to nearly equal.
_SHAPES = (0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
_LEVELS = 200  # quantiles that stand for each law
_NEAR = 1 << 16  # numbers at once: what the processor keeps near
# Log odds, before the data, that all sizes are equal: where features are alike, weighing loses.
_EQUAL = 2.0


@lru_cache(maxsize=1)
def _grids() -> FloatArray:
    """Return quantiles of Gamma laws of mean 1, shape (shapes, levels)."""
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    return np.stack([np.maximum(gammaincinv(shape, levels) / shape, 1e-12) for shape in _SHAPES])


def feature_sizes(
    noisy: FloatArray,
    std: float,
    totals: FloatArray,
    roots: tuple[FloatArray, float] | None = None,
) -> FloatArray:
    """Return the expected sizes of features from noisy ones, draw by draw.

    Sizes s_i follow a Gamma law of mean total/d whose shape is unknown, or are all equal; given
    them, x_i ~ N(s_i, std^2). The shape is integrated out by its evidence.

    Parameters
    ----------
    noisy : ndarray of shape (size, d)
        The x_i; the x_i of one draw sum to about its total.
    std : float
        Of their noise, above 0.
    totals : ndarray of shape (size,)
        Sum of all sizes, above 0.
    roots : (ndarray of shape (size, d), float), optional
        A second look: noisy means of |u_i|, taken as sqrt(2 s_i/pi), and the noise's standard
        deviation.

    Returns
    -------
    ndarray of shape (size, d)
    """
    sizes = np.empty_like(noisy)
    # of few features many draws at once
    step = max(1, _NEAR // (noisy.shape[1] * _LEVELS * len(_SHAPES)))
    for start in range(0, len(noisy), step):
        part = slice(start, start + step)
        seen = None if roots is None else (roots[0][part], roots[1])
        sizes[part] = _sizes(noisy[part], std, totals[part], seen)
    return sizes


def _sizes(
    noisy: FloatArray, std: float, totals: FloatArray, roots: tuple[FloatArray, float] | None
) -> FloatArray:
    """Return `feature_sizes` of as many draws as stay near the processor."""
    size, d = noisy.shape
    mean = (totals / d)[:, None, None, None]

    def log_likelihood(sizes: FloatArray) -> FloatArray:
        exponents = noisy[:, None, :, None] - sizes
        exponents /= std
        np.square(exponents, out=exponents)
        exponents *= -0.5
        if roots is not None:
            second_look, root_std = roots
            second = second_look[:, None, :, None] - np.sqrt(2 / math.pi * sizes)
            second /= root_std
            np.square(second, out=second)
            second *= 0.5
            exponents -= second
        return exponents

    logs = np.empty((size, 1 + len(_SHAPES)))
    means = np.empty((size, 1 + len(_SHAPES), d))
    logs[:, 0] = _EQUAL + log_likelihood(mean)[:, 0, :, 0].sum(axis=1)
    means[:, 0] = mean[:, 0, 0]
    # of few features all shapes at once, of many as many as stay near
    step = max(1, _NEAR // (d * _LEVELS))
    for start in range(0, len(_SHAPES), step):
        part = slice(1 + start, 1 + start + step)
        grids = _grids()[start : start + step, None] * mean
        like = log_likelihood(grids)
        top = like.max(axis=3)
        like -= top[..., None]
        np.exp(like, out=like)
        whole = like.sum(axis=3)
        logs[:, part] = (np.log(whole / _LEVELS) + top).sum(axis=2)
        like *= grids
        means[:, part] = like.sum(axis=3) / whole
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    exponents: FloatArray = (odds[:, :, None] * means).sum(axis=1) / odds.sum(axis=1, keepdims=True)
    return exponents


def held_back(k: int, sizes: FloatArray) -> FloatArray:
    """Return what is held back of each feature, per squared standard deviation of the noise."""
    shrinkage: FloatArray = k / sizes
    return shrinkage


def shrunk(matrix: FloatArray, std: float, sizes: FloatArray, strength: float) -> FloatArray:
    """Return a noisy second moment shrunk to its features' sizes, entry by entry, shape (d, d).

    The mean given one noisy entry, where entry (i, j) was drawn from a normal law about s_i on the
    diagonal and 0 beside it, with variance ``strength`` times s_i s_j. As noise falls it tends to
    the matrix.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
    std : float
        Of the noise along a direction: that on an entry beside the diagonal is std/sqrt(2).
    sizes : ndarray of shape (d,)
        Above 0.
    strength : float
    """
    signal = strength * np.outer(sizes, sizes)
    noise = np.full_like(matrix, std * std / 2)
    np.fill_diagonal(noise, std * std)
    centre = np.diag(sizes)
    found: FloatArray = centre + (matrix - centre) * (signal / (signal + noise))
    return found


@dataclass(frozen=True)
class Weighing(Mechanism):
    """A mechanism whose noise has one known standard deviation along every direction."""

    weigh: str = choice(
        NONE,
        {NONE: "No", FEATURES: "By their noisy sizes"},
        label="Weigh features",
        help="Whether directions that lean on small features are held back before the components "
        "are taken, by the released diagonal alone. It costs no privacy; it pays where features "
        "differ in size and little is recovered.",
        examples=(FEATURES,),
    )

    @property
    def weighs(self) -> bool:
        """Whether features are weighed."""
        return self.weigh != NONE

    def public_total(self, calibration: Calibration) -> float | None:
        """Return the sum of all variances where everybody knows it, as for rows of length one."""
        return None

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of the released variance along any direction."""
        raise NotImplementedError(f"{self.key} must say its noise along directions")

    def weighed(self, release: Release, calibration: Calibration) -> Release:
        """Return a release with components of its noisy matrix as this variant takes them."""
        return release.with_components(self.of_matrices(release.raw, calibration).components)

    def of_matrices(self, matrices: FloatArray, calibration: Calibration) -> Release:
        """Return the release of noisy matrices, with components of weighed features if asked."""
        release = super().of_matrices(matrices, calibration)
        if not self.weighs or calibration.problem.k == matrices.shape[1]:
            return release
        std, k = self.weighing_std(calibration), calibration.problem.k
        public_total = self.public_total(calibration)
        held = matrices.copy()
        diagonal = np.einsum("sii->si", held)  # a view
        traces = diagonal.sum(axis=1)
        # without a public sum take the noisy one; a sum below its own noise holds no signal
        totals = (
            np.maximum(traces, std) if public_total is None else np.full(len(traces), public_total)
        )
        noisy = diagonal - ((traces - totals) / matrices.shape[1])[:, None]
        diagonal -= std**2 * held_back(k, feature_sizes(noisy, std, totals))
        return release.with_components(Release.of_matrices(held, k).components)


def weighed(mechanism: Mechanism, calibration: Calibration, release: Release) -> Release:
    """Return a release with the components of weighed features, where that is post-processing."""
    if not isinstance(mechanism, Weighing):
        return release
    return replace(mechanism, weigh=FEATURES).weighed(release, calibration)


@dataclass(frozen=True)
class WeighingAdditive(Weighing, AdditiveMechanism):
    """A plus noise that is the same along every direction."""

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of w'Nw for unit w."""
        unit = self.diagonal_std(calibration.problem)
        assert unit is not None, "it is the same along every direction"
        return unit * calibration.scale
