"""Exact frames of the matrix Bingham law by rejection, column by column along the leading axes.

In B's eigenbasis, with eigenvalues descending and a_i = lambda_1 - lambda_i, the target is exp(-tr
V' diag(a) V). Every span has a frame whose column j is orthogonal to the axes 1 to j - 1. Column 1
is the span's own part of axis 1, the others span the remaining part, and so on. For a uniform span,
go from the last column to the first. Given the columns after it, column j is spread on the unit
sphere orthogonal to them and to the axes before j, with density |x_j|^(k-j). This is the law of
(|X|, y) for a uniform unit vector (X, y) whose X has k - j + 1 coordinates. So an angular central
Gaussian in n_j = d - j + 1 dimensions is a good envelope: X of precision beta_j, y of precision M_j
= diag(beta_j + 2 (a_i - a_j)), i > j, conditioned on being orthogonal to the later columns F.

Column j then has energy u_j = 2 x'(diag(a) - a_j I) x >= 0, and the ratio of target and proposal is

    prod_j exp(-u_j/2) (u_j + beta_j)^(n_j/2) |F' M_j^-1 F|^(-1/2),

up to a constant. With |F' M_j^-1 F| >= 1/|F' M_j F| and Hadamard's inequality the last factor is at
most prod_i (c_i' M_j c_i)^(1/2) over the columns i > j, and c_i' M_j c_i = u_i + 2 (a_i - a_j) +
beta_j. Collected by column, this leaves a concave function of each u_i alone. Its maximum,
`Envelope.tops`, makes every step an acceptance probability. Any beta gives exact samples.

With k = 1 this is the sampler of Kent, Ganeiber and Mardia in `dpviz.sampling.bingham`. Acceptance
falls towards zero if many columns are concentrated. Acceptance is estimated beforehand, and
`dpviz.sampling.matrix_bingham` then uses the chain of `dpviz.sampling.stiefel`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.seeding import Draws, generator
from dpviz.sampling.bingham import IntArray, groups, streams_of
from dpviz.sampling.columns import weighted_sums
from dpviz.sampling.stiefel import uniform_frames

WORTH = 1 / 30_000
"""Acceptance at which rejection takes about as long as the chain of 20 sweeps."""

_PILOT = 48
_BLOCK_ENTRIES = 1 << 18  # At most this many numbers of columns are in memory at once.
_SPREAD_MOST = 1e9  # Solving equations loses about this factor of the 16 digits.


@dataclass(frozen=True)
class Envelope:
    """The proposal of every column, and the bound that makes it a rejection sampler.

    Attributes
    ----------
    double_gaps : ndarray of shape (d,)
        Twice the gaps a, ascending from 0.
    shifts : ndarray of shape (k,)
        beta_j > 0.
    tops : ndarray of shape (k,)
        Maximum of column i's part of the log-ratio.
    """

    double_gaps: FloatArray
    shifts: FloatArray
    tops: FloatArray

    @classmethod
    def of(cls, double_gaps: FloatArray, k: int) -> Envelope:
        """Return a good envelope for frames of k columns."""
        d = len(double_gaps)
        gaps = double_gaps - double_gaps[:k, None]  # Entry [j, i] is the gap of row j to axis i.
        weights = np.triu(np.ones((k, d)), 1)
        weights[np.arange(k), np.arange(k)] = k - np.arange(k)
        gaps = np.where(weights > 0, gaps, 0.0)
        lower = gaps[:, :k].T  # Column i, shift j: the entry is 2 (a_i - a_j) for j < i.
        earlier = np.tril(np.ones((k, k)), -1)
        dimensions = d - np.arange(k, dtype=np.float64)
        total = np.ones(k)
        # At the best shifts, the slopes of the bound vanish: the sum over the axes is 1, up to a
        # term from the columns' determinants. Two corrections are accurate enough.
        for _ in range(3):
            shifts = _shifts(gaps, weights, total)
            energy = _energies(shifts, lower, earlier, dimensions, double_gaps)
            inverse = earlier / (energy[:, None] + lower + shifts)
            total = np.maximum(1.0 + inverse.sum(axis=0) - inverse.sum(axis=1), 0.25)
        envelope = cls(double_gaps, shifts, np.zeros(k))
        tops = [envelope.log_part(j, energy[j : j + 1])[0] for j in range(k)]
        return replace(envelope, tops=np.array(tops))

    def log_part(self, j: int, energy: FloatArray) -> FloatArray:
        """Return column j's part of the log-ratio, at most 0, at energies u_j of shape (n,)."""
        dimensions = len(self.double_gaps) - j
        part = dimensions * np.log(energy + self.shifts[j]) - energy
        for before in range(j):
            part += np.log(
                energy + (self.double_gaps[j] - self.double_gaps[before] + self.shifts[before])
            )
        result: FloatArray = 0.5 * part - self.tops[j]
        return result

    def column(
        self, j: int, later: FloatArray, normal: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return column j for each set of later columns, and its log-probability of acceptance.

        Parameters
        ----------
        j : int
            Number of the column, counted from 0.
        later : ndarray of shape (n, d, k - j - 1)
            The columns after j.
        normal : ndarray of shape (n, k - j + d - j - 1)

        Returns
        -------
        (columns, log_probability)
            Arrays of shapes (n, d) and (n,).
        """
        n, d, p = later.shape
        gaps = self.double_gaps[j + 1 :] - self.double_gaps[j]
        precision = self.shifts[j] + gaps
        along = normal[:, : p + 1] / math.sqrt(self.shifts[j])
        across = normal[:, p + 1 :] / np.sqrt(precision)
        slack: FloatArray = np.zeros(n)
        if p:
            fixed = later[:, j + 1 :]
            transpose = fixed.transpose(0, 2, 1)
            inverse = fixed / precision[:, None]
            small = transpose @ inverse
            # Condition the normal y of precision M on F'y = 0: subtract the part that explains F'y.
            excess = np.linalg.solve(small, transpose @ across[:, :, None])
            across = across - (inverse @ excess)[:, :, 0]
            slack = _log_slack(small, fixed, precision)
        length = np.sqrt(np.square(along).sum(axis=1) + np.square(across).sum(axis=1))
        columns = np.zeros((n, d))
        columns[:, j] = np.sqrt(np.square(along).sum(axis=1)) / length
        columns[:, j + 1 :] = across / length[:, None]
        energy = weighted_sums(np.square(columns[:, j + 1 :]), gaps)
        return columns, self.log_part(j, energy) + slack


def _log_slack(small: FloatArray, columns: FloatArray, precision: FloatArray) -> FloatArray:
    """Return ln of (|F'M^-1 F| prod_i f_i'M f_i)^(-1/2), at most 0."""
    total: FloatArray = np.linalg.slogdet(small)[1]
    for i in range(columns.shape[2]):
        total = total + np.log(weighted_sums(np.square(columns[:, :, i]), precision))
    slack: FloatArray = -0.5 * np.maximum(total, 0.0)
    return slack


def _shifts(gaps: FloatArray, weights: FloatArray, total: FloatArray) -> FloatArray:
    """Return the beta of each row with sum weights/(beta + gaps) = total, by Newton from below."""
    first = np.diagonal(weights) / total  # At this start, the leading term alone gives the total.
    shifts: FloatArray = first.copy()
    for _ in range(100):
        inverse = 1.0 / (shifts[:, None] + gaps)
        sums = (weights * inverse).sum(axis=1)
        step = sums * (sums / total - 1.0) / (weights * np.square(inverse)).sum(axis=1)
        shifts = shifts + step
        if (np.abs(step) <= 1e-9 * shifts).all():
            break
    return shifts


def _energies(
    shifts: FloatArray,
    lower: FloatArray,
    earlier: FloatArray,
    dimensions: FloatArray,
    double_gaps: FloatArray,
) -> FloatArray:
    """Return the energy that maximises each column's concave part, in [0, 2 (a_d - a_i)]."""
    most = double_gaps[-1] - double_gaps[: len(shifts)]
    energy = np.zeros(len(shifts))
    for _ in range(100):
        inverse = 1.0 / (energy + shifts)
        others = earlier / (energy[:, None] + lower + shifts)
        slope = dimensions * inverse + others.sum(axis=1) - 1.0
        bend = dimensions * np.square(inverse) + np.square(others).sum(axis=1)
        # The slope is convex and falls, so Newton's method climbs to its root from the left.
        newton = np.minimum(np.maximum(energy + slope / bend, 0.0), most)
        step, energy = np.abs(newton - energy), newton
        if (step <= 1e-9 * (1.0 + energy)).all():  # At the optimum an error counts only squared.
            break
    return energy


def _normals(streams: Draws, counts: IntArray, width: int) -> FloatArray:
    """Return ``counts`` rows of normals from the streams, repetition after repetition."""
    if streams.shared:
        return streams.generators[0].standard_normal((int(counts.sum()), width))
    out = np.empty((int(counts.sum()), width))
    ends = np.cumsum(counts)
    for rng, count, end in zip(streams.generators, counts, ends, strict=True):
        if count:
            out[end - count : end] = rng.standard_normal((count, width))
    return out


def _proposed(
    envelope: Envelope, k: int, streams: Draws, block: int
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return a block's accepted frames, the repetition of each, and its place in the block."""
    d = len(envelope.double_gaps)
    patience = streams.exponential(block).ravel()
    owners = np.repeat(np.arange(streams.size), block)
    places = np.tile(np.arange(block), streams.size)
    frames = np.empty((len(owners), d, 0))
    for j in range(k - 1, -1, -1):
        check_cancelled()
        counts = np.bincount(owners, minlength=streams.size)
        normal = _normals(streams, counts, k - j + d - j - 1)
        columns, log_probability = envelope.column(j, frames, normal)
        # A proposal is accepted only as a whole, but it can be rejected at an early column.
        patience = patience + log_probability
        mask = patience >= 0
        patience, owners, places = patience[mask], owners[mask], places[mask]
        frames = np.concatenate([frames[mask], columns[mask][:, :, None]], axis=2)
    return frames, owners, places


def acceptance(envelope: Envelope, k: int) -> float:
    """Return the approximate share of accepted proposals, from fixed proposals.

    Parameters
    ----------
    envelope : Envelope
    k : int

    Returns
    -------
    float
        Product over the columns of the mean acceptance after any columns. The columns' shares are
        almost independent, and only the sampler and the block size depend on the product.
    """
    d = len(envelope.double_gaps)
    if envelope.double_gaps[-1] > _SPREAD_MOST:
        return 0.0
    frames = np.empty((_PILOT, d, 0))
    share = 1.0
    for j, normal in zip(range(k - 1, -1, -1), _pilot(d, k), strict=True):
        check_cancelled()
        columns, log_probability = envelope.column(j, frames, normal)
        share *= float(np.exp(log_probability).mean())
        if share < WORTH:
            return 0.0
        frames = np.concatenate([frames, columns[:, :, None]], axis=2)
    return share


@lru_cache(maxsize=8)
def _pilot(d: int, k: int) -> tuple[FloatArray, ...]:
    """Return fixed normals, so that the choice of a sampler depends on the law alone."""
    rng = generator(0, "anchored", d, k)
    return tuple(rng.standard_normal((_PILOT, k - j + d - j - 1)) for j in range(k - 1, -1, -1))


def exact_frames(
    envelope: Envelope, k: int, draws: Draws, accepted_share: float
) -> tuple[FloatArray, int]:
    """Return exact frames with density exp(-tr V' diag(a) V), and how many proposals they took.

    Parameters
    ----------
    envelope : Envelope
    k : int
        Columns, from 1 to d - 1.
    draws : Draws
    accepted_share : float
        Approximate share of accepted proposals, from `acceptance`. The share sets the size of a
        block, and so which random numbers are used.

    Returns
    -------
    frames : ndarray of shape (size, d, k)
        Frames, turned by a uniform rotation, as the law requires.
    proposals : int
    """
    d = len(envelope.double_gaps)
    block = _block(accepted_share, d)
    out = np.empty((draws.size, d, k))
    proposals = 0
    columns = 1 + (k - 1) * accepted_share  # If few proposals are accepted, most end at one column.
    for group in groups(draws.size, math.ceil(block * columns * d)):
        todo = group
        while len(todo):
            frames, owners, places = _proposed(envelope, k, streams_of(draws, todo), block)
            done_draws, first = np.unique(owners, return_index=True)
            out[todo[done_draws]] = frames[first]
            proposals += int((places[first] + 1).sum()) + block * (len(todo) - len(done_draws))
            todo = np.delete(todo, done_draws)
    frames = np.linalg.qr(out).Q @ uniform_frames(draws, k, k)
    return frames, proposals


def _block(accepted_share: float, d: int) -> int:
    """Return the number of proposals per block: mostly enough, within a memory limit."""
    return max(1, min(math.ceil(1.5 / accepted_share), _BLOCK_ENTRIES // d))


def rejected(double_gaps: FloatArray, k: int, draws: Draws) -> tuple[FloatArray, int] | None:
    """Return frames and the number of proposals, or None if too few would be accepted."""
    envelope = Envelope.of(double_gaps, k)
    share = acceptance(envelope, k)
    return None if share < WORTH else exact_frames(envelope, k, draws, share)
