"""Which radius rows are clipped at: a public rule for the rank, and private searches for it.

The family runs from spherical (radius 0) to the full second moment (a radius above every row).
Noise on rows clipped at r grows with r^2, so the best radius is a quantile of the rows' lengths
that falls as noise grows against one row. What it follows is public: tau, the edge of the noise's
spectrum in units of r^2 over sqrt(2); for a GOE of scale t that is t sqrt(d). `beyond` is the share
of rows that it pays to clip at a tau. Its shape and the taus above which no quantile pays were
fitted on the tuning half of the tables of docs/defaults.md, which reads them on the other half,
beside twice the share (as good) and half of it (worse).
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from dpviz.core import by_length
from dpviz.core.arrays import FloatArray

Lengths: TypeAlias = FloatArray | by_length.Lengths
"""Lengths of rows, ascending, or counts of them on a grid."""

OCTAVES = 32
"""Radii are searched from 2^-32 to 2^31 and beyond by the finer search, in units of the rows."""

_SLOPE, _CURVE = 0.7, 25.0
_MOST_FEATURES = 80


def beyond(tau: float, d: int) -> float:
    """Return the share of rows that are to be longer than the radius, at most one half."""
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
    found = len(lengths) - np.searchsorted(lengths, radii, side="right")
    return found.astype(np.float64)


def climb(lengths: Lengths, radii: FloatArray, rank: float, noise: FloatArray) -> FloatArray:
    """Return a radius for each draw by binary search with noisy counts.

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
    found: FloatArray = radii[each, low]
    return found


def drawn(
    lengths: Lengths,
    radii: FloatArray,
    rank: float,
    epsilon: float,
    chances: FloatArray,
    against: float = 0.0,
) -> FloatArray:
    """Return a radius for each draw by the exponential mechanism; it spends epsilon.

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
    found: FloatArray = radii[np.minimum(place, len(radii) - 1)]
    return found


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
