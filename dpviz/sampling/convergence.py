"""Whether a sampler that converges only in the limit has come close."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.sampling.bingham import BoolArray


@dataclass(frozen=True)
class Convergence:
    """What the traces of chains with opposite starts say.

    Attributes
    ----------
    gap : ndarray of shape (sweeps + 1,), or None
        Mean trace of the chains from the mode minus that of the chains from
        uniform frames, in units of its standard error: within about 2 once the
        start is forgotten. None if a group has fewer than two chains.
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
