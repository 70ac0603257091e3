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
    """Hardt and Price's private power method with the published scale.

    Source
    ------
    Hardt and Price 2014, the private power method. The constant of the scale is dpviz's, derived
    and proved below for one entry. The loss for a whole row is bounded from both sides.

    Notes
    -----
    Units. The paper perturbs a matrix of which one entry may change by 1. The matrix here is X'X,
    and one row changes any entry by at most R^2, so its unit is R^2. For A = X'X/n the noise has
    std (R^2/n) s max|Q_ij|, s = sqrt(4 p L ln(1/delta))/epsilon. This reading is dpviz's.

    The constant. One entry and its mirror image move A Q by at most sqrt(2 p) max|Q_ij|, so L steps
    move by sqrt(2 p L) such units; s is sqrt(2 ln(1/delta))/epsilon times this. With t = sqrt(2
    ln(1/delta)) all steps have mu <= epsilon/t for the paper's neighbours. This is enough for
    epsilon <= 2 and delta <= 1/e: let a = t - mu/2, b = t + mu/2 and R be Mills' ratio. As
    e^epsilon phi(b) = phi(a) = delta e^(epsilon/2 - mu^2/8)/sqrt(2 pi), the exact delta is phi(a)
    (R(a) - R(b)). As -R'(x) = 1 - x R(x) <= 1/(1 + x^2), delta is at most

        delta e^(epsilon/2 - mu^2/8) mu/((1 + a^2) sqrt(2 pi)).

    The factor of delta grows with epsilon and falls with t; at epsilon 2 and t = sqrt(2) it is .80.
    For a larger epsilon `NoisyPower.entry_epsilon` returns the loss.

    Rows. A whole row moves every entry. The row moves A Q by up to D = min(sqrt(p), sqrt(2))
    (replace) or 1 (zero-out), in units of R^2/n. The noise shrinks with max|Q_ij|, which may be as
    little as 1/sqrt(d). Hence, for all releases of the steps,

        mu <= D sqrt(L d)/s.

    This bound is nearly reached. Take f = 1/sqrt(d) if p flat orthonormal columns (all entries
    +-1/sqrt(d)) exist, as for p up to the largest power of 2 that divides d. Otherwise take f =
    sqrt(2/d), from a discrete cosine basis. Let nearly all of many rows lie on such columns, in
    numbers that fall off steeply from one column to the next. As n grows the frames after the first
    step tend to these columns. Rows within their span (for p = 1, the column and a row orthogonal
    to it) attain D. So an observer of all steps has mu >= D sqrt(L - 1)/(s f) in the limit.
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
        advice="Use it if only one entry of X'X must be hidden; for whole people use "
        "noisy_power_exact.",
    )

    def auto_columns(self, problem: Problem) -> int:
        """Return k columns, because the published noise grows with the number of columns."""
        return problem.k

    def unit_std(self, problem: Problem, budget: Budget, steps: int) -> float:
        """Return the published noise factor s."""
        spread = 4 * self.width(problem) * steps * -math.log(budget.delta)
        return math.sqrt(spread) / budget.epsilon

    def step_std(self, problem: Problem, budget: Budget, steps: int) -> float:
        """Return s R^2/n, the std before the frame's largest entry multiplies it."""
        return self.unit_std(problem, budget, steps) * problem.domain.radius**2 / problem.n

    def noise_factor(self, frames: FloatArray) -> FloatArray | float:
        """Return the largest absolute entry of each frame."""
        factor: FloatArray = np.abs(frames).max(axis=(1, 2), keepdims=True)
        return factor

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the published scale; the parts assume the flattest possible frame."""
        steps, width = self.length(problem, budget), self.width(problem)
        std = self.step_std(problem, budget, steps)
        # The largest entry of a frame is at least 1/sqrt(d). This gives the least std of the noise.
        flattest = std / math.sqrt(problem.d) * (1 - 1e-15)
        part = GaussianPart(projected_frobenius(problem, width), flattest, attained=False)
        values = {
            "steps": float(steps),
            "columns": float(width),
            "s": self.unit_std(problem, budget, steps),
        }
        return Calibration(problem, budget, std, (part,) * steps, values)

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return a bound on the loss of a whole row, for all frames that the steps may release."""
        bound = accounting.spent(self.calibrate(problem, budget).parts, budget)
        source = f"{bound.source}, at the flattest frame there can be"
        return dataclasses.replace(bound, source=source)

    def entry_epsilon(self, problem: Problem, budget: Budget) -> float:
        """Return the largest loss if one entry of X'X and its mirror image change."""
        steps, width = self.length(problem, budget), self.width(problem)
        return epsilon_of(
            budget.delta, math.sqrt(2 * width * steps) / self.unit_std(problem, budget, steps)
        )

    def reached_epsilon(self, problem: Problem, budget: Budget, *, last_alone: bool) -> float:
        """Return the epsilon that an observer can reach for a row of some large table.

        In a table of many rows the frames hardly move, so the noise of a step is known. Each frame
        is as flat as d allows. Q and the row are the best choices for the observer.

        Parameters
        ----------
        problem : Problem
        budget : Budget
        last_alone : bool
            Whether the observer sees only the last frame, which is released, or every step.

        Notes
        -----
        If A Q stays in the span of Q, the frame of a step Y = A Q + G reveals the part outside that
        span: (I - QQ')(DQ + G), to first order in 1/n. With v half inside, |(I - QQ') vv'Q| is 1/2;
        with v and w equal but for the sign of the part outside, it is 1.
        """
        steps, width = self.length(problem, budget), self.width(problem)
        flat = width <= (problem.d & -problem.d)  # d & -d is the largest power of 2 dividing d.
        factor = math.sqrt((1 if flat else 2) / problem.d)
        std = self.unit_std(problem, budget, steps) * factor
        replaced = problem.relation is Relation.REPLACE
        if steps == 1:  # The first frame is random, so no table attains the bound.
            return 0.0
        if last_alone:
            outside = 1.0 if replaced else 0.5
            return epsilon_of(budget.delta, outside / std)
        row = math.sqrt(min(width, 2)) if replaced else 1.0
        return epsilon_of(budget.delta, row * math.sqrt(steps - 1) / std)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the loss of an entry and of a row, and the loss if every frame is seen."""
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
            f"{entry}; {row}. That proves nothing about the last frame, and only this frame "
            f"is released. In large tables this frame alone reaches {numeral(last, 3)}, and "
            f"an attacker who sees every step reaches {numeral(every, 3)}."
        )
