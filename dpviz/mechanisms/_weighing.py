"""Weight features by their noisy sizes before the top k are taken: post-processing.

Under rotation-invariant noise no rotation-equivariant rule beats the top k of the noisy matrix.
Only the basis adds knowledge: features differ in size, and columns of a random basis would not. So
sizes s are estimated from the released diagonal alone, by empirical Bayes. The components are the
top k of M - k t^2 diag(1/s), with t the noise's standard deviation along a direction. They are the
mode, over subspaces, of a likelihood times a prior. The likelihood of M spreads its signal evenly
over k components. The prior is normal, with a variance on feature i in proportion to s_i. Its
logarithm counts twice, as chosen on the tuning half of the tables of docs/defaults.md. As t falls,
the result tends to the top k of M. Nothing here sees the data, so the privacy loss does not change.
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

# Shape parameters of the Gamma law of feature sizes: from few large sizes to nearly equal ones.
_SHAPES = (0.06, 0.12, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
_LEVELS = 200  # Number of quantiles that represent each Gamma law.
_NEAR = 1 << 16  # Maximum number of numbers in a block, so that it fits the processor's cache.
# Log odds, before any data, that all features have equal size. Weighting is worse if they do.
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
    """Return the expected sizes of features from their noisy sizes, for each repetition.

    Sizes s_i follow a Gamma law of mean total/d and unknown shape, or are all equal. Given the
    sizes, x_i ~ N(s_i, std^2). The shape is integrated out by its evidence.

    Parameters
    ----------
    noisy : ndarray of shape (size, d)
        The noisy sizes x_i; in each repetition they sum to about ``total``.
    std : float
        Standard deviation of the noise on x_i, above 0.
    totals : ndarray of shape (size,)
        Sum of all sizes, above 0.
    roots : (ndarray of shape (size, d), float), optional
        A second query of noisy means of |u_i|, taken as sqrt(2 s_i/pi), and the standard deviation
        of its noise.

    Returns
    -------
    ndarray of shape (size, d)
    """
    sizes = np.empty_like(noisy)
    # The fewer features there are, the more repetitions fit into one block.
    step = max(1, _NEAR // (noisy.shape[1] * _LEVELS * len(_SHAPES)))
    for start in range(0, len(noisy), step):
        part = slice(start, start + step)
        seen = None if roots is None else (roots[0][part], roots[1])
        sizes[part] = _sizes(noisy[part], std, totals[part], seen)
    return sizes


def _sizes(
    noisy: FloatArray, std: float, totals: FloatArray, roots: tuple[FloatArray, float] | None
) -> FloatArray:
    """Return `feature_sizes` for a block of repetitions that fits the processor's cache."""
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
    # As many shapes are computed at once as fit the processor's cache: all if features are few.
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
    """Return the shrinkage of each feature, per squared standard deviation of the noise."""
    shrinkage: FloatArray = k / sizes
    return shrinkage


def shrunk(matrix: FloatArray, std: float, sizes: FloatArray, strength: float) -> FloatArray:
    """Return a noisy second moment, each entry shrunk to its features' sizes, shape (d, d).

    The posterior mean of each entry given its noisy value. The prior of entry (i, j) is normal
    about s_i on the diagonal and 0 elsewhere, with variance ``strength`` times s_i s_j. As noise
    falls, the mean tends to the matrix.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
    std : float
        Noise standard deviation along a direction; the noise on an off-diagonal entry has
        std/sqrt(2).
    sizes : ndarray of shape (d,)
        Expected sizes of the features, above 0.
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
        {NONE: "No", FEATURES: "by their noisy sizes"},
        label="Weight features",
        help="Whether directions along small features get less weight before components are "
        "computed. The weights come from the released diagonal alone, at no privacy cost. Weights "
        "help if features differ in size and recovery is low.",
        examples=(FEATURES,),
    )

    @property
    def weighs(self) -> bool:
        """Whether features are weighted."""
        return self.weigh != NONE

    def public_total(self, calibration: Calibration) -> float | None:
        """Return the sum of all variances if it is public, as for rows of length one, or None."""
        return None

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of the released variance along any direction."""
        raise NotImplementedError(f"{self.key} must define weighing_std, its noise in a direction")

    def weighed(self, release: Release, calibration: Calibration) -> Release:
        """Return a release with the components that this variant computes from the noisy matrix."""
        return release.with_components(self.of_matrices(release.raw, calibration).components)

    def of_matrices(self, matrices: FloatArray, calibration: Calibration) -> Release:
        """Return the release of noisy matrices, with weighted features if this variant weighs."""
        release = super().of_matrices(matrices, calibration)
        if not self.weighs or calibration.problem.k == matrices.shape[1]:
            return release
        std, k = self.weighing_std(calibration), calibration.problem.k
        public_total = self.public_total(calibration)
        held = matrices.copy()
        diagonal = np.einsum("sii->si", held)  # Changing `diagonal` also changes `held`.
        traces = diagonal.sum(axis=1)
        # Without a public sum, the noisy sum of sizes is used. Below `std` it would be only noise.
        totals = (
            np.maximum(traces, std) if public_total is None else np.full(len(traces), public_total)
        )
        noisy = diagonal - ((traces - totals) / matrices.shape[1])[:, None]
        diagonal -= std**2 * held_back(k, feature_sizes(noisy, std, totals))
        return release.with_components(Release.of_matrices(held, k).components)


def weighed(mechanism: Mechanism, calibration: Calibration, release: Release) -> Release:
    """Return a release with components of weighted features, if that is post-processing."""
    if not isinstance(mechanism, Weighing):
        return release
    return replace(mechanism, weigh=FEATURES).weighed(release, calibration)


@dataclass(frozen=True)
class WeighingAdditive(Weighing, AdditiveMechanism):
    """A plus noise with the same law along every direction."""

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of w'Nw for unit w."""
        unit = self.diagonal_std(calibration.problem)
        assert unit is not None, "it is the same along every direction"
        return unit * calibration.scale
