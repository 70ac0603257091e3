"""Rows scaled to length one, shared by the spherical mechanisms.

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
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpviz.base.arrays import FloatArray
from dpviz.values.problem import Domain, Problem


def on_the_sphere(problem: Problem) -> Problem:
    """Return the problem of unit rows, whatever the domain was."""
    return replace(problem, domain=Domain.ball(problem.d))


def unit_moment(rows: FloatArray) -> FloatArray:
    """Return the mean of uu' over u = x/|x|, zero rows staying zero, shape (d, d)."""
    # scaled first: the square of an entry of 1e-200 would vanish
    largest = np.abs(rows).max(axis=1, keepdims=True)
    unit = rows / np.where(largest > 0, largest, 1.0)
    length = np.sqrt(np.square(unit).sum(axis=1, keepdims=True))
    # one rounding to the safe side: no unit row is longer than 1
    unit /= np.where(length > 0, length, 1.0) * (1 + 4 * np.finfo(np.float64).eps)
    moment = unit.T @ unit / len(rows)
    symmetric: FloatArray = (moment + moment.T) / 2
    return symmetric
