"""Gaussian noise after clipping rows at a radius that is itself found privately."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent, greatest_mu_beside
from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import GRID, PER_OCTAVE
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import number
from dpviz.core.parts import GaussianPart, PurePart
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Aim, Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo
from dpviz.mechanisms._clipped import Lengths, longer
from dpviz.sampling.ensembles import goe

_STEPS = 61
_PER_OCTAVE = 4


@dataclass(frozen=True)
class AdaptiveClipGaussian(Mechanism):
    """Release A of rows clipped to length tau, plus a GOE of scale proportional to tau^2.

    Source
    ------
    After AdaptiveCov of Dong, Liang and Yi 2022, "Differentially private covariance revisited",
    which compares noise and clipping error over radii 2^-j by a sparse-vector test. The choice of
    tau by the exponential mechanism, its target and the accounting are dpviz's.

    Notes
    -----
    The target. Clipping at tau moves n A by at most the sum of (|x_i|^2 - tau^2)+ in nuclear norm.
    The noise on n A has the edge m tau^2 with m = sqrt(2 d) D/mu, D = sqrt(2) (replace) or 1
    (zero-out). The sum of noise and clipping error is convex in tau^2, and least where m rows are
    longer than tau. So the best radius is a quantile of the rows' lengths whose rank m is public.

    The choice. tau = R 2^(-j/4), j = 0 .. 60, with odds exp(e_1/2 times -|count_j - m'|), where
    count_j rows are longer than tau. One row, replaced or zeroed, moves each count by at most 1, so
    this exponential mechanism is e_1-private under both relations, and its log ratios range over
    e_1, not over twice that. m' adds 2 ln(61)/e_1 to m: then the radii above every row, of which a
    loose bound has many, together are as unlikely as one that misses by that many ranks. m' is at
    most n/2. Below R the radii are rounded down to 2^(i/8), at which rows are summed in one pass; R
    is not rounded, so a large table whose rows all have that length stays as it is.

    The release. Given tau, the release is a Gaussian mechanism of sensitivity D tau^2/n. Its mu
    does not depend on tau. So one composition covers every tau: the worst choice of range e_1,
    beside this noise (`dpviz.accounting.accounting.Composition`).
    """

    share: float = number(
        0.15, 0.01, 0.9, label="Share for the radius", examples=(0.4,),
        help="Share of epsilon that is used to choose the clipping radius.",
    )  # fmt: skip

    info = MechanismInfo(
        label="Adaptive clipping",
        summary="Finds a clipping radius privately, clips, and adds Gaussian noise to match.",
        paper="dpviz, after Dong, Liang and Yi 2022, AdaptiveCov",
        url="https://arxiv.org/abs/2205.14324",
        family="gaussian",
        release="matrix",
        guarantee="approximate",
        order=26,
        needs_rows=True,
        by_length=True,
        redraws=True,
        timed=True,
        law=r"\hat A = \frac1n \sum_i x_i x_i' \min(1, \tau^2/\|x_i\|^2) + \tau^2 G,\quad"
        r" P(\tau) \propto e^{-\varepsilon_1 |\#\{\|x_i\| > \tau\} - m| / 2}",
        calibration=r"\varepsilon_1 = \text{share} \cdot \varepsilon,\quad"
        r" t = D/(n \mu)\ \text{with}\ \mu\ \text{the most beside}\ \varepsilon_1",
        complexity="n d^2",
        advice="Use it if the row-norm bound is far above most rows. In our measurements it "
        "never keeps a point less than gaussian.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the noise scale at tau = R, and the parameters that choose tau."""
        first = budget.epsilon * self.share
        choice = PurePart(first, "exponential mechanism on the clipping radius", width=first)
        reach = math.sqrt(2) if problem.relation is Relation.REPLACE else 1.0
        # The release uses all the mu that the choice of tau leaves. The factor rounds it down.
        mu = greatest_mu_beside((choice,), budget) * (1 - 1e-15)
        sensitivity = reach * problem.domain.radius**2 / problem.n
        scale = sensitivity / mu
        # m balances noise and clipping error. Its second term makes radii without rows unlikely.
        rank = math.sqrt(2 * problem.d) * reach / mu + 2 * math.log(_STEPS) / first
        values = {"radius_epsilon": first, "rank": min(rank, problem.n / 2), "mu": mu}
        parts = (choice, GaussianPart(sensitivity, scale))
        return Calibration(problem, budget, scale, parts, values)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the noisy moment of the clipped rows; each repetition has its own radius."""
        problem = calibration.problem
        # The radius with the largest log odds plus Gumbel noise is distributed by these odds.
        gumbel = -np.log(draws.exponential(_STEPS))
        chosen = np.argmax(log_odds(data.lengths, calibration) + gumbel, axis=1)
        # Noise is sampled at unit scale, because the radius of each repetition sets its scale.
        matrices = goe(draws, problem.d)
        for step in np.unique(chosen):
            picked = chosen == step
            relative = radii_of(problem)[step] / problem.domain.radius
            matrices[picked] *= calibration.scale * relative**2
            matrices[picked] += _clipped(data, problem, step)
        return Release.of_matrices(matrices, problem.k)

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return `Aim.CLIPPED`: rows clipped at a private radius."""
        return Aim.CLIPPED

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return the moment of rows clipped at the most probable radius."""
        odds = log_odds(data.lengths, self.calibrate(problem, budget))
        clipped = _clipped(data, problem, int(np.argmax(odds)))
        return data if clipped is data.A else SecondMoment(clipped, data.n)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration."""
        return (
            f"The clipping radius costs epsilon {numeral(budget.epsilon * self.share, 3)} "
            "by the exponential mechanism, accounted by its bounded range. The Gaussian "
            "noise, in proportion to the squared radius, uses the rest of the budget."
        )


def radii_of(problem: Problem) -> FloatArray:
    """Return the radii to choose from, descending: R, then 60 on the grid, shape (61,)."""
    last = int(np.searchsorted(GRID, problem.domain.radius, side="right")) - 1
    radii: FloatArray = GRID[last - np.arange(_STEPS) * (PER_OCTAVE // _PER_OCTAVE)]
    radii[0] = problem.domain.radius
    return radii


def _longer(lengths: Lengths, problem: Problem) -> FloatArray:
    """Return how many rows are longer than each radius; no row is longer than R."""
    return np.append(0.0, longer(lengths, radii_of(problem)[1:]))


def log_odds(lengths: Lengths, calibration: Calibration) -> FloatArray:
    """Return the log probability of each radius, given the lengths of the rows, ascending."""
    score = -np.abs(_longer(lengths, calibration.problem) - calibration.values["rank"])
    # One row moves a score up or down by 1, so odds use half of epsilon (McSherry and Talwar 2007).
    odds = 0.5 * calibration.values["radius_epsilon"] * score
    top = odds.max()
    normalised: FloatArray = odds - top - math.log(float(np.exp(odds - top).sum()))
    return normalised


def _clipped(data: SecondMoment, problem: Problem, step: int) -> FloatArray:
    """Return the second moment of the rows, clipped to a radius."""
    if _longer(data.lengths, problem)[step] == 0:
        return data.A
    radius = float(radii_of(problem)[step])
    clipped: FloatArray = data.shortened(radius).A * radius**2
    return clipped
