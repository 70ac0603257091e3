"""The noisy power method with the published scale."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting import accounting
from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import epsilon_of
from dpviz.accounting.sensitivity import projected_frobenius
from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import numeral
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem, Relation
from dpviz.core.release import Calibration
from dpviz.mechanisms._base import MechanismInfo, claimed_against_spent, paper
from dpviz.mechanisms._power import PowerMethod


@dataclass(frozen=True)
class NoisyPower(PowerMethod):
    """Hardt and Price's private power method, its scale as published.

    Source
    ------
    Hardt and Price 2014, the private power method. The constant of the scale is ours: it is derived
    and proved below for one entry, and what a whole row spends is bounded from both sides.

    Notes
    -----
    Units. The paper perturbs a matrix of which one entry may change by 1. The matrix here is X'X,
    and one row changes any one of its entries by at most R^2; so its unit is R^2, and for A = X'X/n
    the noise has std (R^2/n) s max|Q_ij|, s = sqrt(4 p L ln(1/delta))/epsilon. This reading is
    ours.

    The constant. One entry and its mirror image move A Q by at most sqrt(2 p) max|Q_ij|, so L steps
    move by sqrt(2 p L) such units, and sqrt(2 ln(1/delta))/epsilon times that is s. With
    t = sqrt(2 ln(1/delta)) all steps have mu <= epsilon/t for the paper's neighbours, which is
    enough for epsilon <= 2 and delta <= 1/e: let a = t - mu/2, b = t + mu/2 and R be Mills' ratio.
    As e^epsilon phi(b) = phi(a) = delta e^(epsilon/2 - mu^2/8)/sqrt(2 pi), the exact delta is
    phi(a) (R(a) - R(b)), and as -R'(x) = 1 - x R(x) <= 1/(1 + x^2), at most

        delta e^(epsilon/2 - mu^2/8) mu/((1 + a^2) sqrt(2 pi)).

    That factor of delta grows with epsilon and falls with t; at epsilon 2 and t sqrt(2) it is .80.
    For a larger epsilon `NoisyPower.entry_epsilon` says what is spent.

    Rows. A whole row moves every entry. It moves A Q by up to D = min(sqrt(p), sqrt(2)) (replace)
    or 1 (zero-out), in units of R^2/n, while the noise shrinks with max|Q_ij|, which may be as
    little as 1/sqrt(d). Hence, whatever the steps release,

        mu <= D sqrt(L d)/s.

    This is nearly reached. Take f = 1/sqrt(d) where p flat orthonormal columns (all entries
    +-1/sqrt(d)) exist, as for p up to the largest power of 2 that divides d, and f = sqrt(2/d)
    otherwise, from a discrete cosine basis. Let nearly all of many rows lie on such columns, in
    numbers that fall off steeply from one to the next. As n grows the frames after the first step
    tend to these columns, and rows within their span (for p = 1, the column and a row orthogonal
    to it) attain D: so an observer of all steps has mu >= D sqrt(L - 1)/(s f) in the limit.
    """

    info = MechanismInfo(
        label="Noisy power",
        summary="Power iteration with Gaussian noise at every step, scaled for changed entries.",
        paper="Hardt and Price 2014, private power method (our constant, proved here for entries)",
        references=(
            paper(
                "Hardt2014",
                "Hardt, Moritz and Price, Eric",
                "The Noisy Power Method: A Meta Algorithm with Applications",
                "Advances in Neural Information Processing Systems 27",
                2014,
                eprint="1311.2495",
            ),
        ),
        url="https://arxiv.org/abs/1311.2495",
        family="iterative",
        release="subspace",
        guarantee="approximate",
        order=12,
        redraws=True,
        law=r"Y_\ell = A Q_{\ell-1} + G_\ell,\quad"
        r" G_\ell \sim N\left(0, (s R^2/n)^2 \|Q_{\ell-1}\|_{\max}^2\right),\quad"
        r" Q_\ell = \mathrm{qr}(Y_\ell)",
        calibration=r"s = \sqrt{4 p L \ln(1/\delta)}/\varepsilon",
        complexity="L d^2 p",
        advice="For tables where one entry of X'X is what must be hidden; for whole people use "
        "noisy_power_exact.",
    )

    def auto_columns(self, problem: Problem) -> int:
        """Return k columns: the published noise grows with them."""
        return problem.k

    def unit_std(self, problem: Problem, budget: Budget, steps: int) -> float:
        """Return the published s."""
        # 4 p L ln(1/delta), and its root over epsilon
        spread = 4 * self.width(problem) * steps * -math.log(budget.delta)
        return math.sqrt(spread) / budget.epsilon

    def step_std(self, problem: Problem, budget: Budget, steps: int) -> float:
        """Return s R^2/n, before the frame's largest entry multiplies it."""
        return self.unit_std(problem, budget, steps) * problem.domain.radius**2 / problem.n

    def noise_factor(self, frames: FloatArray) -> FloatArray | float:
        """Return the largest entry, in size, of each frame."""
        factor: FloatArray = np.abs(frames).max(axis=(1, 2), keepdims=True)
        return factor

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the published scale; the parts take the flattest frame there can be."""
        steps, width = self.length(problem, budget), self.width(problem)
        std = self.step_std(problem, budget, steps)
        # max|Q_ij| is at least 1/sqrt(d): the least noise that any frame brings; one rounding below
        flattest = std / math.sqrt(problem.d) * (1 - 1e-15)
        part = GaussianPart(projected_frobenius(problem, width), flattest, attained=False)
        values = {
            "steps": float(steps),
            "columns": float(width),
            "s": self.unit_std(problem, budget, steps),
        }
        return Calibration(problem, budget, std, (part,) * steps, values)

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return a bound for whole rows, whatever frames the steps release."""
        bound = accounting.spent(self.calibrate(problem, budget).parts, budget)
        source = f"{bound.source}, at the flattest frame there can be"
        return dataclasses.replace(bound, source=source)

    def entry_epsilon(self, problem: Problem, budget: Budget) -> float:
        """Return the most that is spent when one entry of X'X and its mirror image change."""
        steps, width = self.length(problem, budget), self.width(problem)
        return epsilon_of(
            budget.delta, math.sqrt(2 * width * steps) / self.unit_std(problem, budget, steps)
        )

    def reached_epsilon(self, problem: Problem, budget: Budget, *, last_alone: bool) -> float:
        """Return what an observer can learn of a row of some large table.

        In a table of many rows the frames hardly move, so the noise of a step is known; each is
        as flat as d allows. Q and the row are chosen as the observer likes best.

        Parameters
        ----------
        problem : Problem
        budget : Budget
        last_alone : bool
            Whether only the last frame is seen, which is what is released; otherwise every step.

        Notes
        -----
        Of a step Y = A Q + G whose A Q stays in the span of Q, the frame tells what is outside
        that span: (I - QQ')(DQ + G), to first order in 1/n. With v half inside, |(I - QQ') vv'Q|
        is 1/2; with v and w equal but for the sign of the part outside, it is 1.
        """
        steps, width = self.length(problem, budget), self.width(problem)
        flat = width <= (problem.d & -problem.d)  # the largest power of 2 that divides d
        factor = math.sqrt((1 if flat else 2) / problem.d)
        std = self.unit_std(problem, budget, steps) * factor
        replaced = problem.relation is Relation.REPLACE
        if steps == 1:  # the start is random: no table is made for it
            return 0.0
        if last_alone:
            outside = 1.0 if replaced else 0.5
            return epsilon_of(budget.delta, outside / std)
        row = math.sqrt(min(width, 2)) if replaced else 1.0
        return epsilon_of(budget.delta, row * math.sqrt(steps - 1) / std)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the cost of an entry, and the cost of a row whichever frames are seen."""
        assert spent is not None
        entry = (
            "Promised for tables where one entry of X'X changes, which spends at most epsilon "
            f"{numeral(self.entry_epsilon(problem, budget), 3)}"
        )
        verb = "replacing" if problem.relation is Relation.REPLACE else "zeroing"
        row = f"over all steps {verb} a whole row spends {claimed_against_spent(budget, spent)}"
        if spent.epsilon <= budget.epsilon:
            return f"{entry}; {row}."
        last = self.reached_epsilon(problem, budget, last_alone=True)
        every = self.reached_epsilon(problem, budget, last_alone=False)
        return (
            f"{entry}; {row}, which proves nothing of the last frame, the only one released. In "
            f"large tables that frame alone reaches {numeral(last, 3)}, and whoever sees every "
            f"step reaches {numeral(every, 3)}."
        )
