"""Spherical PCA: every row counts by its direction alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.mechanisms._base import Info, Mechanism
from dpviz.moments import FloatArray, SecondMoment
from dpviz.privacy.accounting import GaussianPart, Spent
from dpviz.privacy.gaussian import noise_std
from dpviz.problem import Budget, Problem, Relation
from dpviz.release import Calibration, Release
from dpviz.sampling.goe import goe
from dpviz.seeding import Draws


@dataclass(frozen=True)
class Spherical(Mechanism):
    """The top k of S + G, S the mean of xx'/|x|^2 over the rows and G a GOE.

    Source
    ------
    Spherical principal components: Locantore et al. 1999, "Robust principal component analysis for
    functional data", Test 8. The private form and its calibration are ours.

    Notes
    -----
    A row enters as a unit vector u = x/|x| (a zero row as zero), so replacing one moves S by
    (uu' - vv')/n: at most sqrt(2)/n in Frobenius norm, attained by orthogonal rows, and 1/n under
    zero-out. Neither a row bound nor the domain enters; a row a thousand times too long counts as
    one row. The noise is the exact Gaussian mechanism's on a matrix of trace 1, where A has only
    the mean of |x|^2/R^2 for its trace.

    What is estimated. For rows of an elliptical law about the centre the eigenvectors of S are
    those of the covariance, in the same order; otherwise they are another summary of directions
    and the captured variance has a limit below 1 that no budget lifts. Eigenvalues of S are no
    variances, so the subspace alone is released.
    """

    info = Info(
        label="Spherical",
        summary="Scales every row to length one, then adds isotropic Gaussian noise.",
        paper="dpviz, after Locantore et al. 1999",
        family="gaussian",
        release="subspace",
        guarantee="approximate",
        slot=27,
        needs_rows=True,
        law=r"\hat S = \frac1n \sum_i \frac{x_i x_i'}{\|x_i\|^2} + G,\quad"
        r" G_{ii} \sim N(0, t^2),\ G_{ij} \sim N(0, t^2/2)",
        calibration=r"t = \sqrt2\, g(\varepsilon, \delta)/n\ (\text{replace}),\quad"
        r" g(\varepsilon, \delta)/n\ (\text{zero-out})",
        complexity="n d^2",
        advice="Where no good row bound is known or a few rows are far longer than the rest.",
    )

    def calibrate(self, problem: Problem, budget: Budget) -> Calibration:
        """Return the least scale for unit rows, whatever the domain."""
        sensitivity = unit_sensitivity(problem)
        scale = math.nextafter(sensitivity * noise_std(budget), math.inf)
        return Calibration(problem, budget, scale, (GaussianPart(sensitivity, scale),))

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the top k of the noisy second moment of the unit rows."""
        assert data.rows is not None
        problem = calibration.problem
        matrices = goe(draws, problem.d)
        matrices *= calibration.scale
        matrices += unit_moment(data.rows)
        top = Release.of_matrices(matrices, problem.k)
        return Release(raw=matrices, components=top.components)

    def evidence(self, problem: Problem, budget: Budget, spent: Spent | None) -> str:
        """Return what the calibration rests on."""
        return (
            "Every row is scaled to length one before the second moment is taken, so one person "
            "moves it by a known amount without any row bound, and the exact Gaussian profile "
            "sets the noise."
        )


def unit_sensitivity(problem: Problem) -> float:
    """Return the Frobenius sensitivity of the second moment of unit rows."""
    return (math.sqrt(2) if problem.relation is Relation.REPLACE else 1.0) / problem.n


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
