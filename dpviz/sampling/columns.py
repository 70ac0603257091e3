"""One column of a matrix Bingham frame, sampled exactly given the other columns.

A sweep of `dpviz.sampling.stiefel` repeats this step. In few dimensions the step diagonalises B on
the complement of the fixed columns. In many dimensions the step proposes from a Gaussian of
low-rank precision instead.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.seeding import Draws
from dpviz.sampling.bingham import (
    BoolArray,
    IntArray,
    best_shift,
    first_accepted,
    groups,
    log_acceptance,
    scaled,
    streams_of,
    unit_rows,
)

DENSE_UP_TO = 26
"""Dimension of a column's subspace up to which diagonalising was measured to be faster."""

_DENSE_SPREAD = 1e9  # At this spread of gaps, rounding moves an exponent by 1e-7.


def weighted_sums(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return rows @ weights, with the same rounding for any number of rows, unlike BLAS."""
    sums: FloatArray = (rows * weights).sum(axis=1)
    return sums


@dataclass(frozen=True)
class ColumnLaw:
    """The matrix Bingham law in descending order, with the constants of every update.

    ``lower`` and ``upper`` bracket the best shift of every column update, by Cauchy interlacing of
    the restricted eigenvalues.
    """

    double_gaps: FloatArray  # The gaps have shape (d,) and ascend from 0.
    q: int  # A column's subspace has dimension d - k + 1.
    lower: float
    upper: float
    block: int

    @classmethod
    def of(cls, double_gaps: FloatArray, k: int) -> ColumnLaw:
        """Return the law of frames of k columns, given 2a of shape (d,), ascending from 0."""
        q = len(double_gaps) - k + 1
        return cls(
            double_gaps,
            q,
            best_shift(double_gaps[k - 1 :]),
            best_shift(double_gaps[:q]),
            # The acceptance rate of a concentrated law is about sqrt(2/(e q)), so one block of
            # proposals is mostly enough.
            1 + math.ceil(1.4 * math.sqrt(math.e * q / 2.0)),
        )


def _flip(matrices: FloatArray) -> FloatArray:
    return matrices.transpose(0, 2, 1)


def _inverse_moments(
    shift: FloatArray, law: ColumnLaw, fixed: FloatArray
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Return the traces of M^-1 and M^-2 on the complement of the fixed columns.

    Parameters
    ----------
    shift : ndarray of shape (c,)
    law : ColumnLaw
    fixed : ndarray of shape (c, d, p)
        Fixed columns, orthonormal.

    Returns
    -------
    (definite, first, second)
        Arrays of shape (c,); the traces are meaningless if M is not positive definite on the
        complement.

    Notes
    -----
    With K = F'M^-1 F, the trace of the inverse on the complement is tr M^-1 - tr(K^-1 F'M^-2 F).
    The derivative of this trace in the shift gives the second trace. Inertia: M is positive
    definite on the complement iff K has as many negative eigenvalues as M.
    """
    m = shift[:, None] + law.double_gaps
    # Avoid division by zero. This floor changes only the chosen shift, not the law of the samples.
    m = np.where(np.abs(m) < 1e-9, 1e-9, m)
    inverse = 1.0 / m
    weighted_columns = fixed * inverse[:, :, None]
    transpose = _flip(weighted_columns)
    spectrum, basis = np.linalg.eigh(_flip(fixed) @ weighted_columns)
    definite = (spectrum < 0).sum(axis=1) == (m < 0).sum(axis=1)
    definite &= (spectrum != 0).all(axis=1)
    spectrum = np.where(spectrum == 0, 1.0, spectrum)
    whitening = basis / spectrum[:, None, :]
    ratio = _flip(whitening) @ (transpose @ weighted_columns) @ basis
    cubic = _flip(whitening) @ (transpose @ (weighted_columns * inverse[:, :, None])) @ basis
    first = inverse.sum(axis=1) - np.trace(ratio, axis1=1, axis2=2)
    second = np.square(inverse).sum(axis=1)
    second -= 2.0 * np.trace(cubic, axis1=1, axis2=2)
    second += (ratio * _flip(ratio)).sum(axis=(1, 2))
    definite &= first > 0
    # Cancellation can spoil this difference. Positive numbers with this sum obey the bounds.
    second = np.clip(second, np.square(first) / law.q, np.square(first))
    return definite, first, second


def _shifts(law: ColumnLaw, fixed: FloatArray, column: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return a good shift for each chain, and whether a good shift was found.

    M is positive definite on the complement for every shift found here; a shift near the best only
    improves acceptance. At stationarity x'Mx has mean near q and standard deviation near sqrt(2q),
    so the current column gives the start of the search.
    """
    chains = len(fixed)
    energy = weighted_sums(np.square(column), law.double_gaps)
    # Start half a deviation above the mean, because a start further right was slower.
    start = law.q + 0.5 * math.sqrt(2.0 * law.q) - energy
    shift = np.clip(start, law.lower, law.upper)
    result = np.full(chains, law.upper)
    has_shift = np.zeros(chains, dtype=np.bool_)
    todo = np.arange(chains)
    # `upper` exceeds 0, so this shift is always legal. Newton's method on 1/trace never lands right
    # of the best shift, and climbs from any legal point left of it. From the right it may leave the
    # legal range, and bisection brings it back. A step of 1/sqrt(second) cannot leave it.
    illegal = np.full(chains, -np.inf)
    legal = np.full(chains, law.upper)
    for _ in range(80):
        current = shift[todo]
        definite, first, second = _inverse_moments(current, law, fixed[todo])
        # Missing the best shift by d(shift) lowers log acceptance by about second * d(shift)^2 / 4.
        converges = definite & (np.square(first - 1.0) <= 0.1 * second)
        result[todo[converges]] = current[converges]
        has_shift[todo[converges]] = True
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = current + first * (first - 1.0) / second
            safe = np.minimum(current, current - 0.95 / np.sqrt(second))
        illegal[todo] = np.where(definite, illegal[todo], current)
        legal[todo] = np.where(definite, safe, legal[todo])
        middle = 0.5 * (illegal[todo] + legal[todo])
        usable = definite & (newton > illegal[todo])
        shift[todo] = np.where(usable, np.clip(newton, law.lower, law.upper), middle)
        todo = todo[~converges]
        if not len(todo):
            break
    return result, has_shift


@dataclass(frozen=True)
class _Envelope:
    """Gaussians on the complement of the fixed columns, one per chain.

    The constraint gives the p ``pivots``. The other coordinates are diag(scale) z, and z has
    precision I + U diag(L) U'.
    """

    pivots: IntArray  # The shape is (c, p).
    free: FloatArray  # The shape is (c, d). Entries are 1, and 0 at pivots.
    scale: FloatArray  # The shape is (c, d). Entries are 1/sqrt(M_i), and 0 at pivots.
    solve: FloatArray  # The shape is (c, d, p). Pivot coordinates are -solve' z.
    directions: FloatArray  # The shape is (c, d, p). These are the columns of U.
    shrink: FloatArray  # The shape is (c, p). Entries are 1 - 1/sqrt(1 + L).
    sound: BoolArray  # The shape is (c,). Entries tell which chains are well conditioned.

    def propose(self, chains: IntArray, normal: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return free and pivot coordinates, (c, b, d) and (c, b, p), from (c, b, d) normals."""
        directions = self.directions[chains]
        z = normal - ((normal @ directions) * self.shrink[chains, None, :]) @ _flip(directions)
        return z * self.scale[chains, None, :], -(z @ self.solve[chains])


def _pivots(fixed: FloatArray, precision: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return p coordinates per chain that the constraint determines well, and the least pivot.

    Coordinates of small or negative precision come first. By interlacing, at most p of them lie
    below the smallest eigenvalue on the complement, and the remaining diagonal must be safely
    positive.
    """
    chains, _, p = fixed.shape
    each = np.arange(chains)
    rest = fixed.copy()
    urgent = np.where(precision < 0.5, 4.0, 0.0)  # This is valid for rows of length up to 1.
    pivots = np.empty((chains, p), dtype=np.intp)
    worst = np.full(chains, np.inf)
    use = np.zeros_like(precision)
    for step in range(p):
        lengths = np.square(rest).sum(axis=2)
        choice = (lengths + urgent - use).argmax(axis=1)
        pivots[:, step] = choice
        use[each, choice] = 16.0
        length = lengths[each, choice]
        worst = np.minimum(worst, length)
        if step + 1 < p:
            row = rest[each, choice]
            along = rest @ row[:, :, None]
            rest -= along * (row / np.maximum(length, 1e-300)[:, None])[:, None, :]
    return pivots, np.sqrt(worst)


def _envelope(law: ColumnLaw, fixed: FloatArray, shift: FloatArray) -> _Envelope:
    """Return the Gaussian with precision shift + 2a on the complement of the fixed columns.

    In the coordinates left after solving for the pivots T the precision is D_R + S M_T S', S = F_R
    F_T^-1: a positive diagonal plus rank p. One sample therefore costs O(d p) after a thin QR and a
    p x p eigenproblem.
    """
    chains, _, p = fixed.shape
    each = np.arange(chains)[:, None]
    m = shift[:, None] + law.double_gaps
    pivots, worst = _pivots(fixed, m)
    free = np.ones_like(m)
    free[each, pivots] = 0.0
    remaining = np.where(free > 0, m, 1.0)
    sound = (worst > 1e-6) & (remaining > 0).all(axis=1)
    scale = free / np.sqrt(np.where(remaining > 0, remaining, 1.0))
    corner = fixed[each, pivots]
    corner[~sound] = np.eye(p)
    whole = np.asarray(np.linalg.solve(_flip(corner), _flip(fixed)), dtype=np.float64)
    solve = _flip(whole) * scale[:, :, None]
    basis: FloatArray
    triangle: FloatArray
    basis, triangle = np.linalg.qr(solve)
    core = (triangle * m[each, pivots][:, None, :]) @ _flip(triangle)
    loads, turn = np.linalg.eigh(core)
    # Rounding in the loads is relative to the largest load. The sum 1 + load must keep 7 digits.
    largest = np.maximum(1.0, np.abs(loads).max(axis=1))
    sound &= (1.0 + loads > 1e-9 * largest[:, None]).all(axis=1)
    shrink = 1.0 - 1.0 / np.sqrt(np.where(sound[:, None], 1.0 + loads, 1.0))
    return _Envelope(pivots, free, scale, solve, basis @ turn, shrink, sound)


def _orthogonal_units(rows: FloatArray, fixed: FloatArray) -> FloatArray:
    """Return rows (c, d) made exactly orthogonal to the fixed columns, of length 1."""
    along: FloatArray = rows[:, None, :] @ fixed
    return unit_rows(rows - (along @ _flip(fixed))[:, 0, :])


def fast_columns(
    law: ColumnLaw, fixed: FloatArray, column: FloatArray, draws: Draws
) -> tuple[FloatArray, BoolArray, int]:
    """Return exact samples of a column given the fixed columns, without a d x d eigenproblem.

    Returns
    -------
    (columns, success, proposals)
        Columns of shape (c, d), valid where ``success``; the others are ill conditioned, used none
        of their stream, and need `dense_columns`. Which columns are ill conditioned depends on the
        fixed and current columns alone, so this choice does not change the law.
    """
    shift, has_shift = _shifts(law, fixed, column)
    envelope = _envelope(law, fixed, shift)
    success = has_shift & envelope.sound
    d = fixed.shape[1]
    out = np.zeros((len(fixed), d))
    proposals = 0
    for group in groups(len(fixed), law.block * d):
        todo = group[success[group]]
        while len(todo):
            check_cancelled()
            streams = streams_of(draws, todo)
            normal = streams.normal(law.block, d)
            threshold = streams.exponential(law.block)
            normal *= envelope.free[todo, None, :]
            at_free, at_pivots = envelope.propose(todo, normal)
            norms = np.square(at_free).sum(axis=2) + np.square(at_pivots).sum(axis=2)
            # The product y'My is the squared length of the whitened sample.
            t = np.square(normal).sum(axis=2) / norms
            passes = threshold >= -log_acceptance(t, law.q)
            first = passes.argmax(axis=1)
            hit = passes.any(axis=1)
            proposals += int(np.where(hit, first + 1, law.block).sum())
            chains = todo[hit]
            rows = at_free[hit, first[hit]]
            np.put_along_axis(rows, envelope.pivots[chains], at_pivots[hit, first[hit]], axis=1)
            out[chains] = rows
            todo = todo[~hit]
    out[success] = _orthogonal_units(out[success], fixed[success])
    return out, success, proposals


def columns_of(
    law: ColumnLaw, fixed: FloatArray, column: FloatArray, draws: Draws
) -> tuple[FloatArray, int, int]:
    """Return an exact sample of a column for each chain, given the fixed columns.

    Parameters
    ----------
    law : ColumnLaw
    fixed : ndarray of shape (c, d, k - 1)
    column : ndarray of shape (c, d)
        The current column, where the search for a good envelope starts.
    draws : Draws

    Returns
    -------
    (columns, proposals, dense)
        Columns of shape (c, d), and how many of them were sampled by diagonalising.
    """
    if law.q <= DENSE_UP_TO and law.double_gaps[-1] <= _DENSE_SPREAD:
        columns, proposals = dense_columns(law, fixed, draws)
        return columns, proposals, len(columns)
    columns, success, proposals = fast_columns(law, fixed, column, draws)
    rest = np.flatnonzero(~success)
    if len(rest):
        columns[rest], extra = dense_columns(law, fixed[rest], streams_of(draws, rest))
        proposals += extra
    return columns, proposals, len(rest)


def dense_columns(law: ColumnLaw, fixed: FloatArray, draws: Draws) -> tuple[FloatArray, int]:
    """Return exact samples (c, d) of a column by diagonalising B on the complement."""
    d, p = fixed.shape[1:]
    projection = np.eye(d) - fixed @ _flip(fixed)
    # The lift separates the eigenvalues on the complement from the p zeros of the fixed columns.
    lift = max(0.25 * float(law.double_gaps[-1]), 1.0)
    gaps, basis = np.linalg.eigh((projection * (law.double_gaps + lift)) @ projection)
    x, proposals = _each(np.maximum(gaps[:, p:] - gaps[:, p : p + 1], 0.0), law.block, draws)
    return _orthogonal_units((basis[:, :, p:] @ x[:, :, None])[:, :, 0], fixed), proposals


def _each(double_gaps: FloatArray, block: int, draws: Draws) -> tuple[FloatArray, int]:
    """Return an exact sample with density exp(-x' diag(a) x) for each row of 2a, least entry 0."""
    q = double_gaps.shape[1]
    # The mean of the first m terms of sum 1/(shift + 2a) is at least 1/(shift + the mean of their
    # 2a). So the best shift, at which the sum is 1, is at least m minus this mean of 2a. Newton's
    # method climbs from there. Few steps are enough, because any shift gives exact samples.
    counts = np.arange(1.0, q + 1)
    shift = (counts - np.add.accumulate(double_gaps, axis=1) / counts).max(axis=1)
    for _ in range(3):
        inverse = 1.0 / (shift[:, None] + double_gaps)
        total = np.add.reduce(inverse, axis=1)
        shift += total * (total - 1.0) / np.add.reduce(np.square(inverse), axis=1)
    scale = 1.0 / np.sqrt(shift[:, None] + double_gaps)

    def propose(streams: Draws, todo: IntArray) -> tuple[FloatArray, FloatArray]:
        return scaled(streams.normal(block, q), scale[todo, None, :])

    vectors, proposals = first_accepted(draws, (q,), block, propose)
    return unit_rows(vectors), proposals
