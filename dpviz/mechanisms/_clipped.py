"""Mechanisms that bound rows themselves: as unit vectors, or clipped at a private radius.

Spherical principal components: Locantore et al. 1999, "Robust principal component analysis for
functional data", Test 8; the private forms and their calibration are ours.

A row enters as a unit vector u = x/|x| (a zero row as zero), so the second moment S = mean of uu'
moves as one of rows on the unit ball does: neither a row bound nor the domain enters, and a row a
thousand times too long counts as one row. S has trace 1 where A has the mean of |x|^2/R^2, while
the noise is the same.

What is estimated. For rows of an elliptical law about the centre the eigenvectors of S are those of
the covariance, in the same order; otherwise they are another summary of directions, and the
captured variance has a limit below 1 that no budget lifts. Eigenvalues of S are not variances, so
only the subspace is released. The same happens to every other mechanism under a row bound below the
length of the shortest row.

Clipped rows. In units of a radius r a row enters as a uu' with a = min(1, |x|^2/r^2). Whatever r
is, a row of a table moves the sum of them by |a vv' - b ww'| with unit v and w and a, b in [0, 1]:
in the Frobenius norm by sqrt(a^2 + b^2 - 2 a b (v'w)^2), at most sqrt(2) (replace) or 1 (zero-out),
and in the nuclear norm by at most a + b, so by 2 or 1. These are the numbers of the unit ball, and
r may be any function of what was released before.

**Which radius.** The family runs from spherical (radius 0) to the full second moment (a radius
above every row). Noise on rows clipped at r grows with r^2, so the best radius is a quantile of the
rows' lengths that falls as noise grows against one row. It depends on a public number alone: tau,
the edge of the noise's spectrum in units of r^2 over sqrt(2). For a GOE of scale t, tau is t
sqrt(d). `beyond` is the share of rows that it pays to clip at a tau. Its shape and the taus above
which no quantile pays were fitted on the tuning half of the tables of docs/defaults.md, which reads
them on the other half, beside twice the share (as good) and half of it (worse).

**Where no radius is worth its price** the rows enter as directions alone. Which of both, and at
which rank, is decided by the calibration, from public numbers: it has a ``rank`` where one is
sought.
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
    """Return the problem of unit rows, whatever the domain was."""
    return replace(problem, domain=Domain.ball(problem.d))


def unit_rows(rows: FloatArray) -> FloatArray:
    """Return u = x/|x|, zero rows staying zero, shape (n, d)."""
    return shortened(rows, None)


def unit_moment(rows: FloatArray) -> FloatArray:
    """Return the mean of uu' over u = x/|x|, zero rows staying zero, shape (d, d)."""
    return shortened_moment(rows, None)


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


# --- which radius rows are clipped at -------------------------------------------------------------


Lengths: TypeAlias = FloatArray | by_length.Lengths
"""Lengths of rows, ascending, or counts of them on a grid."""

OCTAVES = 32
"""Radii are searched from 2^-32 to 2^31 and beyond by the finer search, in units of the rows."""

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
        Ascending; or counts of them, for radii on the grid of `dpviz.core.by_length`.
    radii : ndarray
    """
    if not isinstance(lengths, np.ndarray):
        return by_length.longer(lengths, radii)
    counts = len(lengths) - np.searchsorted(lengths, radii, side="right")
    return counts.astype(np.float64)


def climb(lengths: Lengths, radii: FloatArray, rank: float, noise: FloatArray) -> FloatArray:
    """Return a radius for each repetition by binary search with noisy counts.

    Each step asks for the count at one radius, which depends on earlier answers alone, and goes up
    where count + noise is above the rank.

    Parameters
    ----------
    lengths : ndarray of shape (n,) or Lengths
        Ascending; or counts of them.
    radii : ndarray of shape (size, 2^steps)
        Ascending along the second axis.
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
        Ascending; or counts of them.
    radii : ndarray of shape (count,)
        Ascending.
    rank : float
    epsilon : float
    chances : ndarray of shape (size,)
        Uniform on [0, 1).
    against : float
        As in `log_odds`.
    """
    reached = np.cumsum(np.exp(log_odds(lengths, radii, rank, epsilon, against)))
    place = np.searchsorted(reached, chances * reached[-1], side="right")
    radius: FloatArray = radii[np.minimum(place, len(radii) - 1)]
    return radius


def log_odds(
    lengths: Lengths, radii: FloatArray, rank: float, epsilon: float, against: float = 0.0
) -> FloatArray:
    """Return the log probability of each radius, given the lengths.

    The score of a radius is how far the rank is from the counts that radii from the one below it
    (zero for the first) up to itself have: 0 where the count passes the rank on the way. A score of
    the radius' own count alone would not see a rank that the count jumps over, where many rows are
    of one length. Its two counts move by at most 1, and with them the score, so odds of
    exp(epsilon score/2) spend epsilon (McSherry and Talwar 2007), whatever public weights they are
    multiplied by: here radius^-against, so that empty radii far above every row are not drawn.
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
    """A mechanism that sees rows clipped at a private radius, or as unit vectors alone."""

    @abstractmethod
    def noise_of(self, problem: Problem, draws: Draws) -> FloatArray:
        """Return noise at unit scale, shape (size, d, d)."""

    @abstractmethod
    def radii(self, lengths: Lengths, calibration: Calibration, draws: Draws) -> FloatArray:
        """Return the radius that each draw finds, shape (size,)."""

    def release_many(self, data: SecondMoment, calibration: Calibration, draws: Draws) -> Release:
        """Return the noisy moment of clipped rows with its radius, or of unit rows."""
        problem = calibration.problem
        # drawn first, so that both branches add the same noise
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
        """No: a row enters as a unit vector times a number from 0 to 1."""
        return False

    def releases(self, problem: Problem, budget: Budget) -> str:
        """Return ``matrix`` if a radius is released, else ``subspace``."""
        sought = "rank" in self.calibrate(problem, budget).values
        return "matrix" if sought else "subspace"

    def aims_at(self, problem: Problem, budget: Budget) -> Aim:
        """Return clipped rows if a radius is released, else directions."""
        sought = "rank" in self.calibrate(problem, budget).values
        return Aim.CLIPPED if sought else Aim.DIRECTIONS

    def target(self, data: SecondMoment, problem: Problem, budget: Budget) -> SecondMoment | None:
        """Return the moment of rows clipped at the rank sought, or of directions."""
        values = self.calibrate(problem, budget).values
        sought = "rank" in values
        return data.shortened(at_rank(data.lengths, values["rank"]) if sought else None)
