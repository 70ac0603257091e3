"""Frames of the matrix Bingham law: by rejection if that is fast, else by a chain.

Samplers take eigenvalues in descending order. This module sorts them, replaces wide frames by their
complements, and chooses the sampler from the eigenvalues and k alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dpviz.core.arrays import FloatArray
from dpviz.core.seeding import Draws
from dpviz.sampling import anchored, macg
from dpviz.sampling.bingham import IntArray, descending
from dpviz.sampling.stiefel import (
    DEFAULT_SWEEPS,
    StiefelDraws,
    restored,
    stiefel_bingham,
    traces,
    uniform_frames,
)

Rejection = Callable[[FloatArray, int, Draws], tuple[FloatArray, int] | None]
"""A function from 2a, k and draws to frames and the number of proposals, or to None for a chain."""

WIDE = 40
"""Columns above which `anchored`, with order d k^3 operations a proposal, is too slow."""


def matrix_bingham(
    eigenvalues: ArrayLike,
    k: int,
    draws: Draws,
    sweeps: int = DEFAULT_SWEEPS,
    rejection: Rejection | None = None,
) -> StiefelDraws:
    """Return frames of the matrix Bingham law: exact if rejection is fast, else by a chain.

    Parameters
    ----------
    eigenvalues : array of shape (d,)
        Eigenvalues of B in any order, d >= 2.
    k : int
        Columns, from 1 to d.
    draws : Draws
    sweeps : int
        Sweeps of the chain, if it is used.
    rejection : callable, optional
        The sampler to try; by default the sampler that suits k.

    Returns
    -------
    StiefelDraws
        ``exact`` states whether rejection was used. The choice depends on the eigenvalues and k
        alone, and both samplers have the same law (the chain in the limit).

    Raises
    ------
    InvalidSetting
        If an argument is out of range.

    See Also
    --------
    dpviz.sampling.stiefel.stiefel_bingham : The chain.
    """
    values, order = descending(eigenvalues)
    if not 1 < k < len(values):
        return stiefel_bingham(eigenvalues, k, draws, sweeps)
    if 2 * k > len(values):
        small = matrix_bingham(-values, len(values) - k, draws, sweeps, rejection)
        return _by_complement(small, values, order, draws)
    rejected_by = macg.rejected if k > WIDE else anchored.rejected
    sample = (rejection or rejected_by)(2.0 * (values[0] - values), k, draws)
    if sample is None:
        return stiefel_bingham(eigenvalues, k, draws, sweeps)
    frames, proposals = sample
    return StiefelDraws(
        frames=restored(frames, order),
        trace=traces(values, frames)[None],
        from_mode=np.zeros(draws.size, dtype=np.bool_),
        proposals=proposals,
        updates=draws.size,
        dense_updates=0,
        exact=True,
    )


def _by_complement(
    small: StiefelDraws, values: FloatArray, order: IntArray, draws: Draws
) -> StiefelDraws:
    """Return frames from their smaller complements W: tr(V'BV) = tr B - tr(W'BW)."""
    columns = small.frames.shape[2]
    rest = np.linalg.qr(small.frames, mode="complete").Q[:, :, columns:]
    frames = rest @ uniform_frames(draws, rest.shape[2], rest.shape[2])
    return replace(small, frames=restored(frames, order), trace=values.sum() + small.trace)
