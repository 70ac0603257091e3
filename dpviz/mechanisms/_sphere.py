"""Rows as directions and lengths, shared by the mechanisms that need no row bound.

Spherical principal components: Locantore et al. 1999, "Robust principal component analysis for
functional data", Test 8; the private forms and their calibration are ours.

A row enters as a unit vector u = x/|x| (a zero row as zero), so the second moment S = mean of uu'
moves as one of rows on the unit ball does: neither a row bound nor the domain enters, and a row a
thousand times too long counts as one row. S has trace 1 where A has the mean of |x|^2/R^2, while
the noise is the same.

What is estimated. For rows of an elliptical law about the centre the eigenvectors of S are those
of the covariance, in the same order; otherwise they are another summary of directions, and the
captured variance has a limit below 1 that no budget lifts. Eigenvalues of S are no variances, so
the subspace alone is released. The same happens to every other mechanism under a row bound below
the length of the shortest row.

Clipped rows. In units of a radius r a row enters as a uu' with a = min(1, |x|^2/r^2). Whatever r
is, a row of a table moves the sum of them by |a vv' - b ww'| with unit v and w and a, b in [0, 1]:
in the Frobenius norm by sqrt(a^2 + b^2 - 2 a b (v'w)^2), at most sqrt(2) (replace) or 1 (zero-out),
and in the nuclear norm by at most a + b, so by 2 or 1. These are the numbers of the unit ball, and
r may be any function of what was released before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import lengths_of, shortened, shortened_moment
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem
from dpviz.core.release import Aim, Calibration
from dpviz.mechanisms._base import Mechanism


def on_the_sphere(problem: Problem) -> Problem:
    """Return the problem of unit rows, whatever the domain was."""
    return replace(problem, domain=Domain.ball(problem.d))


class SphereDirections:
    """Rows as lengths and unit vectors.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
    """

    def __init__(self, rows: FloatArray) -> None:
        self._rows = rows

    @classmethod
    def of_rows(cls, rows: FloatArray) -> SphereDirections:
        """Return the directions and lengths of rows, each a function of its own row alone."""
        return cls(rows)

    @cached_property
    def unit(self) -> FloatArray:
        """Of length at most 1, shape (n, d); zero rows stay zero."""
        return shortened(self._rows, None)

    @cached_property
    def lengths(self) -> FloatArray:
        """Infinite where a length is no ordinary number, shape (n,)."""
        return lengths_of(self._rows)

    def moment(self, radius: float | None = None) -> FloatArray:
        """Return the mean of a uu', a = min(1, |x|^2/radius^2), or of uu', shape (d, d)."""
        return shortened_moment(self._rows, radius)


def unit_rows(rows: FloatArray) -> FloatArray:
    """Return u = x/|x|, zero rows staying zero, shape (n, d)."""
    return SphereDirections.of_rows(rows).unit


def unit_moment(rows: FloatArray) -> FloatArray:
    """Return the mean of uu' over u = x/|x|, zero rows staying zero, shape (d, d)."""
    return SphereDirections.of_rows(rows).moment()


@dataclass(frozen=True)
class OfDirections(Mechanism):
    """A mechanism that sees rows as unit vectors alone."""

    @property
    def needs_row_bound(self) -> bool:
        """No: every row enters as a unit vector."""
        return False

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return the directions of rows."""
        return Aim.DIRECTIONS

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return the second moment of unit rows."""
        return data.shortened(None)

    def public_total(self, calibration: Calibration) -> float | None:
        """Return 1: every row has length one."""
        return 1.0
