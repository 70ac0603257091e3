"""Citations, fits and exact intervals shared by the experiments of Jiang et al. 2016."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import measure
from dpviz.core.moments import SecondMoment
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, parse_variant
from dpviz.preparation.prepared import Measured
from dpviz.simulation.bounds import (
    fitted_power,
    ppca_sample_size,
    wishart_difference_sample_size,
    wishart_sample_size,
)
from dpviz.simulation.cells import evaluate
from dpviz.simulation.least import measured_need
from dpviz.simulation.simulate import Cell

DELTA = 1e-6  # The delta of all mechanisms that need one.

WISHART = parse_variant("wishart")
DIFFERENCE = parse_variant("wishart_difference")
LAPLACE = parse_variant("laplace")
GAUSSIAN = parse_variant("gaussian")


# For a Wishart matrix with d + 1 degrees of freedom, the top eigenvalue is below its limit by a
# share of 0.76 d^(-2/3). So a fitted power of d is too high. The number follows from the mean
# -1.2065 of the Tracy-Widom law (Johnstone 2001, Theorem 1.1).
_SHORTFALL = 0.76


def lift(dimensions: Sequence[float]) -> float:
    """Return how much the shortfall at small d can raise a power that is fitted over these d."""
    return fitted_power(dimensions, [1 - _SHORTFALL * d ** (-2 / 3) for d in dimensions])[0]


def ratio_draws(upper: FloatArray, lower: FloatArray) -> FloatArray:
    """Return values whose mean is the ratio of two means, with the spread of the delta method.

    Parameters
    ----------
    upper, lower : ndarray of shape (draws,)
        Simulated values of two means, independent of each other.
    """
    ratio = float(upper.mean() / lower.mean())
    values: FloatArray = ratio + (upper - ratio * lower) / lower.mean()
    return values


def with_people(measured: Measured, n: int) -> Measured:
    """Return the same second moment with another number of people."""
    moment = SecondMoment(measured.moment.A, n)
    return Measured(
        name=measured.name,
        columns=measured.columns,
        domain=measured.domain,
        row_bound=measured.row_bound,
        moment=moment,
        reference=moment,
        bounded_rows=0,
        notes=measured.notes,
        assumed_public=measured.assumed_public,
    )


# For both experiments on Theorems 7 and 8 of Jiang et al.: statements and people needed ---------

PPCA = parse_variant("ppca")
MECHANISMS = (WISHART, DIFFERENCE, PPCA)
EPSILON, RHO, ETA = 1.0, 0.9, 0.05


@dataclass(frozen=True)
class Statement:
    """A sample size that a theorem calls sufficient.

    Attributes
    ----------
    name : str
    mechanism : Mechanism
    in_paper : bool
        Whether Jiang et al. make the statement.
    formula : callable
        Function that computes the number of people from (d, lambda_1, lambda_2).
    """

    name: str
    mechanism: Mechanism
    in_paper: bool
    formula: Callable[[int, float, float], float]

    def people(self, measured: Measured) -> int:
        """Return the stated n for a table of rows in the unit ball, rounded up."""
        first, second = measured.moment.eigenvalues[:2]
        return math.ceil(self.formula(measured.d, float(first), float(second)))


def _printed(d: int, first: float, second: float) -> float:
    return wishart_sample_size(d, EPSILON, RHO, ETA, first - second)


def _ours(d: int, first: float, second: float) -> float:
    return wishart_sample_size(d, EPSILON, RHO, ETA, first - second, reading="ours")


def _difference(d: int, first: float, second: float) -> float:
    return wishart_difference_sample_size(d, EPSILON, RHO, ETA, first - second)


def _ppca(d: int, first: float, second: float) -> float:
    return ppca_sample_size(d, EPSILON, RHO, ETA, first, second)


THEOREM_7 = Statement("Theorem 7", WISHART, True, _printed)
OURS = Statement("Theorem 7 with the square root", WISHART, False, _ours)
FOR_DIFFERENCE = Statement("the same for Wishart difference", DIFFERENCE, False, _difference)
THEOREM_8 = Statement("Theorem 8", PPCA, True, _ppca)
STATEMENTS = (THEOREM_7, OURS, FOR_DIFFERENCE, THEOREM_8)
# Each mechanism's curve is plotted with this statement of the paper.
MAIN = {WISHART: THEOREM_7, DIFFERENCE: FOR_DIFFERENCE, PPCA: THEOREM_8}


def settings_of(name: str, seed: int) -> Settings:
    """Return the settings for releases of a table."""
    return Settings(table=name, epsilon=EPSILON, delta=DELTA, k=1, seed=seed)


def need(measured: Measured, mechanism: Mechanism, seed: int) -> tuple[float, float]:
    """Return an n that simulation shows to be too small and an n shown to be enough."""
    found = measured_need(measured, settings_of(measured.name, seed), mechanism, RHO, ETA)
    if found.low is None or found.high is None or not found.monotone:
        raise RuntimeError(f"no crossing found for {mechanism.text}")
    return found.low, found.high


_FIRST = 1_000_000  # Number of the first release here. The search for n uses lower numbers.


def met(measured: Measured, mechanism: Mechanism, n: int, draws: int, seed: int) -> FloatArray:
    """Return 1 for each release at n people whose overlap reaches rho, and 0 otherwise."""
    enlarged, settings = with_people(measured, n), settings_of(measured.name, seed)
    problem, budget = enlarged.problem(settings), enlarged.budget(settings)
    cell = Cell(mechanism, problem, budget, seed, range(_FIRST, _FIRST + draws))
    outcome = evaluate(cell, enlarged)
    distances = measure(outcome, ["projection_distance"])["projection_distance"]
    # At k = 1, an overlap of RHO means a distance of sqrt(2 (1 - RHO^2)) between projections.
    return (distances <= math.sqrt(2 * (1 - RHO**2))).astype(np.float64)
