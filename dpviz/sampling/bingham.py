"""Bingham directions and frames: densities exp(x'Bx) and exp(tr V'BV).

B enters through its eigenvalues and every result is in B's eigenbasis; the caller rotates. A vector
is sampled exactly, by rejection. A frame of k > 1 columns is a Gibbs chain over columns whose
conditionals are sampled exactly. The chain has the right law in the limit of many sweeps;
`convergence` compares two groups of chains with opposite starts.

The envelope. Restrict x to the unit sphere of a q-dimensional subspace and let a = lambda_max -
lambda >= 0, so that the target is exp(-x' diag(a) x). Take any shift beta for which M = beta I + 2
diag(a) is positive definite on the subspace. Then t = x'Mx > 0 and the target is proportional to
exp(-t/2), while the direction of a Gaussian with precision M has density proportional to t^(-q/2).
Their ratio is largest at t = q, so a proposal is accepted with log-probability

    (q/2) (ln(t/q) - t/q + 1) <= 0.

Every such beta gives exact samples; acceptance is best if the trace of M's inverse on the subspace
is 1. With beta = b this is the sampler of Kent, Ganeiber and Mardia.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.errors import InvalidSetting
from dpviz.core.seeding import Draws

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]

_BLOCK_ENTRIES = 1 << 19
"""Maximum number of normals in memory at once; more repetitions are split into groups."""


@dataclass(frozen=True)
class BinghamDraws:
    """Exact samples of a Bingham direction.

    Attributes
    ----------
    vectors : ndarray of shape (size, d)
        Unit vectors as rows, in the eigenbasis.
    proposals : int
        Number of proposals examined for each sample, including the accepted proposal.
    """

    vectors: FloatArray
    proposals: int

    @property
    def acceptance(self) -> float:
        """Share of the examined proposals that were accepted, in (0, 1]."""
        return len(self.vectors) / self.proposals


def descending(eigenvalues: ArrayLike) -> tuple[FloatArray, IntArray]:
    """Return the checked eigenvalues in descending order and their positions."""
    values = np.asarray(eigenvalues, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        # The message shows only the shape of the matrix, because its eigenvalues are private.
        raise InvalidSetting(
            "eigenvalues", "a vector of at least 2 finite numbers", f"shape {values.shape}"
        )
    order = np.argsort(-values, kind="stable")
    return values[order], order


def best_shift(double_gaps: FloatArray) -> float:
    """Return the beta > -min with sum 1/(beta + 2 a_i) = 1.

    1/f is concave and increasing in beta. So Newton's method on 1/f climbs to the root from the
    left without overshooting.
    """
    lowest = float(double_gaps.min())
    above = double_gaps - lowest
    shift = 1.0  # At shift 1, the smallest term alone makes the sum at least 1.
    for _ in range(200):
        inverse = 1.0 / (shift + above)
        total = float(inverse.sum())
        step = total * (total - 1.0) / float(inverse @ inverse)
        shift += step
        if step <= 1e-12 * shift:
            break
    return shift - lowest


def log_acceptance(t: FloatArray, q: int) -> FloatArray:
    """Return ln of the acceptance probability at t = x'Mx on a q-dimensional sphere."""
    ratio = t / q
    result: FloatArray = 0.5 * q * (np.log(ratio) - ratio + 1.0)
    return result


def streams_of(draws: Draws, index: IntArray) -> Draws:
    """Return the streams of some repetitions; a shared generator stays shared."""
    numbers = tuple(draws.numbers[i] for i in index)
    if draws.shared:
        return Draws(draws.generators, numbers)
    return Draws(tuple(draws.generators[i] for i in index), numbers)


