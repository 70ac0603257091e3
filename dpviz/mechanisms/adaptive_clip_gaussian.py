"""Gaussian noise after clipping rows at a radius that is itself found privately."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent, greatest_mu_beside
from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import InBlocks, symmetric_mean
from dpviz.core.moments import SecondMoment
from dpviz.core.number_text import numeral
from dpviz.core.params import number
from dpviz.core.parts import GaussianPart, PurePart
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Aim, Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism, MechanismInfo
from dpviz.sampling.ensembles import goe

_STEPS = 61
_PER_OCTAVE = 4


@dataclass(frozen=True)
class AdaptiveClipGaussian(Mechanism):
    """A of the rows clipped to length tau, plus a GOE of scale proportional to tau^2.

    Source
    ------
    After AdaptiveCov of Dong, Liang and Yi 2022, "Differentially private covariance revisited",
    which compares noise and clipping error over radii 2^-j by a sparse-vector test. The choice of
    tau by the exponential mechanism, its target and the account are ours.

    Notes
    -----
    The target. Clipping at tau moves n A by at most the sum of (|x_i|^2 - tau^2)+ in nuclear norm,
    and the noise on n A has the edge m tau^2, m = sqrt(2 d) D/mu, with D = sqrt(2) (replace) or 1
    (zero-out). Their sum is convex in tau^2 and least where m rows are longer than tau. So the
    best radius is a quantile of the rows' lengths whose rank m is public.

    The choice. tau = R 2^(-j/4), j = 0 .. 60, with odds exp(e_1/2 times -|count_j - m'|), where
    count_j rows are longer than tau. One row, replaced or zeroed, moves each count by at most 1,
    so this exponential mechanism is e_1-private under both relations, and its log ratios range
    over e_1, not over twice that. m' adds 2 ln(61)/e_1 to m: then the radii above every row, of
    which a loose bound has many, together are as unlikely as one that misses by that many ranks.
    It is at most n/2.

    The release. Given tau, a Gaussian mechanism of sensitivity D tau^2/n: mu does not depend on
    tau, so it stands beside the choice in one account, whatever tau came out: the worst range of
    e_1 there is, beside that noise (`dpviz.accounting.accounting.Composition`).
    """

    share: float = number(
        0.15,
        0.01,
        0.9,
        label="Share for the radius",
        help="Share of epsilon spent on choosing the clipping radius.",
        examples=(0.4,),
    )

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
        redraws=True,
        timed=True,
        law=r"\hat A = \frac1n \sum_i x_i x_i' \min(1, \tau^2/\|x_i\|^2) + \tau^2 G,\quad"
        r" P(\tau) \propto e^{-\varepsilon_1 |\#\{\|x_i\| > \tau\} - m| / 2}",
        calibration=r"\varepsilon_1 = \text{share} \cdot \varepsilon,\quad"
        r" t = D/(n \mu)\ \text{with}\ \mu\ \text{the most beside}\ \varepsilon_1",
        complexity="n d^2",
        advice="Where the row bound is far above most rows: measured, never behind "
        "gaussian by a point.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the noise scale at tau = R, and what chooses tau."""
        first = budget.epsilon * self.share
        choice = PurePart(first, "exponential mechanism on the clipping radius", width=first)
        reach = math.sqrt(2) if problem.relation is Relation.REPLACE else 1.0
        # the choice's range first, then all the mu that it leaves; one rounding to the safe side
        mu = greatest_mu_beside((choice,), budget) * (1 - 1e-15)
        sensitivity = reach * problem.domain.radius**2 / problem.n
        scale = sensitivity / mu
        # m, where noise and clipping error balance, and what keeps empty radii unlikely (Notes)
        rank = math.sqrt(2 * problem.d) * reach / mu + 2 * math.log(_STEPS) / first
        values = {"radius_epsilon": first, "rank": min(rank, problem.n / 2), "mu": mu}
        parts = (choice, GaussianPart(sensitivity, scale))
        return Calibration(problem, budget, scale, parts, values)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the noisy moment of the clipped rows, each draw at a radius of its own."""
        assert data.rows is not None
        problem = calibration.problem
        lengths = _lengths_of(data.rows)
        radii = radii_of(problem)
        # the largest of log odds + Gumbel noise follows those odds
        gumbel = -np.log(draws.exponential(_STEPS))
        chosen = np.argmax(log_odds(lengths, calibration) + gumbel, axis=1)
        # at unit scale first: each draw's noise then has the scale of the radius that it chose
        matrices = goe(draws, problem.d)
        for step in np.unique(chosen):
            picked = chosen == step
            relative = radii[step] / problem.domain.radius
            matrices[picked] *= calibration.scale * relative**2
            matrices[picked] += _clipped(data, lengths, float(radii[step])).A
        return Release.of_matrices(matrices, problem.k)

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return rows clipped at a radius found privately."""
        return Aim.CLIPPED

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return the moment of rows clipped at the likeliest radius."""
        assert data.rows is not None
        lengths = _lengths_of(data.rows)
        calibration = self.calibrate(problem, budget)
        likeliest = int(np.argmax(log_odds(lengths, calibration)))
        radius = float(radii_of(problem)[likeliest])
        return _clipped(data, lengths, radius)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return what the calibration rests on."""
        return (
            f"The clipping radius costs epsilon {numeral(budget.epsilon * self.share, 3)} by the "
            "exponential mechanism, of which the bounded range counts; the Gaussian noise, in "
            "proportion to the squared radius, takes all that this leaves."
        )


def radii_of(problem: Problem) -> FloatArray:
    """Return the radii to choose from, descending from R, shape (61,)."""
    radii: FloatArray = problem.domain.radius * 2.0 ** (-np.arange(_STEPS) / _PER_OCTAVE)
    return radii


def log_odds(lengths: FloatArray, calibration: Calibration) -> FloatArray:
    """Return the log probability of each radius, given the lengths of the rows."""
    radii = radii_of(calibration.problem)
    longer = len(lengths) - np.searchsorted(np.sort(lengths), radii, side="right")
    score = -np.abs(longer - calibration.values["rank"])
    # McSherry and Talwar 2007: the score moves by at most 1, so half of epsilon for each side
    odds = 0.5 * calibration.values["radius_epsilon"] * score
    top = odds.max()
    normalised: FloatArray = odds - top - math.log(float(np.exp(odds - top).sum()))
    return normalised


def _clipped(data: SecondMoment, lengths: FloatArray, radius: float) -> SecondMoment:
    """Return `clipped_moment`, kept: draws at every epsilon ask for the same few radii."""
    return data.remembered(("clipped", radius), lambda: clipped_moment(data, lengths, radius))


def clipped_moment(data: SecondMoment, lengths: FloatArray, radius: float) -> FloatArray:
    """Return the second moment of the rows, those longer than the radius shortened to it."""
    assert data.rows is not None
    if not (lengths > radius).any():
        return data.A
    # a rounding to the safe side: no clipped row is longer than the radius
    room = 1 + 4 * np.finfo(np.float64).eps
    shrink = np.where(lengths > radius, radius / np.maximum(lengths * room, radius), 1.0)
    products = np.zeros((data.d, data.d))
    for start, block in InBlocks(data.rows).blocks():
        rows = block * shrink[start : start + len(block), None]
        products += rows.T @ rows
    return symmetric_mean(products, data.n)


def _lengths_of(rows: FloatArray) -> FloatArray:
    squares = [np.square(block).sum(axis=1) for _, block in InBlocks(rows).blocks()]
    lengths: FloatArray = np.sqrt(np.concatenate(squares))
    return lengths
