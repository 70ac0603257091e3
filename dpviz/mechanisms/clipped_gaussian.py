"""Gaussian noise on rows clipped at a private quantile of their lengths: no row bound needed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpviz.accounting.accounting import Spent, greatest_mu_beside
from dpviz.accounting.gaussian import mu_of, noise_std
from dpviz.accounting.sensitivity import frobenius
from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import at_rank
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import number
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Aim, Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._quantiles import OCTAVES, Lengths, beyond, climb
from dpviz.mechanisms._sphere import on_the_sphere
from dpviz.mechanisms._weighing import Weighing
from dpviz.sampling.goe import goe

_OCTAVE_COUNTS = 6  # 2^6 octaves
_FINE_COUNTS, _PER_OCTAVE, _BELOW = 4, 4, 3  # 2^4 radii, from 3/4 octave below
_FEW, _SURE = 1e-3, 5.0  # share of rows and margin at which it takes whole octaves
_FIRST = 0.3  # share of the counts' squared mu that finds the octave of the median
_LOUD = 0.04  # tau above which no quantile pays
_CLEAR = 3.0  # standard deviations of a count that half of the rows must be
_MARGIN = 1.5  # standard deviations: without it noise at empty radii lifts the radius for ever


@dataclass(frozen=True)
class ClippedGaussian(Weighing):
    """r^2 (M + G), M the second moment of rows clipped at r, in units of r^2, and G a GOE.

    Source
    ------
    Ours. Clipping to a noisy quantile is old; that spherical PCA is its limit, and which quantile
    pays for PCA at a noise level, was measured (docs/defaults.md).

    Notes
    -----
    The branch. tau = D sqrt(d)/(n mu), with D = sqrt(2) (replace) or 1 (zero-out) and mu that of
    the budget, is public. Where it is above .04, or half of the rows are fewer than three standard
    deviations of the counts below, no quantile is worth its price: the release is that of
    `spherical`, the second moment of directions, of which no variance can be read.

    The radius. N(r) rows are longer than r. Six noisy counts walk down a binary search over the
    octaves 2^-32 to 2^31, up while N(r) + s1 Z > n/2, to an octave b about the median. Four more
    search b 2^((j-3)/4), j = 0 .. 15, up while N(r) + s2 Z > K, where K is `beyond` times n plus
    1.5 s2, at most n/2. Where K with 5 s2 is at most n/1000 they search b 2^j with that instead: so
    as epsilon grows the radius passes every row, and the release tends to the full second moment.

    The account. Given the answers before it, each count is asked at a radius that depends on them
    alone, and one row moves it by at most 1. Given r, a row enters M as a uu' with unit u and
    0 <= a <= 1, a function of that row: M moves by at most D/n in the Frobenius norm, whatever r
    is (`dpviz.mechanisms._sphere`). Gaussian steps compose adaptively to the sum of their squared
    mu, exactly (Dong, Roth and Su 2022): 6/s1^2 + 4/s2^2 = share mu^2, and the noise on M has the
    rest. Everything else is post-processing: the radius itself may be released, and is.

    The account is a bound: of the noisy counts only the radius is released, and under replace the
    rows that move M by sqrt(2) are both as long as r, so that counts below r stand still.
    """

    share: float = number(
        0.05,
        0.005,
        0.5,
        label="Share for the radius",
        help="Share of the squared mu that is spent on finding the clipping radius.",
        slider=(0.01, 0.3),
        examples=(0.2,),
    )

    info = MechanismInfo(
        label="Clipped Gaussian",
        summary="Finds a radius privately, clips rows to it, and adds Gaussian noise to match; "
        "by directions alone where noise is large.",
        paper="dpviz",
        family="gaussian",
        release="subspace",
        guarantee="approximate",
        slot=31,
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
        advice="The default with a delta wherever rows are at hand: no row bound has to be known.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the noise scale in units of r^2 and, where r is sought, the noise of counts."""
        sensitivity = frobenius(on_the_sphere(problem))
        mu = mu_of(budget)
        tau = sensitivity * math.sqrt(problem.d) / mu
        octave_std = math.sqrt(_OCTAVE_COUNTS / (_FIRST * self.share)) / mu
        fine_std = math.sqrt(_FINE_COUNTS / ((1 - _FIRST) * self.share)) / mu
        if tau > _LOUD or problem.n / 2 < _CLEAR * octave_std:
            scale = math.nextafter(sensitivity * noise_std(budget), math.inf)
            alone = GaussianPart(sensitivity, scale, attained=False)  # the subspace alone
            return Calibration(problem, budget, scale, (alone,), {"tau": tau})
        octave = GaussianPart(1.0, octave_std, attained=False)  # the radius alone is released
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

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the noisy moment of clipped rows with its radius, or of directions alone."""
        k, rows = calibration.problem.k, data.lengths
        # drawn first, so that both branches add the same noise
        matrices = goe(draws, calibration.problem.d)
        matrices *= calibration.scale
        if "rank" not in calibration.values:
            matrices += rows.moment(None)
            return Release(matrices, self.of_matrices(matrices, calibration).components)
        radii = radii_of(rows, calibration, draws)
        for radius in np.unique(radii):
            matrices[radii == radius] += rows.moment(float(radius))
        estimate = matrices * np.square(radii)[:, None, None]
        release = replace(Release.of_matrices(estimate, k, raw=matrices), radius=radii)
        return self.weighed(release, calibration) if self.weighs else release

    def public_total(self, calibration: Calibration) -> float | None:
        """Return 1 where every row has length one, None where rows are clipped."""
        return None if "rank" in calibration.values else 1.0

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of w'Gw for unit w, in units of r^2."""
        return calibration.scale

    @property
    def needs_row_bound(self) -> bool:
        """No: a row enters as a unit vector times a number from 0 to 1."""
        return False

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 3: the least regret where rows are at hand."""
        return 3.0

    def releases(self, problem: Problem, budget: Budget) -> str:
        """Return matrix where a radius is sought, subspace elsewhere."""
        sought = "rank" in self.calibrate(problem, budget).values
        return "matrix" if sought else "subspace"

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return clipped rows where a radius is sought, directions elsewhere."""
        sought = "rank" in self.calibrate(problem, budget).values
        return Aim.CLIPPED if sought else Aim.DIRECTIONS

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return the moment of rows clipped at the rank sought, or of directions."""
        rows, values = data.lengths, self.calibrate(problem, budget).values
        radius = at_rank(rows, values["rank"]) if "rank" in values else None
        return SecondMoment(rows.moment(radius), data.n)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return what the calibration rests on."""
        if self.releases(problem, budget) == "subspace":
            return (
                "Noise is too large here for a clipping radius to pay: every row is scaled to "
                "length one, which bounds what one person moves, and the exact Gaussian profile "
                "sets the noise."
            )
        return (
            f"Ten noisy counts of long rows cost {numeral(self.share, 3)} of the squared mu; a "
            "clipped row moves the moment by a known amount whatever they answer, and adaptive "
            "Gaussian steps compose exactly."
        )


def radii_of(lengths: Lengths, calibration: Calibration, draws: Draws) -> FloatArray:
    """Return the radius that each draw finds, shape (size,).

    Parameters
    ----------
    lengths : ndarray of shape (n,) or Lengths
        Ascending; or counts of them.
    calibration : Calibration
        Of a setting in which a radius is sought.
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
