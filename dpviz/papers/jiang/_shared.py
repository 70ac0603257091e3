"""What the experiments of Jiang, Xie and Zhang 2016 share: citations, fits, exact intervals."""

from __future__ import annotations

from collections.abc import Sequence

from dpviz.core.arrays import FloatArray
from dpviz.core.moments import SecondMoment
from dpviz.mechanisms import parse_variant
from dpviz.preparation.prepared import Measured
from dpviz.theory.bounds import fitted_power

DELTA = 1e-6  # of the approximate mechanisms

WISHART = parse_variant("wishart")
DIFFERENCE = parse_variant("wishart_difference")
LAPLACE = parse_variant("laplace")
GAUSSIAN = parse_variant("gaussian")


# The top eigenvalue of a Wishart matrix with d + 1 degrees of freedom falls short of its limit by
# a share of 0.76 d^(-2/3), more than the other noises here: the mean -1.2065 of the Tracy-Widom
# law, in the scale of Johnstone 2001, Theorem 1.1. It lifts a fitted power of d.
_SHORTFALL = 0.76


def lift(dimensions: Sequence[float]) -> float:
    """Return by how much the shortfall at small d can lift a power fitted over these d."""
    return fitted_power(dimensions, [1 - _SHORTFALL * d ** (-2 / 3) for d in dimensions])[0]


def ratio_draws(upper: FloatArray, lower: FloatArray) -> FloatArray:
    """Return draws whose mean is the ratio of two means, with its delta-method spread.

    Parameters
    ----------
    upper, lower : ndarray of shape (draws,)
        Independent of each other.
    """
    ratio = float(upper.mean() / lower.mean())
    values: FloatArray = ratio + (upper - ratio * lower) / lower.mean()
    return values


def with_people(measured: Measured, n: int) -> Measured:
    """Return the same second moment, of another number of people."""
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
