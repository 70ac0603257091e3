"""Mechanisms that bound rows by themselves: as unit vectors, or clipped at a private radius.

Spherical principal components: Locantore et al. 1999, "Robust principal component analysis for
functional data", Test 8; the private forms and their calibration are dpviz's.

A row enters as a unit vector u = x/|x| (a zero row as zero). So one row moves the second moment S =
mean of uu' as on the unit ball. Neither a row-norm bound nor the domain matters, and a row a
thousand times too long counts as one row. S has trace 1 while A has the mean of |x|^2/R^2; the
noise is the same.

The estimate. For rows of an elliptical law about the centre, S and the covariance have the same
eigenvectors, in the same order. Otherwise S gives another summary of directions, and the captured
variance has a limit below 1 that no budget lifts. Eigenvalues of S are not variances, so only the
subspace is released. The same happens to every other mechanism under a row-norm bound below the
length of the shortest row.

Clipped rows. In units of a radius r a row enters as a uu' with a = min(1, |x|^2/r^2). For any r,
one row moves the sum of these matrices by |a vv' - b ww'| with unit v and w and a, b in [0, 1]. In
the Frobenius norm this is sqrt(a^2 + b^2 - 2 a b (v'w)^2), at most sqrt(2) (replace) or 1
(zero-out). In the nuclear norm the move is at most a + b, so 2 or 1. The unit ball has the same
bounds, and r may be any function of earlier releases.

**Which radius.** The family runs from spherical (radius 0) to the full second moment (a radius
above every row). Noise on rows clipped at r grows with r^2. The best radius is therefore a quantile
of the row norms, a lower quantile for more noise relative to one row. It depends only on a public
number tau, the edge of the noise's spectrum in units of r^2 over sqrt(2). For a GOE of scale t, tau
is t sqrt(d). `beyond` is the best share of rows to clip at a tau. This share and the taus above
which no quantile helps were fitted on the tuning half of the tables of docs/defaults.md. That page
tests the choices on the other half: twice the share is as good, and half of the share is worse.

**If no radius is worth its privacy cost**, the rows enter as directions alone. The calibration
decides this from public numbers. It has a ``rank`` only if a radius is sought.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dpviz.core import by_length
from dpviz.core.arrays import FloatArray
from dpviz.core.by_length import at_rank, shortened, shortened_moment
from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem
from dpviz.core.release import Aim, Calibration, Release
from dpviz.core.seeding import Draws
from dpviz.mechanisms._base import Mechanism
from dpviz.mechanisms._weighing import Weighing

# --- rows as directions ---------------------------------------------------------------------------


def on_the_sphere(problem: Problem) -> Problem:
    """Return the problem with unit rows, whatever the original domain."""
    return replace(problem, domain=Domain.ball(problem.d))


def unit_rows(rows: FloatArray) -> FloatArray:
    """Return u = x/|x| for all rows, shape (n, d); zero rows stay zero."""
    return shortened(rows, None)


def unit_moment(rows: FloatArray) -> FloatArray:
    """Return the mean of uu' over u = x/|x|, shape (d, d); zero rows stay zero."""
    return shortened_moment(rows, None)


@dataclass(frozen=True)
class OfDirections(Mechanism):
    """A mechanism that uses only the directions of rows."""

    @property
    def needs_row_bound(self) -> bool:
        """False, because every row enters as a unit vector."""
        return False

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return `Aim.DIRECTIONS`."""
        return Aim.DIRECTIONS

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return the second moment of unit rows."""
        return data.shortened(None)

    def public_total(self, calibration: Calibration) -> float | None:
        """Return 1: every row has length one."""
        return 1.0


# --- which radius rows are clipped at -------------------------------------------------------------


Lengths: TypeAlias = FloatArray | by_length.Lengths
"""Ascending row norms, or counts of row norms on a grid."""

OCTAVES = 32
"""Radii are searched from 2^-32 to 2^31 (and beyond by the finer search), in units of the rows."""

_SLOPE, _CURVE = 0.7, 25.0
_MOST_FEATURES = 80


def beyond(tau: float, d: int) -> float:
    """Return the share of rows that should exceed the radius, at most one half."""
    return min(0.5, _SLOPE * min(d, _MOST_FEATURES) * tau * (1 + _CURVE * tau))


def longer(lengths: Lengths, radii: FloatArray) -> FloatArray:
    """Return how many rows are longer than each radius; one row moves each count by at most 1.

    Parameters
    ----------
    lengths : ndarray of shape (n,) or Lengths
        Row norms, ascending; or counts of lengths, for radii on the grid of `dpviz.core.by_length`.
    radii : ndarray
    """
    if not isinstance(lengths, np.ndarray):
        return by_length.longer(lengths, radii)
    counts = len(lengths) - np.searchsorted(lengths, radii, side="right")
    return counts.astype(np.float64)


