"""Noisy power method with exact accounting of a changed row."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

from dpviz.accounting import accounting
from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.sensitivity import projected_frobenius
from dpviz.core.arrays import FloatArray
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._power import PowerMethod


@dataclass(frozen=True)
class NoisyPowerExact(PowerMethod):
    """The noisy power method with noise that does not depend on the frame.

    Notes
    -----
    A changed row moves A Q by at most min(sqrt(p), sqrt(2)) R^2/n in Frobenius norm under replace
    and R^2/n under zero-out, for every orthonormal Q (`projected_frobenius`). So L adaptive steps
    of std s, if an observer sees all of them, are one Gaussian mechanism with mu = D sqrt(L)/s.
    Anyone who sees only the last frame learns less. From two columns on, more columns use no more
    budget, so the frame is wider than k by default.
    """

    info = MechanismInfo(
        label="Noisy power, exact",
        summary="Power iteration with Gaussian noise at every step, accounted for whole rows.",
        paper="dpviz, after Hardt and Price 2014",
        url="https://arxiv.org/abs/1311.2495",
        family="iterative",
        release="subspace",
        guarantee="approximate",
        order=13,
        redraws=True,
        law=r"Y_\ell = A Q_{\ell-1} + G_\ell,\quad G_\ell \sim N(0, s^2)\ \text{i.i.d.},\quad"
        r" Q_\ell = \mathrm{qr}(Y_\ell)",
        calibration=(
            r"s = D \sqrt{L}\, g(\varepsilon, \delta),\quad D = \min(\sqrt p, \sqrt 2) R^2/n"
            r"\ (\text{replace}),\ R^2/n\ (\text{zero-out})"
        ),
        complexity="L d^2 p",
        advice="Use it if d is too large for a noisy matrix; otherwise gaussian does better.",
    )

    def auto_columns(self, problem: Problem) -> int:
        """Return 4 k + 8 columns, at most d."""
        # The sensitivity D stops growing at two columns, so further columns add no noise.
        return min(problem.d, 4 * problem.k + 8)

    def step_std(self, problem: Problem, budget: Budget, steps: int) -> float:
        """Return D sqrt(L) g(epsilon, delta)."""
        sensitivity = projected_frobenius(problem, self.width(problem))
        std = sensitivity * math.sqrt(steps) * noise_std(budget)
        return std * (1 + 1e-15 * steps)  # The factor allows for rounding in the sum of squares.

    def noise_factor(self, frames: FloatArray) -> FloatArray | float:
        """Return 1: the noise does not depend on the frame."""
        return 1.0

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the least std that meets the budget over all steps."""
        steps, width = self.length(problem, budget), self.width(problem)
        std = self.step_std(problem, budget, steps)
        # Only the last frame is released, so the accounted loss is not attained.
        part = GaussianPart(projected_frobenius(problem, width), std, attained=False)
        values = {"steps": float(steps), "columns": float(width)}
        return Calibration(problem, budget, std, (part,) * steps, values)

    def spent(self, problem: Problem, budget: Budget) -> Spent | None:
        """Return a bound that counts every step as released, though only the last frame is."""
        bound = accounting.spent(self.calibrate(problem, budget).parts, budget)
        source = f"{bound.source}, all counted as released"
        return dataclasses.replace(bound, source=source)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration."""
        steps, width = self.length(problem, budget), self.width(problem)
        return (
            f"Its {steps} Gaussian steps on {width} columns compose exactly. For every frame Q "
            "from the earlier steps, a changed row moves A Q by at most as much as A."
        )
