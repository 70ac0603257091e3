"""One column of a matrix Bingham frame, drawn exactly given the others.

What a sweep of `dpviz.sampling.stiefel` repeats. In few dimensions B is diagonalised on the
complement of the fixed columns; in many a Gaussian of low-rank precision is proposed without that.
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
"""Dimension of a column's subspace up to which diagonalising there is faster; measured."""

_DENSE_SPREAD = 1e9  # rounding of the eigenvalues there is 1e-16 of this: an exponent off by 1e-7


def weighted_sums(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return rows @ weights, rounded alike however many rows there are (BLAS does not)."""
    sums: FloatArray = (rows * weights).sum(axis=1)
    return sums


@dataclass(frozen=True)
class ColumnLaw:
    """The matrix Bingham law in descending order, with what every update needs.

    ``lower`` and ``upper`` bracket the best shift of every column update, by
    Cauchy interlacing of the eigenvalues of the restricted matrix.
    """

    double_gaps: FloatArray  # (d,), ascending from 0
    q: int  # dimension of a column's subspace, d - k + 1
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
            # Acceptance of a concentrated law is about sqrt(2/(e q)); one block then mostly does.
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
        Orthonormal columns.

    Returns
    -------
    (definite, first, second)
        Each of shape (c,); the traces mean nothing where M is not positive
        definite on the complement.

    Notes
    -----
    With K = F'M^-1 F, the trace of the inverse on the complement is
    tr M^-1 - tr(K^-1 F'M^-2 F), its derivative in the shift gives the second
    trace, and by inertia M is positive definite there iff K has as many
    negative eigenvalues as M.
    """
    m = shift[:, None] + law.double_gaps
    # Only the choice of the shift rests on this, not the law of the draw.
    m = np.where(np.abs(m) < 1e-9, 1e-9, m)
    inverse = 1.0 / m
    scaled = fixed * inverse[:, :, None]
    turned = _flip(scaled)
    spectrum, basis = np.linalg.eigh(_flip(fixed) @ scaled)
    definite = (spectrum < 0).sum(axis=1) == (m < 0).sum(axis=1)
    definite &= (spectrum != 0).all(axis=1)
    spectrum = np.where(spectrum == 0, 1.0, spectrum)
    whitening = basis / spectrum[:, None, :]
    ratio = _flip(whitening) @ (turned @ scaled) @ basis
    cubic = _flip(whitening) @ (turned @ (scaled * inverse[:, :, None])) @ basis
    first = inverse.sum(axis=1) - np.trace(ratio, axis1=1, axis2=2)
    second = np.square(inverse).sum(axis=1)
    second -= 2.0 * np.trace(cubic, axis1=1, axis2=2)
    second += (ratio * _flip(ratio)).sum(axis=(1, 2))
    definite &= first > 0
    # Cancellation can spoil the difference above; q positive numbers with this sum obey these.
    second = np.clip(second, np.square(first) / law.q, np.square(first))
    return definite, first, second


def _shifts(law: ColumnLaw, fixed: FloatArray, column: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return a good shift for each chain, and whether one was found.

    Any shift found here is positive definite on the complement; that it is near
    the best only makes acceptance good. At stationarity x'Mx has mean near q and
    standard deviation near sqrt(2q), so the current column tells where to start.
    """
    chains = len(fixed)
    energy = weighted_sums(np.square(column), law.double_gaps)
    # Half a deviation above the mean: measured, a start further right costs more rounds.
    start = law.q + 0.5 * math.sqrt(2.0 * law.q) - energy
    shift = np.clip(start, law.lower, law.upper)
    result = np.full(chains, law.upper)
    settled = np.zeros(chains, dtype=np.bool_)
    todo = np.arange(chains)
    # `upper` exceeds 0, so it is always legal. Newton's method on 1/trace never lands right of the
    # best shift: from a legal point left of it, it climbs; from the right it may fall out of the
    # legal range, where bisection brings it back. A step of 1/sqrt(second) cannot fall out.
    illegal = np.full(chains, -np.inf)
    legal = np.full(chains, law.upper)
    for _ in range(80):
        current = shift[todo]
        definite, first, second = _inverse_moments(current, law, fixed[todo])
        # Missing the best by d(shift) costs about second * d(shift)^2 / 4 in log acceptance.
        done = definite & (np.square(first - 1.0) <= 0.1 * second)
        result[todo[done]] = current[done]
        settled[todo[done]] = True
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = current + first * (first - 1.0) / second
            safe = np.minimum(current, current - 0.95 / np.sqrt(second))
        illegal[todo] = np.where(definite, illegal[todo], current)
        legal[todo] = np.where(definite, safe, legal[todo])
        middle = 0.5 * (illegal[todo] + legal[todo])
        usable = definite & (newton > illegal[todo])
        shift[todo] = np.where(usable, np.clip(newton, law.lower, law.upper), middle)
        todo = todo[~done]
        if not len(todo):
            break
    return result, settled


@dataclass(frozen=True)
class _Envelope:
    """Gaussians on the complement of the fixed columns, one per chain.

    The p ``pivots`` are solved for from the constraint; the other coordinates
    are diag(scale) z, and z has precision I + U diag(L) U'.
    """

    pivots: IntArray  # (c, p)
    free: FloatArray  # (c, d): 1, and 0 at pivots
    scale: FloatArray  # (c, d): 1/sqrt(M_i), and 0 at pivots
    solve: FloatArray  # (c, d, p): pivot coordinates are -solve' z
    directions: FloatArray  # (c, d, p): U
    shrink: FloatArray  # (c, p): 1 - 1/sqrt(1 + L)
    sound: BoolArray  # (c,): well conditioned

    def propose(self, chains: IntArray, normal: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return free and pivot coordinates, (c, b, d) and (c, b, p), from (c, b, d) normals."""
        directions = self.directions[chains]
        z = normal - ((normal @ directions) * self.shrink[chains, None, :]) @ _flip(directions)
        return z * self.scale[chains, None, :], -(z @ self.solve[chains])


def _pivots(fixed: FloatArray, precision: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return p coordinates per chain that the constraint determines well, and the worst pivot.

    Coordinates of small or negative precision come first: by interlacing at most
    p of them lie below the smallest eigenvalue on the complement, and the
    remaining diagonal must be safely positive.
    """
    chains, _, p = fixed.shape
    each = np.arange(chains)
    rest = fixed.copy()
    urgent = np.where(precision < 0.5, 4.0, 0.0)  # squared row lengths never exceed 1
    pivots = np.empty((chains, p), dtype=np.intp)
    worst = np.full(chains, np.inf)
    taken = np.zeros_like(precision)
    for step in range(p):
        lengths = np.square(rest).sum(axis=2)
        choice = (lengths + urgent - taken).argmax(axis=1)
        pivots[:, step] = choice
        taken[each, choice] = 16.0
        length = lengths[each, choice]
        worst = np.minimum(worst, length)
        if step + 1 < p:
            row = rest[each, choice]
            along = rest @ row[:, :, None]
            rest -= along * (row / np.maximum(length, 1e-300)[:, None])[:, None, :]
    return pivots, np.sqrt(worst)


def _envelope(law: ColumnLaw, fixed: FloatArray, shift: FloatArray) -> _Envelope:
    """Return the Gaussian with precision shift + 2a on the complement of the fixed columns.

    In the coordinates left after solving for the pivots T the precision is
    D_R + S M_T S', S = F_R F_T^-1: a positive diagonal plus rank p, so that one
    draw costs O(d p) once a thin QR and a p x p eigenproblem are done.
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
    # Rounding in the loads is relative to the largest; 1 + load must keep 7 digits of its own.
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
    """Return exact draws of a column given the fixed ones, without a d x d eigenproblem.

    Returns
    -------
    (columns, drawn, proposals)
        Columns of shape (c, d), valid where ``drawn``; the others are ill
        conditioned, used none of their stream, and need `dense_columns`.
        Which they are depends on the fixed and current columns alone, so the
        choice of route does not bend the law.
    """
    shift, settled = _shifts(law, fixed, column)
    envelope = _envelope(law, fixed, shift)
    drawn = settled & envelope.sound
    d = fixed.shape[1]
    out = np.zeros((len(fixed), d))
    proposals = 0
    for group in groups(len(fixed), law.block * d):
        todo = group[drawn[group]]
        while len(todo):
            check_cancelled()
            streams = streams_of(draws, todo)
            normal = streams.normal(law.block, d)
            threshold = streams.exponential(law.block)
            normal *= envelope.free[todo, None, :]
            at_free, at_pivots = envelope.propose(todo, normal)
            squared = np.square(at_free).sum(axis=2) + np.square(at_pivots).sum(axis=2)
            # y'My is the squared length of the whitened draw.
            t = np.square(normal).sum(axis=2) / squared
            accepted = threshold >= -log_acceptance(t, law.q)
            first = accepted.argmax(axis=1)
            hit = accepted.any(axis=1)
            proposals += int(np.where(hit, first + 1, law.block).sum())
            chosen = todo[hit]
            rows = at_free[hit, first[hit]]
            np.put_along_axis(rows, envelope.pivots[chosen], at_pivots[hit, first[hit]], axis=1)
            out[chosen] = rows
            todo = todo[~hit]
    out[drawn] = _orthogonal_units(out[drawn], fixed[drawn])
    return out, drawn, proposals


def columns_of(
    law: ColumnLaw, fixed: FloatArray, column: FloatArray, draws: Draws
) -> tuple[FloatArray, int, int]:
    """Return an exact draw of a column for each chain, given the fixed ones.

    Parameters
    ----------
    law : ColumnLaw
    fixed : ndarray of shape (c, d, k - 1)
    column : ndarray of shape (c, d)
        The current column, which tells where to look for a good envelope.
    draws : Draws

    Returns
    -------
    (columns, proposals, dense)
        Columns of shape (c, d), and how many of them were drawn by diagonalising.
    """
    if law.q <= DENSE_UP_TO and law.double_gaps[-1] <= _DENSE_SPREAD:
        columns, proposals = dense_columns(law, fixed, draws)
        return columns, proposals, len(columns)
    columns, drawn, proposals = fast_columns(law, fixed, column, draws)
    rest = np.flatnonzero(~drawn)
    if len(rest):
        columns[rest], used = dense_columns(law, fixed[rest], streams_of(draws, rest))
        proposals += used
    return columns, proposals, len(rest)


def dense_columns(law: ColumnLaw, fixed: FloatArray, draws: Draws) -> tuple[FloatArray, int]:
    """Return exact draws (c, d) of a column by diagonalising B on the complement."""
    d, p = fixed.shape[1:]
    projection = np.eye(d) - fixed @ _flip(fixed)
    # Lifted, the complement's eigenvalues stand clear of the p zeros of the fixed columns.
    lift = max(0.25 * float(law.double_gaps[-1]), 1.0)
    gaps, basis = np.linalg.eigh((projection * (law.double_gaps + lift)) @ projection)
    x, proposals = _each(np.maximum(gaps[:, p:] - gaps[:, p : p + 1], 0.0), law.block, draws)
    return _orthogonal_units((basis[:, :, p:] @ x[:, :, None])[:, :, 0], fixed), proposals


def _each(double_gaps: FloatArray, block: int, draws: Draws) -> tuple[FloatArray, int]:
    """Return an exact draw with density exp(-x' diag(a) x) for each row of 2a, least entry 0."""
    q = double_gaps.shape[1]
    # The mean of the m first terms of sum 1/(shift + 2a) is at least 1/(shift + their mean 2a), so
    # the best shift, where the sum is 1, is at least m less that mean. Newton's method climbs from
    # there, and few steps do: any shift gives exact draws.
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
