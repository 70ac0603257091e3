"""Bingham directions and frames: densities exp(x'Bx) and exp(tr V'BV).

B enters through its eigenvalues and every result is in B's eigenbasis; the
caller rotates. A vector is drawn exactly, by rejection. A frame of k > 1
columns is a Gibbs chain over columns whose conditionals are drawn exactly: the
chain has the right law in the limit of many sweeps, and `convergence` shows how
far two groups of chains with opposite starts have come together.

The envelope. Restrict x to the unit sphere of a q-dimensional subspace and let
a = lambda_max - lambda >= 0, so that the target is exp(-x' diag(a) x). For any
shift beta for which M = beta I + 2 diag(a) is positive definite on the
subspace, t = x'Mx > 0 and the target is proportional to exp(-t/2), while the
direction of a Gaussian with precision M has density proportional to t^(-q/2).
Their ratio is largest at t = q, so a proposal is accepted with log-probability

    (q/2) (ln(t/q) - t/q + 1) <= 0.

Every such beta gives exact draws; acceptance is best where the trace of M's
inverse on the subspace is 1. With beta = b this is the sampler of Kent,
Ganeiber and Mardia.
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
"""Most normals held at once; groups of draws are taken in turn above it."""


@dataclass(frozen=True)
class BinghamDraws:
    """Exact draws of a Bingham direction.

    Attributes
    ----------
    vectors : ndarray of shape (size, d)
        Unit rows, in the eigenbasis.
    proposals : int
        Proposals examined, up to and including the accepted one of each draw.
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
        # The spectrum is data: the message shows its shape only.
        raise InvalidSetting(
            "eigenvalues", "a vector of at least 2 finite numbers", f"shape {values.shape}"
        )
    order = np.argsort(-values, kind="stable")
    return values[order], order


def best_shift(double_gaps: FloatArray) -> float:
    """Return the beta > -min with sum 1/(beta + 2 a_i) = 1.

    1/f is concave and increasing in beta, so Newton's method on it from a point
    left of the root climbs to it without overshooting.
    """
    lowest = float(double_gaps.min())
    above = double_gaps - lowest
    shift = 1.0  # the smallest term alone makes the sum at least 1 here
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
    """Return the streams of some of the draws; a shared generator stays shared."""
    numbers = tuple(draws.numbers[i] for i in index)
    if draws.shared:
        return Draws(draws.generators, numbers)
    return Draws(tuple(draws.generators[i] for i in index), numbers)


def groups(size: int, entries: int) -> list[IntArray]:
    """Return draws in consecutive groups whose blocks stay within the memory limit."""
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
    """Return the first accepted proposal of each draw, and how many were examined in all.

    Parameters
    ----------
    draws : Draws
    shape : tuple of int
        Of one proposal.
    block : int
        Proposals that a draw makes at once: by the law alone, so that each draw uses its own
        stream in the same way whatever the others need.
    propose : callable
        The streams of the draws that wait, and which these are, to proposals of shape
        (waiting, block, *shape) and the log-probability that each is accepted.
    """
    out = np.empty((draws.size, *shape))
    proposals = 0
    for todo in groups(draws.size, block * math.prod(shape)):
        while len(todo):
            check_cancelled()
            streams = streams_of(draws, todo)
            proposed, log_probability = propose(streams, todo)
            accepted = streams.exponential(block) >= -log_probability
            first = accepted.argmax(axis=1)
            finished = accepted.any(axis=1)
            proposals += int(np.where(finished, first + 1, block).sum())
            out[todo[finished]] = proposed[finished, first[finished]]
            todo = todo[~finished]
    return out, proposals


def scaled(normal: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return normals times the scales of an envelope, and the log-probability of acceptance."""
    y = normal * scale
    t = np.square(normal).sum(axis=-1) / np.square(y).sum(axis=-1)
    return y, log_acceptance(t, normal.shape[-1])


def exact_vectors(double_gaps: FloatArray, draws: Draws) -> BinghamDraws:
    """Return exact draws with density exp(-x' diag(a) x), given 2a of shape (q,), q >= 1."""
    q = len(double_gaps)
    precision = best_shift(double_gaps) + double_gaps
    scale = 1.0 / np.sqrt(precision)
    # Saddle point estimate of the proposals needed. The block depends on the law alone, never on
    # how many draws are asked for, so each draw uses its own stream in the same way.
    block = 1 + math.ceil(1.2 * math.sqrt(q * float(np.square(1.0 / precision).sum())))

    def propose(streams: Draws, todo: IntArray) -> tuple[FloatArray, FloatArray]:
        return scaled(streams.normal(block, q), scale)

    vectors, proposals = first_accepted(draws, (q,), block, propose)
    return BinghamDraws(unit_rows(vectors), proposals)


def sample_bingham(eigenvalues: ArrayLike, draws: Draws) -> BinghamDraws:
    """Return exact Bingham draws and how many proposals they took.

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
    drawn = exact_vectors(2.0 * (values[0] - values), draws)
    vectors = np.empty_like(drawn.vectors)
    vectors[:, order] = drawn.vectors
    return BinghamDraws(vectors, drawn.proposals)


# Whether a chain that has the right law only in the limit has come close to it


@dataclass(frozen=True)
class Convergence:
    """The evidence of the traces of chains with opposite starts.

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
    """Return how far chains with opposite starts have come together.

    Parameters
    ----------
    trace : ndarray of shape (sweeps + 1, chains)
        As in `StiefelDraws`.
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
    # Below this the trace differs by rounding alone, as when all eigenvalues are equal.
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
