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
_FEW, _SURE = 1e-3, 6.0  # Share of rows below which radii are whole octaves, and their margin.
_FIRST = 0.4  # Largest share of both choices' epsilon for the choice of the median.
_ENOUGH = 60.0  # Epsilon of the first choice times n that is enough to find the median.
_WHOLE = 1_600.0  # Value of n epsilon above which the choices of a radius get a smaller share.
_LOUD = 0.02  # Largest tau at which a quantile of the row lengths still helps.
_CLEAR = 8.0  # Least epsilon times n/4 of the first choice with which the median is found.
_MARGIN = 1.0  # Factor on ln(24)/e2 that makes a radius above every row unlikely.
_AGAINST = 3.0  # Power of a radius by which its odds fall: one above every row becomes unlikely.
_REASON = "exponential mechanism on the clipping radius"


@dataclass(frozen=True)
class ClippedPure(ChosenNoise, OfClippedRows):
    """Release r^2 (M + N): M the moment of rows clipped at r, in units of r^2, and N pure noise.

    Source
    ------
    Ours, the pure twin of `clipped_gaussian`, with the noise of `knorm` or `wishart_difference`.

    Notes
    -----
    The branch. tau is public: the edge of the noise's spectrum over sqrt(2), as if the noise had
    all of epsilon. If tau is above .02, or e1 n/4 is below 8, the release is the same as in
    `spherical_knorm` or `spherical_wishart_difference`: directions, which show no variance.

    The radius. N(r) rows are longer than r, and one row moves each N(r) by at most 1. A radius has
    odds exp(e/2 times a score). The score falls by 1 for each row by which the counts about r miss
    K. So the choice uses e, also with public weights (`dpviz.mechanisms._clipped.log_odds`). The
    first choice is the median b among 2^(j/8), j = -256 .. 255, with e1 and K = n/2. The second is
    r among b 2^(j/8), j = 0 .. 23, with e2, weights r^-3 and K = `beyond` times n plus ln(24)/e2,
    at most n/2. If `beyond` times n plus 6 ln(24)/e2 is at most n/1000, this sum is K, and r is
    among b 2^j. So as epsilon grows the radius passes every row, and the release tends to the full
    second moment. e1 + e2 is the share of epsilon, times sqrt(1600/(n epsilon)) if that is below 1:
    many rows need less. e1 is .4 of e1 + e2, at most 60/n.

    The release. Given r, M moves by at most 2/n (replace) or 1/n (zero-out) in nuclear norm, for
    every r (`dpviz.mechanisms._clipped`). The log density ratio of either noise is at most the
    nuclear norm over its scale s (`dpviz.mechanisms._pure`). Pure epsilons add, also if a step
    depends on earlier steps: e1 + e2 + nuclear/s = epsilon.
    """

    share: float = number(
        0.15,
        0.01,
        0.5,
        label="Share for the radius",
        help="Share of epsilon used to choose the clipping radius, if n times epsilon is at most "
        "1,600. Above 1,600, the share falls with the root of n times epsilon.",
        slider=(0.05, 0.4),
        examples=(0.4,),
    )
    noise: str = choice(
        AUTO,
        LAW_CHOICES,
        label="Noise",
        help="Kind of pure noise on the second moment. K-norm noise is smaller by a tenth and "
        "slower to sample.",
        examples=(PureLaw.WISHART, PureLaw.KNORM),
    )

    info = MechanismInfo(
        label="Clipped K-norm",
        summary="Finds a radius privately, clips rows to it, and adds pure noise to match. "
        "If noise is large, it uses the rows' directions alone.",
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
        """Return the noise scale in units of r^2 and, if r is searched, the search's parameters."""
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
            attained=False,  # With two choices, or for a subspace, the bound is not attained.
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
        """Return the radius found in each repetition, shape (size,)."""
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
                "Proved: noise is too large here for a clipping radius to help, so every "
                "row is scaled to length one. The log density ratio is at most the change "
                "by one such row in nuclear norm, divided by the scale."
            )
        values = self.calibrate(problem, budget).values
        cost = (values["median_epsilon"] + values["radius_epsilon"]) / budget.epsilon
        return (
            "Proved: two choices of a radius by the exponential mechanism cost "
            f"{numeral(cost, 3)} of epsilon. For every radius, a clipped row moves the "
            "moment by at most a known nuclear norm, and the log density ratio is at most "
            "this norm divided by the scale."
        )


def radii_of(lengths: Lengths, calibration: Calibration, chances: FloatArray) -> FloatArray:
    """Return the radius chosen in each repetition, shape (size,).

    Parameters
    ----------
    lengths : ndarray of shape (n,) or Lengths
        Row norms, ascending; or counts of lengths.
    calibration : Calibration
        Calibration of a setting with a radius search.
    chances : ndarray of shape (size, 2)
        Uniform numbers on [0, 1).
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