def groups(size: int, entries: int) -> list[IntArray]:
    """Return repetitions in consecutive groups whose blocks stay within the memory limit."""
    step = max(1, _BLOCK_ENTRIES // entries)
    return [np.arange(low, min(low + step, size)) for low in range(0, size, step)]


def unit_rows(rows: FloatArray) -> FloatArray:
    """Return rows divided by their lengths."""
    lengths: FloatArray = np.sqrt(np.square(rows).sum(axis=-1, keepdims=True))
    return rows / lengths


def first_accepted(
    draws: Draws,
    shape: tuple[int, ...],
    block: int,
    propose: Callable[[Draws, IntArray], tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, int]:
    """Return the first accepted proposal of each repetition, and how many were examined.

    Parameters
    ----------
    draws : Draws
    shape : tuple of int
        Shape of one proposal.
    block : int
        Proposals per repetition at once. The number depends on the law alone, so that each
        repetition uses its own stream in the same way.
    propose : callable
        A function of the streams and the indices of the waiting repetitions. It returns proposals
        of shape (waiting, block, *shape) and the log-probability that each is accepted.
    """
    out = np.empty((draws.size, *shape))
    proposals = 0
    for todo in groups(draws.size, block * math.prod(shape)):
        while len(todo):
            check_cancelled()
            streams = streams_of(draws, todo)
            proposed, log_probability = propose(streams, todo)
            passes = streams.exponential(block) >= -log_probability
            first = passes.argmax(axis=1)
            ends = passes.any(axis=1)
            proposals += int(np.where(ends, first + 1, block).sum())
            out[todo[ends]] = proposed[ends, first[ends]]
            todo = todo[~ends]
    return out, proposals


def scaled(normal: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return normals times an envelope's scales, and their log-probability of acceptance."""
    y = normal * scale
    t = np.square(normal).sum(axis=-1) / np.square(y).sum(axis=-1)
    return y, log_acceptance(t, normal.shape[-1])


def exact_vectors(double_gaps: FloatArray, draws: Draws) -> BinghamDraws:
    """Return exact samples with density exp(-x' diag(a) x), given 2a of shape (q,), q >= 1."""
    q = len(double_gaps)
    precision = best_shift(double_gaps) + double_gaps
    scale = 1.0 / np.sqrt(precision)
    # Estimate by a saddle point how many proposals are needed. The block depends on the law alone,
    # so each repetition uses its random stream in the same way, however many there are.
    block = 1 + math.ceil(1.2 * math.sqrt(q * float(np.square(1.0 / precision).sum())))

    def propose(streams: Draws, todo: IntArray) -> tuple[FloatArray, FloatArray]:
        return scaled(streams.normal(block, q), scale)

    vectors, proposals = first_accepted(draws, (q,), block, propose)
    return BinghamDraws(unit_rows(vectors), proposals)


def sample_bingham(eigenvalues: ArrayLike, draws: Draws) -> BinghamDraws:
    """Return exact Bingham samples and the number of proposals.

    Parameters
    ----------
    eigenvalues : array of shape (d,)
        Eigenvalues of B in any order, d >= 2; ties and a spread of 1e12 are fine.
    draws : Draws

    Returns
    -------
    BinghamDraws
        Vectors of shape (size, d) in the order of the eigenvalues given.

    Raises
    ------
    InvalidSetting
        If the eigenvalues are not a finite vector of at least 2 entries.

    Source
    ------
    Kent, Ganeiber and Mardia 2018, "A new unified approach for the simulation of
    a wide class of directional distributions", J. Comput. Graph. Statist. 27.
    """
    values, order = descending(eigenvalues)
    draw = exact_vectors(2.0 * (values[0] - values), draws)
    vectors = np.empty_like(draw.vectors)
    vectors[:, order] = draw.vectors
    return BinghamDraws(vectors, draw.proposals)


# Convergence of a chain that has the right law only in the limit


@dataclass(frozen=True)
class Convergence:
    """Evidence of convergence from the traces of chains with opposite starts.

    Attributes
    ----------
    gap : ndarray of shape (sweeps + 1,), or None
        Mean trace of the chains from the mode minus the mean trace of the chains from uniform
        frames, in standard errors: within about 2 once the start is forgotten. None if a group has
        fewer than two chains.
    split_rhat : float or None
        Split R-hat of the second half of the sweeps, near 1 at convergence.
        None below eight sweeps, or when the trace cannot move.
    """

    gap: FloatArray | None
    split_rhat: float | None


def convergence(trace: FloatArray, from_mode: BoolArray) -> Convergence:
    """Return how close chains with opposite starts have come.

    Parameters
    ----------
    trace : ndarray of shape (sweeps + 1, chains)
        Trace as in `StiefelDraws`.
    from_mode : ndarray of bool, shape (chains,)

    Returns
    -------
    Convergence

    Source
    ------
    Split R-hat: Gelman et al. 2013, Bayesian Data Analysis, section 11.4.
    """
    if trace.ndim != 2 or trace.shape[1:] != from_mode.shape:
        raise InvalidSetting(
            "trace", "of shape (sweeps + 1, chains), one flag per chain", f"shape {trace.shape}"
        )
    # Below this value, traces differ only by rounding, as they do if all eigenvalues are equal.
    rounding = 1e-12 * float(np.abs(trace).max(initial=0.0))
    return Convergence(_gap(trace, from_mode, rounding), _split_rhat(trace, rounding))


def _gap(trace: FloatArray, from_mode: BoolArray, rounding: float) -> FloatArray | None:
    groups = trace[:, from_mode], trace[:, ~from_mode]
    if min(group.shape[1] for group in groups) < 2:
        return None
    difference = groups[0].mean(axis=1) - groups[1].mean(axis=1)
    one, two = (group.var(axis=1, ddof=1) / group.shape[1] for group in groups)
    error = np.sqrt(one + two)
    still = np.abs(difference) <= rounding
    gap: FloatArray = np.where(still, 0.0, difference / np.maximum(error, rounding + 1e-300))
    return gap


def _split_rhat(trace: FloatArray, rounding: float) -> float | None:
    half = (len(trace) - 1) // 4
    if half < 2 or trace.shape[1] < 2:
        return None
    pieces = np.concatenate([trace[-2 * half : -half], trace[-half:]], axis=1)
    within = float(pieces.var(axis=0, ddof=1).mean())
    if within <= rounding**2:
        return None
    between = half * float(pieces.mean(axis=0).var(ddof=1))
    return math.sqrt((half - 1) / half + between / (half * within))
