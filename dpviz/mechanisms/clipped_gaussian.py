"""Gaussian noise on rows clipped at a private quantile of their norms: no row-norm bound needed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent, greatest_mu_beside
from dpviz.accounting.gaussian import mu_of, noise_std
from dpviz.accounting.sensitivity import frobenius
from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import numeral
from dpviz.core.params import number
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._clipped import (
    OCTAVES,
    Lengths,
    OfClippedRows,
    beyond,
    climb,
    on_the_sphere,
)
from dpviz.sampling.ensembles import goe

_OCTAVE_COUNTS = 6  # Six noisy counts search 64 octaves for the median length.
_FINE_COUNTS, _PER_OCTAVE, _BELOW = 4, 4, 3  # Four more counts search 16 radii, 4 per octave.
_FEW, _SURE = 1e-3, 5.0  # Share of rows below which counts search whole octaves, and their margin.
_FIRST = 0.3  # Share of the counts' squared mu that finds the octave of the median row length.
_LOUD = 0.04  # Largest tau at which a quantile of the row lengths still helps.
_CLEAR = 3.0  # Least n/2 for the search of a radius, in standard deviations of a noisy count.
_MARGIN = 1.5  # Margin in standard deviations: with less, noise could raise the radius endlessly.


@dataclass(frozen=True)
class ClippedGaussian(OfClippedRows):
    """Release r^2 (M + G): M the moment of rows clipped at r, in units of r^2, and G a GOE.

    Source
    ------
    This mechanism is dpviz's. Clipping to a noisy quantile is known. We measured that spherical PCA
    is its limit, and which quantile helps PCA at a noise level (docs/defaults.md).

    Notes
    -----
    The branch. tau = D sqrt(d)/(n mu) is public, with D = sqrt(2) (replace) or 1 (zero-out) and the
    budget's mu. If tau is above .04, or n/2 is below three standard deviations s1 of the first
    counts, no quantile is worth its privacy loss. Then the release is the same as in `spherical`:
    the second moment of directions, which shows no variance.

    The radius. N(r) rows are longer than r. Six noisy counts do a binary search over the octaves
    2^-32 to 2^31, up while N(r) + s1 Z > n/2, to an octave b about the median. Four more search b
    2^((j-3)/4), j = 0 .. 15, up while N(r) + s2 Z > K. Here K is `beyond` times n plus 1.5 s2, at
    most n/2. If `beyond` times n plus 5 s2 is at most n/1000, it is K, and they search b 2^j. So as
    epsilon grows the radius passes every row, and the release tends to the full second moment.

    The accounting. Each count has a radius that depends on earlier answers alone, and one row moves
    it by at most 1. Given r, a row enters M as a uu' with unit u and 0 <= a <= 1, a function of
    that row. So M moves by at most D/n in the Frobenius norm, for every r
    (`dpviz.mechanisms._clipped`). Gaussian steps compose adaptively to the sum of their squared mu,
    exactly (Dong, Roth and Su 2022). So 6/s1^2 + 4/s2^2 = share mu^2, and the noise on M has the
    rest. Everything else is post-processing: so the radius itself is released too.

    The accounted loss is an upper bound. Only the radius is released, not the noisy counts. Under
    replace the rows that move M by sqrt(2) are both as long as r, so counts below r do not change.
    """

    share: float = number(
        0.05,
        0.005,
        0.5,
        label="Share for the radius",
        help="Share of the budget (its squared mu) that finds the clipping radius.",
        slider=(0.01, 0.3),
        examples=(0.2,),
    )

    info = MechanismInfo(
        label="Clipped Gaussian",
        summary="Finds a radius privately, clips rows to it, and adds Gaussian noise to "
        "match. If noise is large, it uses the rows' directions alone.",
        paper="dpviz",
        family="gaussian",
        release="subspace",
        guarantee="approximate",
        order=31,
        featured=True,
        highlight=5,
        needs_rows=True,
        by_length=True,
        timed=True,
        law=r"\hat A = r^2 \left(\frac1n \sum_i \min\left(1, \frac{\|x_i\|^2}{r^2}\right)"
        r" \frac{x_i x_i'}{\|x_i\|^2} + G\right),\quad G_{ii} \sim N(0, t^2),\ "
        r"G_{ij} \sim N(0, t^2/2)",
        calibration=r"t = \frac{D}{n \mu \sqrt{1 - s}},\quad r:\ \#\{\|x_i\| > r\} \approx n\, q"
        r"(\tau, d),\quad \tau = \frac{D \sqrt d}{n \mu}",
        complexity="n d^2",
        advice="The default with a delta if rows are available: no row-norm bound is needed.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the noise scale in units of r^2 and, if r is sought, the noise of the counts."""
        sensitivity = frobenius(on_the_sphere(problem))
        mu = mu_of(budget)
        tau = sensitivity * math.sqrt(problem.d) / mu
        octave_std = math.sqrt(_OCTAVE_COUNTS / (_FIRST * self.share)) / mu
        fine_std = math.sqrt(_FINE_COUNTS / ((1 - _FIRST) * self.share)) / mu
        if tau > _LOUD or problem.n / 2 < _CLEAR * octave_std:
            scale = math.nextafter(sensitivity * noise_std(budget), math.inf)
            alone = GaussianPart(sensitivity, scale, attained=False)  # Only a subspace is released.
            return Calibration(problem, budget, scale, (alone,), {"tau": tau})
        octave = GaussianPart(1.0, octave_std, attained=False)  # Only the radius is released.
        fine = GaussianPart(1.0, fine_std, attained=False)
        counts = (octave,) * _OCTAVE_COUNTS + (fine,) * _FINE_COUNTS
        scale = sensitivity / (greatest_mu_beside(counts, budget) * (1 - 1e-15))
        least = beyond(tau, problem.d) * problem.n
        sure = least + _SURE * fine_std
        per_octave = _PER_OCTAVE if sure > _FEW * problem.n else 1
        rank = sure if per_octave == 1 else min(problem.n / 2, least + _MARGIN * fine_std)
        values = {
            "tau": tau,
            "octave_std": octave_std,
            "fine_std": fine_std,
            "rank": rank,
            "per_octave": per_octave,
        }
        parts = (*counts, GaussianPart(sensitivity, scale))
        return Calibration(problem, budget, scale, parts, values)

    def noise_of(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return noise at unit scale, shape (size, d, d)."""
        return goe(draws, problem.d)

    def radii(self, lengths: Lengths, calibration: Calibration, draws: Draws) -> FloatArray:
        """Return the radius found in each repetition, shape (size,)."""
        return radii_of(lengths, calibration, draws)

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of w'Gw for unit w, in units of r^2."""
        return calibration.scale

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 3: the least regret if rows are available."""
        return 3.0

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration."""
        if self.releases(problem, budget) == "subspace":
            return (
                "Noise is too large here for a clipping radius to help. Every row is scaled "
                "to length one, which bounds the influence of one person, and the exact "
                "Gaussian profile sets the noise."
            )
        return (
            f"Ten noisy counts of long rows use {numeral(self.share, 3)} of the squared mu. "
            "A clipped row moves the moment by at most a known amount for every answer, and "
            "adaptive Gaussian steps compose exactly."
        )


def radii_of(lengths: Lengths, calibration: Calibration, draws: Draws) -> FloatArray:
    """Return the radius found in each repetition, shape (size,).

    Parameters
    ----------
    lengths : ndarray of shape (n,) or Lengths
        Row norms, ascending; or counts of lengths.
    calibration : Calibration
        Calibration of a setting with a radius search.
    draws : Draws
    """
    values, n = calibration.values, calibration.problem.n
    noise = draws.normal(_OCTAVE_COUNTS + _FINE_COUNTS)
    coarse, fine = noise[:, :_OCTAVE_COUNTS], noise[:, _OCTAVE_COUNTS:]
    octaves = np.broadcast_to(2.0 ** np.arange(-OCTAVES, OCTAVES), (draws.size, 2 * OCTAVES))
    base = climb(lengths, octaves, n / 2, values["octave_std"] * coarse)
    steps = np.arange(2.0**_FINE_COUNTS)
    if values["per_octave"] > 1:
        steps = (steps - _BELOW) / values["per_octave"]
    return climb(lengths, base[:, None] * 2.0**steps, values["rank"], values["fine_std"] * fine)
