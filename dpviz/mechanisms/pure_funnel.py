"""The funnel under pure privacy: two queries of unit rows, each with pure noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import nuclear
from dpviz.core.arrays import fix_signs
from dpviz.core.moments import SecondMoment
from dpviz.core.params import choice
from dpviz.core.parts import PurePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._clipped import OfDirections, on_the_sphere
from dpviz.mechanisms._funnel import GUESS, dimensions, looked_again
from dpviz.mechanisms._pure import AUTO, LAW_CHOICES, ChosenNoise, PureLaw, wide

_WIDE = 1.0  # Least tau sqrt(d) at which funnels help, on the tuning tables of docs/defaults.md.


@dataclass(frozen=True)
class PureFunnel(ChosenNoise, OfDirections):
    """Two adaptive pure steps of half of epsilon each; see `dpviz.mechanisms._funnel`.

    Notes
    -----
    Both queries are second moments of rows of length at most one, in bases that depend on earlier
    releases alone. So one row moves each moment by at most 2/n (replace) or 1/n (zero-out) in
    nuclear norm. The log density ratio of either noise is at most this norm over its scale. Pure
    epsilons add, also if the second step depends on the first.
    """

    noise: str = choice(
        AUTO, LAW_CHOICES, label="Noise", help="Kind of pure noise of the two measurements.",
        examples=(PureLaw.WISHART, PureLaw.KNORM),
    )  # fmt: skip

    info = MechanismInfo(
        label="Pure funnel",
        summary=("Measures all features once, then again in the directions it found."),
        paper="dpviz, after Locantore et al. 1999",
        family="wishart",
        release="subspace",
        guarantee="pure",
        order=37,
        needs_rows=True,
        passes=2,
        redraws=True,
        law=r"M_1 = \frac1n \sum_i u_i u_i' + N_1,\ B = \mathrm{top}_m(M_1),\quad"
        r" M_2 = \frac1n \sum_i z_i z_i' + N_2,\ z = B'u/|B'u|",
        calibration=r"s = 4/(n \varepsilon)\ (\text{replace}),\quad 2/(n \varepsilon)"
        r"\ (\text{zero-out})",
        complexity="n d m + d^3",
        advice="The default under pure privacy if noise is large in many features.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the scale of both queries, and the second query's dimensions."""
        reach = nuclear(on_the_sphere(problem))
        scale = math.nextafter(2 * reach / budget.epsilon, math.inf)
        reason = "log density ratio is at most the nuclear norm over the scale"
        part = PurePart(reach / scale, reason)
        fitting = GUESS / (self.law(problem.d).edge(1) * scale)
        values = {"dimensions": float(dimensions(problem.d, problem.k, fitting))}
        return Calibration(problem, budget, scale, (part, part), values)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the components from both queries together."""
        problem, scale = calibration.problem, calibration.scale
        m = int(calibration.values["dimensions"])
        law = self.law(problem.d)
        first = law.draw(draws, problem.d)
        first *= scale
        first += data.shortened(None).A
        second = law.draw(draws, m)
        second *= scale
        stds = tuple(law.direction_std(size) * scale for size in (problem.d, m))
        frames = looked_again(data, first, second, (stds[0], stds[1]), problem.k)
        return Release(raw=first, components=fix_signs(frames))

    def advised_rank(self, problem: Problem, budget: Budget) -> float | None:
        """Return 4.5, above clipping, if noise is large in many features."""
        return 4.5 if wide(problem, budget.epsilon) > _WIDE else None

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return the basis of the calibration."""
        return (
            "Each look is a second moment of rows of length one in a basis that was released "
            "before, and the log density ratio of its noise is at most the nuclear norm that one "
            "person moves it by over the scale; pure epsilons add."
        )
