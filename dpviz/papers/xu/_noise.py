"""The ratio theta of Xu, Yang and Bai 2019, Figures 1 and 2: noise of LIP over noise of LOP."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws
from dpviz.datasets import remote
from dpviz.papers.experiment import Effort, Part
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.xu._shared import (
    BY_KEY,
    LIMIT,
    LIP,
    LOP,
    Runs,
    facts_draws,
    least_k,
    output_norms,
    problem_of,
)
from dpviz.preparation.prepared import Measured
from dpviz.sampling.goe import symmetric_laplace

THETA = "theta = ||E1|| / ||E2||"
SIMULATED, CLOSED = "simulated", "closed form d/(n sqrt(n k))"
EPSILON = 1.0
BY_SHAPE = ("Secom", "Covtype")
"""Sets that are not at hand: theta needs n, d and k alone, which are published."""


def input_norms(d: int, seed: int, runs: range) -> FloatArray:
    """Return ||E1||_F of LIP at scale 1, shape (runs,): the noise that the mechanism draws."""
    noise = symmetric_laplace(Draws.trials(seed, LIP.key, runs), d)
    norms: FloatArray = np.linalg.norm(noise, axis=(1, 2))
    return norms


def closed_form(n: int, d: int, k: int) -> float:
    """Return the root of E||E1||_F^2 / E||E2||_F^2, at every epsilon.

    The d^2 entries of E1 have variance 2 (2d/(n epsilon))^2 each, and the n k of
    E2 have 2 (2d/epsilon)^2.
    """
    return d / (n * math.sqrt(n * k))


class ShapeRuns(Part):
    """Theta of a set of which n and d are known, without its table."""

    shape: str = ""
    count: int = 0

    def draws(
        self, seed: int, places: Callable[[int, int], list[tuple[int, int, int]]]
    ) -> Measurements:
        """Return theta at places that n and d make."""
        data, table = BY_KEY[self.shape], remote.sets()[self.shape]
        units, found = input_norms(table.d, seed, range(self.count)), {}
        for n, k, x in places(table.n, table.d):
            problem = Problem(n, table.d, k, Relation.REPLACE, Domain.ball(table.d))
            inside, outside = (m.calibrate(problem, Budget(EPSILON)).scale for m in (LIP, LOP))
            # the mean of n k squared entries; drawn, they vary by less than a part in 10,000
            norm = outside * math.sqrt(2 * n * k)
            found[Point(data.label, SIMULATED, THETA, float(x))] = inside * units / norm
            closed = np.array([closed_form(n, table.d, k)])
            found[Point(data.label, CLOSED, THETA, float(x))] = closed
            limit = np.array([1 / data.noise])
            found[Point(data.label, LIMIT, THETA, float(x))] = limit
        return Measurements(found)


def shape_parts(effort: Effort) -> list[ShapeRuns]:
    """Return one part for each set that is known by its shape."""
    count = 5 if effort is Effort.QUICK else 100
    return [ShapeRuns("", data.key, count) for data in BY_KEY.values() if data.label in BY_SHAPE]


def theta_draws(
    part: Runs, measured: Measured, seed: int, places: Sequence[tuple[int, int, int]]
) -> Measurements:
    """Return theta at each place.

    Parameters
    ----------
    part : Runs
    measured : Measured
    seed : int
    places : sequence of (n, k, x)
        Rows, components, and the place on the axis.
    """
    data = BY_KEY[part.data]
    label = data.label
    d, budget, runs = measured.d, Budget(EPSILON), part.runs
    units = input_norms(d, seed, runs)
    found: dict[Point, FloatArray] = {}
    for n, k, x in places:
        problem = problem_of(measured, k, n)
        inside = LIP.calibrate(problem, budget).scale * units
        outside = LOP.calibrate(problem, budget).scale * output_norms(part.data, n, k, seed, runs)
        found[Point(label, SIMULATED, THETA, float(x))] = inside / outside
        if part.first == 0:
            expected = np.array([closed_form(n, d, k)])
            found[Point(label, CLOSED, THETA, float(x))] = expected
            found[Point(label, LIMIT, THETA, float(x))] = np.array([1 / data.noise])
    if part.first == 0:
        k = least_k(measured.moment.eigenvalues)
        found |= facts_draws(label, measured.n, measured.d, k)
    return Measurements(found)


CURVES = (THETA, SIMULATED, CLOSED, LIMIT)
"""Of Figures 1 and 2: the quantity, and the series that show it."""
