"""The funnel under pure privacy: two looks at unit rows, each with a pure noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.accounting.accounting import Spent
from dpviz.accounting.sensitivity import nuclear
from dpviz.core.moments import SecondMoment
from dpviz.core.params import choice
from dpviz.core.parts import PurePart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._clipped import on_the_sphere, unit_rows
from dpviz.mechanisms._funnel import GUESS, TwoLooks, dimensions
from dpviz.mechanisms._pure import LAWS, PureLaw, PureNoise


@dataclass(frozen=True)
class PureFunnel(PureNoise, TwoLooks):
    """Two adaptive pure steps of half of epsilon each; see `dpviz.mechanisms._funnel`.

    Notes
    -----
    Both looks are second moments of rows of length at most one, in bases that depend on what was
    released before alone, so one row moves each by at most 2/n (replace) or 1/n (zero-out) in
    nuclear norm. The log density ratio of either noise is at most that over its scale; pure
    epsilons add, also where the second step depends on the first.
    """

    noise: str = choice(
        PureLaw.WISHART, LAWS, label="Noise", help="Which pure noise both looks have.",
        examples=(PureLaw.KNORM,),
    )  # fmt: skip

    info = MechanismInfo(
        label="Pure funnel",
        summary="Looks once at all features, then again inside the directions it found.",
        paper="dpviz, after Locantore et al. 1999",
        family="wishart",
        release="subspace",
        guarantee="pure",
        order=37,
        needs_rows=True,
        redraws=True,
        law=r"M_1 = \frac1n \sum_i u_i u_i' + N_1,\ B = \mathrm{top}_m(M_1),\quad"
        r" M_2 = \frac1n \sum_i z_i z_i' + N_2,\ z = B'u/|B'u|",
        calibration=r"s = 4/(n \varepsilon)\ (\text{replace}),\quad 2/(n \varepsilon)"
        r"\ (\text{zero-out})",
        complexity="n d m + d^3",
        advice="Many features at a small epsilon without delta.",
    )

    def law(self, d: int) -> PureLaw:
        """Return the law of both looks' noise."""
        return PureLaw(self.noise)

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the scale of both looks, and how many dimensions the second has."""
        reach = nuclear(on_the_sphere(problem))
        scale = math.nextafter(2 * reach / budget.epsilon, math.inf)
        reason = "log density ratio is at most the nuclear norm over the scale"
        part = PurePart(reach / scale, reason)
        fitting = GUESS / (self.law(problem.d).edge(1) * scale)
        values = {"dimensions": float(dimensions(problem, fitting))}
        return Calibration(problem, budget, scale, (part, part), values)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the components of both looks together."""
        assert data.rows is not None
        problem, scale = calibration.problem, calibration.scale
        unit, m = unit_rows(data.rows), int(calibration.values["dimensions"])
        law = self.law(problem.d)
        first = law.draw(draws, problem.d)
        first *= scale
        first += data.shortened(None).A
        second = law.draw(draws, m)
        second *= scale
        return self.looked(calibration, unit, first, second, law.direction_std(m) * scale)

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of the first look along a direction."""
        d = calibration.problem.d
        return self.law(d).direction_std(d) * calibration.scale

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return what the calibration rests on."""
        return (
            "Each look is a second moment of rows of length one in a basis that was released "
            "before, and the log density ratio of its noise is at most the nuclear norm that one "
            "person moves it by over the scale; pure epsilons add."
        )
