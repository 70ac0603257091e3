"""Exact frames of the matrix Bingham law by rejection, if acceptance is high enough.

Let a = lambda_max - lambda >= 0, so that the target is exp(-tr V' diag(a) V). For a shift beta > 0
let M = beta I + 2 diag(a). The target is proportional to exp(-tr(V'MV)/2). The span of a Gaussian d
x k matrix of precision M (matrix angular central Gaussian) has a frame with density proportional to
|V'MV|^(-d/2). With t_i the eigenvalues of V'MV their ratio is the product of t_i^(d/2) exp(-t_i/2),
largest at t_i = d. So a proposal is accepted with log-probability

    (d/2) sum_i (ln(t_i/d) - t_i/d + 1) <= 0.

This sampler is used for wide frames, for which `dpviz.sampling.anchored` has too much work per
column. With k = 1 it is the sampler of `dpviz.sampling.bingham`. For k > 1 acceptance is high if
the law is close to uniform, and falls towards zero once it is concentrated. Acceptance is measured
beforehand; if it is low, `dpviz.sampling.matrix_bingham` uses the chain of
`dpviz.sampling.stiefel`.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.cancelling import check_cancelled
from dpviz.core.seeding import Draws, generator
from dpviz.sampling.bingham import IntArray, best_shift, first_accepted
from dpviz.sampling.stiefel import uniform_frames

WORTH = 1 / 2_000
"""Acceptance from which rejection was measured to be faster than a chain."""

_PILOT = 256
_PILOT_ENTRIES = 1 << 18
_BLOCK_MOST = (
    1 << 22
)  # With more normal variables in a block, a chain needs less memory and no more time.


def _log_acceptance(normal: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return proposals Y of shape (..., d, k) and the log-probability that each is accepted."""
    d, k = normal.shape[-2:]
    proposals = normal * scale[:, None]
    gram = np.swapaxes(proposals, -1, -2) @ proposals
    inside = np.swapaxes(normal, -1, -2) @ normal  # Y'MY
    log_ratio = np.linalg.slogdet(inside)[1] - np.linalg.slogdet(gram)[1]
    total = np.trace(np.linalg.solve(gram, inside), axis1=-2, axis2=-1)
    result: FloatArray = 0.5 * (d * (log_ratio + k * (1 - math.log(d))) - total)
    return proposals, result


@lru_cache(maxsize=8)
def _pilot(d: int, k: int) -> FloatArray:
    """Return fixed normals, so that the choice of a sampler depends on the law alone."""
    size = max(16, min(_PILOT, _PILOT_ENTRIES // (d * k)))
    normal = generator(0, "macg", d, k).standard_normal((size, d, k))
    normal.setflags(write=False)
    return normal


def acceptance(double_gaps: FloatArray, k: int) -> float:
    """Return the share of accepted proposals, from fixed proposals.

    Parameters
    ----------
    double_gaps : ndarray of shape (d,)
        Twice the gaps a, at least 0.
    k : int
    """
    scale = 1.0 / np.sqrt(best_shift(double_gaps) + double_gaps)
    if not scale.min() > 1e-6 * scale.max():
        return 0.0  # Such proposals are almost surely rejected.
    pilot = _pilot(len(double_gaps), k)
    step = max(1, _PILOT_ENTRIES // pilot[0].size)
    parts = []
    for first in range(0, len(pilot), step):
        check_cancelled()  # One block may take seconds, so allow a stop here.
        parts.append(_log_acceptance(pilot[first : first + step], scale)[1])
    return float(np.exp(np.minimum(np.concatenate(parts), 0.0)).mean())


def _block(accepted_share: float) -> int:
    """Return the number of proposals per block."""
    return math.ceil(1.5 / accepted_share)


def exact_frames(
    double_gaps: FloatArray, k: int, draws: Draws, accepted_share: float
) -> tuple[FloatArray, int]:
    """Return exact frames with density exp(-tr V' diag(a) V), and how many proposals they took.

    Parameters
    ----------
    double_gaps : ndarray of shape (d,)
        Twice the gaps a, at least 0.
    k : int
        Columns, from 1 to d.
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
    d = len(double_gaps)
    scale = 1.0 / np.sqrt(best_shift(double_gaps) + double_gaps)
    block = _block(accepted_share)

    def propose(streams: Draws, todo: IntArray) -> tuple[FloatArray, FloatArray]:
        proposals = _log_acceptance(streams.normal(block, d, k), scale)
        check_cancelled()  # One block may take seconds, so allow a stop here.
        return proposals

    matrices, proposals = first_accepted(draws, (d, k), block, propose)
    basis = np.linalg.qr(matrices).Q
    check_cancelled()
    turns = uniform_frames(draws, k, k)
    check_cancelled()
    frames: FloatArray = basis @ turns
    return frames, proposals


def rejected(double_gaps: FloatArray, k: int, draws: Draws) -> tuple[FloatArray, int] | None:
    """Return frames and the number of proposals, or None if too few would be accepted."""
    share = acceptance(double_gaps, k)
    if share < WORTH or _block(share) * len(double_gaps) * k > _BLOCK_MOST:
        return None
    return exact_frames(double_gaps, k, draws, share)