def climb(lengths: Lengths, radii: FloatArray, rank: float, noise: FloatArray) -> FloatArray:
    """Return a radius for each repetition by binary search with noisy counts.

    Each step takes the count at one radius, which depends on earlier answers alone. If count +
    noise is above the rank, the search moves to larger radii.

    Parameters
    ----------
    lengths : ndarray of shape (n,) or Lengths
        Row norms, ascending; or counts of lengths.
    radii : ndarray of shape (size, 2^steps)
        Radii, ascending along the second axis.
    rank : float
    noise : ndarray of shape (size, steps)
    """
    size, steps = noise.shape
    each = np.arange(size)
    low = np.zeros(size, dtype=np.intp)
    high = np.full(size, radii.shape[1] - 1)
    for step in range(steps):
        middle = (low + high) // 2
        above = longer(lengths, radii[each, middle]) + noise[:, step] > rank
        low, high = np.where(above, middle + 1, low), np.where(above, high, middle)
    assert (low == high).all()
    radius: FloatArray = radii[each, low]
    return radius


def drawn(
    lengths: Lengths,
    radii: FloatArray,
    rank: float,
    epsilon: float,
    chances: FloatArray,
    against: float = 0.0,
) -> FloatArray:
    """Return a radius for each repetition by the exponential mechanism, which uses epsilon.

    Parameters
    ----------
    lengths : ndarray of shape (n,) or Lengths
        Row norms, ascending; or counts of lengths.
    radii : ndarray of shape (count,)
        Ascending.
    rank : float
    epsilon : float
    chances : ndarray of shape (size,)
        Uniform numbers on [0, 1).
    against : float
        The same parameters as in `log_odds`.
    """
    reached = np.cumsum(np.exp(log_odds(lengths, radii, rank, epsilon, against)))
    place = np.searchsorted(reached, chances * reached[-1], side="right")
    radius: FloatArray = radii[np.minimum(place, len(radii) - 1)]
    return radius


def log_odds(
    lengths: Lengths, radii: FloatArray, rank: float, epsilon: float, against: float = 0.0
) -> FloatArray:
    """Return the log probability of each radius, given the lengths.

    The score of a radius is the distance from the rank to the range between two counts: at the
    radius below (zero for the first) and at the radius itself. The score is 0 if the rank lies
    between them. A score of one count alone would miss a rank that the count jumps over, if many
    rows have one length. Both counts, and so the score, move by at most 1. Odds of exp(-epsilon
    score/2) therefore use epsilon (McSherry and Talwar 2007), whatever public weights multiply
    them. The weights radius^-against avoid empty radii far above every row.
    """
    counts = longer(lengths, radii)
    below = np.concatenate(([_number(lengths)], counts[:-1]))
    missed = np.maximum(np.maximum(counts - rank, rank - below), 0.0)
    odds = -0.5 * epsilon * missed - against * np.log(radii)
    odds -= odds.max()
    normalised: FloatArray = odds - math.log(float(np.exp(odds).sum()))
    return normalised


def _number(lengths: Lengths) -> float:
    return float(len(lengths) if isinstance(lengths, np.ndarray) else lengths.n)


# --- rows clipped at a private radius -------------------------------------------------------------


@dataclass(frozen=True)
class OfClippedRows(Weighing):
    """A mechanism that uses rows clipped at a private radius, or only the rows' directions."""

    @abstractmethod
    def noise_of(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return noise at unit scale, shape (size, d, d)."""

    @abstractmethod
    def radii(self, lengths: Lengths, calibration: Calibration, draws: Draws) -> FloatArray:
        """Return the radius found in each repetition, shape (size,)."""

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the noisy moment of clipped rows with its radius, or of unit rows."""
        problem = calibration.problem
        # Sampling comes first, so that both branches below add the same noise.
        matrices = self.noise_of(problem, draws)
        matrices *= calibration.scale
        if "rank" not in calibration.values:
            matrices += data.shortened(None).A
            return Release(matrices, self.of_matrices(matrices, calibration).components)
        radii = self.radii(data.lengths, calibration, draws)
        for radius in np.unique(radii):
            matrices[radii == radius] += data.shortened(float(radius)).A
        estimate = matrices * np.square(radii)[:, None, None]
        release = replace(Release.of_matrices(estimate, problem.k, raw=matrices), radius=radii)
        return self.weighed(release, calibration) if self.weighs else release

    def public_total(self, calibration: Calibration) -> float | None:
        """Return 1 if every row has length one, None if rows are clipped."""
        return None if "rank" in calibration.values else 1.0

    @property
    def needs_row_bound(self) -> bool:
        """False, because a row enters as a unit vector times a number from 0 to 1."""
        return False

    def releases(self, problem: Problem, budget: Budget) -> str:
        """Return ``matrix`` if a radius is released, else ``subspace``."""
        sought = "rank" in self.calibrate(problem, budget).values
        return "matrix" if sought else "subspace"

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return `Aim.CLIPPED` if a radius is released, else `Aim.DIRECTIONS`."""
        sought = "rank" in self.calibrate(problem, budget).values
        return Aim.CLIPPED if sought else Aim.DIRECTIONS

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return the second moment of rows clipped at the intended rank, or of unit rows."""
        values = self.calibrate(problem, budget).values
        sought = "rank" in values
        return data.shortened(at_rank(data.lengths, values["rank"]) if sought else None)
