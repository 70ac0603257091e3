"""Spherical PCA twice: on all features, then inside the leading directions of the first."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.sensitivity import frobenius
from dpviz.core.moments import SecondMoment
from dpviz.core.params import number
from dpviz.core.parts import GaussianPart
from dpviz.core.problem import Budget, Problem
from dpviz.core.release import Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import MechanismInfo
from dpviz.mechanisms._clipped import on_the_sphere, unit_rows
from dpviz.mechanisms._funnel import GUESS, TwoLooks, dimensions
from dpviz.sampling.ensembles import goe


@dataclass(frozen=True)
class Funnel(TwoLooks):
    """Two adaptive Gaussian steps; see `dpviz.mechanisms._funnel`.

    Notes
    -----
    Both looks are second moments of rows of length at most one, in bases that depend on what was
    released before alone, so one row moves each by at most sqrt(2)/n (replace) or 1/n (zero-out) in
    Frobenius norm. So does the mean of |u_j|, where it is asked for: |u| and |v| have no negative
    entry, hence ||u| - |v||^2 <= 2. Adaptive composition of Gaussian mechanisms is exact: mu^2 is
    the sum of the mu^2 of the steps (Dong, Roth and Su 2022).
    """

    sizes: float = number(
        0.0,
        0.0,
        0.5,
        label="Share for sizes",
        help="Share of squared mu spent on the mean of |u_j| over rows of length one, which tells "
        "features apart where they are weighed.",
        examples=(0.1,),
    )

    info = MechanismInfo(
        label="Funnel",
        summary="Looks once at all features, then again inside the directions it found.",
        paper="dpviz, after Locantore et al. 1999",
        family="gaussian",
        release="subspace",
        guarantee="approximate",
        order=36,
        needs_rows=True,
        redraws=True,
        law=r"M_1 = \frac1n \sum_i u_i u_i' + G_1,\ B = \mathrm{top}_m(M_1),\quad"
        r" M_2 = \frac1n \sum_i z_i z_i' + G_2,\ z = B'u/|B'u|",
        calibration=r"\mu_1^2 + \mu_2^2 = \mu(\varepsilon, \delta)^2",
        complexity="n d m + d^3",
        advice="Many features at a small epsilon: measured, the most of what is proved there.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the scale of both looks, and how many dimensions the second has."""
        reach = frobenius(on_the_sphere(problem))
        whole = reach * noise_std(budget) * (1 + 1e-14)  # roundings to the safe side
        # mu^2 is shared: sizes of it for the means of |u_j|, and half of the rest for each look
        scale = whole * math.sqrt(2 / (1 - self.sizes))
        part = GaussianPart(reach, scale, attained=False)  # the subspace alone is released
        parts: tuple[GaussianPart, ...] = (part, part)
        values = {"dimensions": float(dimensions(problem, _fitting(scale)))}
        if self.sizes > 0:
            values["sizes_std"] = whole / math.sqrt(self.sizes)
            parts = (*parts, GaussianPart(reach, values["sizes_std"], attained=False))
        return Calibration(problem, budget, scale, parts, values)

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the components of both looks together."""
        assert data.rows is not None
        problem, scale, values = calibration.problem, calibration.scale, calibration.values
        # the second look needs the rows, as they are projected on what the first released
        unit = unit_rows(data.rows)
        first = goe(draws, problem.d)
        first *= scale
        first += data.shortened(None).A
        second = goe(draws, int(values["dimensions"]))
        second *= scale
        roots = None
        if self.sizes > 0:
            roots = np.abs(unit).mean(axis=0) + values["sizes_std"] * draws.normal(problem.d)
        return self.looked(calibration, unit, first, second, scale, roots)

    def weighing_std(self, calibration: Calibration) -> float:
        """Return the standard deviation of each look along a direction."""
        return calibration.scale

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return what the calibration rests on."""
        return (
            "Each look is a second moment of rows of length one in a basis that was released "
            "before, so one person moves it by a known amount; Gaussian steps add in squared mu, "
            "exactly."
        )


def _fitting(scale: float) -> float:
    """Return the dimensions whose GOE has its edge, sqrt(2 m) scale, at the guess."""
    return 0.5 * (GUESS / scale) ** 2
