"""The ratio eta of Xu, Yang and Bai 2019, Figures 3 and 4: error of LIP over error of LOP.

Neither error needs the rows, only A and noise. With W the first k components of
LIP (orthonormal columns) and V the exact ones:

- X - Z1 = X (I - W W'), so ||Z1 - X||^2 = n (tr A - tr W'AW).
- Z2 - X = E2 V' - X (I - VV'). The terms are orthogonal, as
  tr (E2 V')' X (I - VV') = tr E2' X (I - VV') V = 0, so
  ||Z2 - X||^2 = ||E2||^2 + n (lambda_{k+1} + ... + lambda_d).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.problem import Budget
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.papers.measurements import Measurements, Point
from dpviz.papers.xu._shared import (
    BY_KEY,
    DELTA,
    EXACT,
    LIMIT,
    LIP,
    LOP,
    RANDOM,
    Runs,
    facts_draws,
    least_k,
    output_norms,
    problem_of,
)
from dpviz.preparation.prepared import Measured
from dpviz.simulation.cells import evaluate
from dpviz.simulation.simulate import Cell

ETA = "eta = ||Z1 - X|| / ||Z2 - X||"
ERROR = "||Z - X|| / ||X||"
ADDED = (parse_variant("gaussian"), parse_variant("wishart_difference"))
PROJECTED = (LIP, *ADDED, RANDOM, EXACT)  # those whose components take the place of LIP's


def lop_errors(
    measured: Measured, data: str, k: int, epsilon: float, seed: int, runs: range
) -> FloatArray:
    """Return ||Z2 - X||_F of LOP, shape (runs,)."""
    scale = LOP.calibrate(problem_of(measured, k), Budget(epsilon)).scale
    rest = measured.n * max(float(measured.moment.eigenvalues[k:].sum()), 0.0)
    noise = scale * output_norms(data, measured.n, k, seed, runs)
    errors: FloatArray = np.hypot(noise, math.sqrt(rest))
    return errors


def projected_errors(
    measured: Measured,
    mechanism: Mechanism,
    ks: Sequence[int],
    epsilon: float,
    seed: int,
    runs: range,
) -> FloatArray:
    """Return ||X W W' - X||_F, W the first k released components, shape (len(ks), runs).

    One release with the largest k serves all, as components come in order.
    """
    budget = Budget(epsilon, DELTA)
    cell = Cell(mechanism, problem_of(measured, max(ks)), budget, seed, runs)
    captured = np.cumsum(evaluate(cell, measured).captured_each, axis=1)
    lost = measured.moment.total - captured[:, np.array(ks) - 1].T
    errors: FloatArray = np.sqrt(measured.n * np.maximum(lost, 0.0))
    return errors


def eta_draws(
    part: Runs,
    measured: Measured,
    seed: int,
    ks: Sequence[int],
    epsilons: Sequence[float],
    factor: float,
) -> Measurements:
    """Return eta and the errors at each k and epsilon.

    The axis is whichever of the two has more than one value.

    Parameters
    ----------
    part : Runs
        Its mechanism's components take the place of LIP's.
    measured : Measured
    seed : int
    ks, epsilons : sequence
        One of them of length 1.
    factor : float
        The paper's.
    """
    mechanism, label = parse_variant(part.mechanism), BY_KEY[part.data].label
    first = mechanism == LIP and part.first == 0
    length = math.sqrt(measured.n * measured.moment.total)
    found: dict[Point, FloatArray] = {}
    for place, epsilon in enumerate(epsilons):
        if place == 0 or mechanism not in (RANDOM, EXACT):  # these do not depend on epsilon
            errors = projected_errors(measured, mechanism, ks, epsilon, seed, part.runs)
        for k, inside in zip(ks, errors, strict=True):
            x = float(k if len(epsilons) == 1 else epsilon)
            outside = lop_errors(measured, part.data, k, epsilon, seed, part.runs)
            found[Point(label, mechanism.label, ETA, x)] = inside / outside
            found[Point(label, mechanism.label, ERROR, x)] = inside / length
            if mechanism == LIP:
                found[Point(label, LOP.label, ERROR, x)] = outside / length
            if first:
                found[Point(label, LIMIT, ETA, x)] = np.array([1 / factor])
    if first:
        k = least_k(measured.moment.eigenvalues)
        found |= facts_draws(label, measured.n, measured.d, k)
    return Measurements(found)


# Of Figures 3 and 4: a quantity and the series that show it. Baselines by their names are dashed,
# as one may lie on LIP's line: both are then seen.
_BASELINES = (RANDOM.label, EXACT.label)
ETAS = (ETA, *ADDED, LIP, *_BASELINES, LIMIT)
ERRORS = (ERROR, *ADDED, LIP, LOP, *_BASELINES)
