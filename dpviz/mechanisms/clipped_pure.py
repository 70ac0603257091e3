"""Pure privacy on rows clipped at a private quantile of their lengths: no row-norm bound needed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.knorm import most_apart
from dpviz.accounting.sensitivity import nuclear
from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import numeral
from dpviz.core.params import choice, number
from dpviz.core.parts import PurePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._clipped import (
    OCTAVES,
    Lengths,
    OfClippedRows,
    beyond,
    drawn,
    on_the_sphere,
)
from dpviz.mechanisms._pure import AUTO, LAW_CHOICES, ChosenNoise, PureLaw

_PER_OCTAVE, _FINE = 8, 24
_FEW, _SURE = 1e-3, 6.0  # share of rows and margin at which it is among whole octaves
_FIRST = 0.4  # share of the choices' epsilon that finds the median, at most
_ENOUGH = 60.0  # e1 n above which the median needs no more
_WHOLE = 1_600.0  # n epsilon above which the choices get less than their share
_LOUD = 0.02  # tau above which no quantile pays
_CLEAR = 8.0  # e1 n/4 below which the median is not found
_MARGIN = 1.0  # times ln(24)/e2: radii above every row together must be unlikely
_AGAINST = 3.0  # the power of a radius that its odds fall with, for the same reason
_REASON = "exponential mechanism on the clipping radius"


@dataclass(frozen=True)
class ClippedPure(ChosenNoise, OfClippedRows):
    """r^2 (M + N), M the second moment of rows clipped at r, in units of r^2, and N pure noise.

    Source
    ------
    Ours; the pure twin of `clipped_gaussian`, with the noise of `knorm` or `wishart_difference`.

    Notes
    -----
    The branch. tau is the edge of the noise's spectrum over sqrt(2), as if it had all of epsilon,
    and public. Where it is above .02, or e1 n/4 is below 8, the release is that of
    `spherical_knorm` or `spherical_wishart_difference`: directions, of which no variance can be
    read.

    The radius. N(r) rows are longer than r, and one row moves each N(r) by at most 1, so a radius
    drawn with odds exp(e/2 times a score that falls by 1 for each row by which the counts about r
    miss K) spends e (`dpviz.mechanisms._clipped.log_odds`), and so it does with public weights
    beside them. First the median b among 2^(j/8), j = -256 .. 255, with e1 and K = n/2; then r
    among b 2^(j/8), j = 0 .. 23, with e2, weights r^-3 and K `beyond` times n plus ln(24)/e2, at
    most n/2. Where K with 6 ln(24)/e2 is at most n/1000 it is among b 2^j with that instead: so as
    epsilon grows the radius passes every row, and the release tends to the full second moment.
    e1 + e2 is the share of epsilon, times sqrt(1600/(n epsilon)) where that is below 1: enough
    rows are counted well with less. e1 is .4 of it, at most 60/n.

    The release. Given r, M moves by at most 2/n (replace) or 1/n (zero-out) in nuclear norm,
    whatever r is (`dpviz.mechanisms._clipped`), and the log density ratio of either noise is at
    most the nuclear norm over its scale s (`dpviz.mechanisms._pure`). Pure epsilons add, also where
    a step depends on those before it: e1 + e2 + nuclear/s = epsilon.
    """

    share: float = number(
        0.15,
        0.01,
        0.5,
        label="Share for the radius",
        help="Share of epsilon used to choose the clipping radius, at an n epsilon up to 1,600. "
        "Beyond, it falls with the root of n epsilon.",
        slider=(0.05, 0.4),
        examples=(0.4,),
    )
    noise: str = choice(
        AUTO,
        LAW_CHOICES,
        label="Noise",
        help="Which pure noise the moment gets. K-norm noise is a tenth less and slower to draw.",
        examples=(PureLaw.WISHART, PureLaw.KNORM),
    )

    info = MechanismInfo(
        label="Clipped K-norm",
        summary="Finds a radius privately, clips rows to it, and adds pure noise to match; by "
        "directions alone where noise is large.",
        paper="dpviz",
        family="wishart",
        release="subspace",
        guarantee="pure",
        order=32,
        needs_rows=True,
        featured=True,
        highlight=3,
        by_length=True,
        timed=True,
        law=r"\hat A = r^2 \left(\frac1n \sum_i \min\left(1, \frac{\|x_i\|^2}{r^2}\right)"
        r" \frac{x_i x_i'}{\|x_i\|^2} + N\right),\quad f(N) \propto e^{-\|N\|_{\mathrm{nuc}}/s}",
        calibration=r"s = \frac{D_{\mathrm{nuc}}}{n (\varepsilon - \varepsilon_1 -"
        r" \varepsilon_2)},\quad P(r) \propto r^{-3}"
        r" e^{-\varepsilon_2 |\#\{\|x_i\| > r\} - n q(\tau, d)| / 2}",
        complexity="n d^2 + d^4",
        advice="The default under pure privacy if rows are available: no row-norm bound is needed.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the noise scale in units of r^2 and, where r is sought, what chooses it."""
        sensitivity = nuclear(on_the_sphere(problem))
        d, n, whole = problem.d, problem.n, budget.epsilon
        tau = self.law(d).edge(d) * sensitivity / whole / math.sqrt(2)
        choosing = self.share * min(1.0, math.sqrt(_WHOLE / (n * whole))) * whole
        first = min(_FIRST * choosing, _ENOUGH / n)
        second = choosing - first
        sought = tau <= _LOUD and first * n / 4 >= _CLEAR
        remaining = whole - (first + second) if sought else whole
        scale = math.nextafter(sensitivity / remaining, math.inf)
        noise = PurePart(
            sensitivity / scale,
            "log density ratio is at most the nuclear norm over the scale",
            attained=False,  # beside two choices, or of a subspace alone
        )
        if not sought:
            if self.law(d) is PureLaw.KNORM:
                noise = replace(noise, apart=most_apart(d, whole, problem.relation))
            return Calibration(problem, budget, scale, (noise,), {"tau": tau})
        choices = (PurePart(first, _REASON, width=first), PurePart(second, _REASON, width=second))
        least, each = beyond(tau, d) * n, math.log(_FINE) / second
        sure = least + _SURE * each
        per_octave = _PER_OCTAVE if sure > _FEW * n else 1
        values = {
            "tau": tau,
            "median_epsilon": first,
            "radius_epsilon": second,
            "rank": sure if per_octave == 1 else min(n / 2, least + _MARGIN * each),
            "per_octave": per_octave,
        }
        return Calibration(problem, budget, scale, (*choices, noise), values)

    def noise_of(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return noise at unit scale, shape (size, d, d)."""
        return self.law(problem.d).draw(draws, problem.d)

    def radii(self, lengths: Lengths, calibration: Calibration, draws: Draws) -> FloatArray:
        """Return the radius that each draw finds, shape (size,)."""
        return radii_of(lengths, calibration, draws.uniform(2))

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of w'Nw for unit w, in units of r^2."""
        d = calibration.problem.d
        return self.law(d).direction_std(d) * calibration.scale

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 4: the least regret if rows are available."""
        return 4.0

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the proof in one sentence."""
        if self.releases(problem, budget) == "subspace":
            return (
                "Proved: noise is too large here for a clipping radius to pay, so every row is "
                "scaled to length one, and the log density ratio is at most the nuclear norm that "
                "one such row moves over the scale."
            )
        values = self.calibrate(problem, budget).values
        cost = (values["median_epsilon"] + values["radius_epsilon"]) / budget.epsilon
        return (
            "Proved: two choices of a radius by the exponential mechanism cost "
            f"{numeral(cost, 3)} of epsilon; a clipped row moves the moment by a known nuclear "
            "norm whatever they are, and the log density ratio is at most that over the scale."
        )


def radii_of(lengths: Lengths, calibration: Calibration, chances: FloatArray) -> FloatArray:
    """Return the radius that each draw chooses, shape (size,).

    Parameters
    ----------
    lengths : ndarray of shape (n,) or Lengths
        Ascending; or counts of them.
    calibration : Calibration
        Of a setting in which a radius is sought.
    chances : ndarray of shape (size, 2)
        Uniform on [0, 1).
    """
    values, n = calibration.values, calibration.problem.n
    medians = 2.0 ** (np.arange(-OCTAVES * _PER_OCTAVE, OCTAVES * _PER_OCTAVE) / _PER_OCTAVE)
    base = drawn(lengths, medians, n / 2, values["median_epsilon"], chances[:, 0])
    steps = 2.0 ** (np.arange(_FINE) / values["per_octave"])
    radii = np.empty(len(base))
    for median in np.unique(base):
        at_median = base == median
        radii[at_median] = drawn(
            lengths, median * steps, values["rank"], values["radius_epsilon"],
            chances[at_median, 1],
            against=_AGAINST,
        )  # fmt: skip
    return radii
