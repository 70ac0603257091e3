"""Shares of a precision budget: water filling, and the floor that keeps noise finite."""

from __future__ import annotations

import math

import numpy as np

from dpviz.core.arrays import FloatArray

FLOOR = 1e-3
"""Part of the precision that max-PNR spreads equally, so that no direction gets none."""


# --- shares -----------------------------------------------------------------------------------


def water_filling(gains: FloatArray, total: float) -> FloatArray:
    """Return the x >= 0 of sum ``total`` that maximises the sum of log(1 + gains * x).

    Parameters
    ----------
    gains : ndarray of shape (d,)
        At most 0 counts as 0. If all are 0, every x does equally well and the
        result is equal shares.
    total : float
        Above 0.

    Returns
    -------
    ndarray of shape (d,)
        x_i = max(c - 1/gains_i, 0) with c set by the sum.

    Source
    ------
    Chanyaswad et al. 2018, Theorem 7, whose solution has no max(., 0) and so
    may ask for negative precision.
    """
    d = len(gains)
    best = float(gains.max())
    if best <= 0:
        return np.full(d, total / d)
    # In units of the best gain, and measured from its 1/gain, so that nothing cancels.
    relative = np.maximum(gains / best, 1e-300)
    depth = 1.0 / relative - 1.0
    order = np.argsort(depth, kind="stable")
    budget = total * best
    levels = (budget + np.cumsum(depth[order])) / np.arange(1, d + 1)
    active = int(np.flatnonzero(levels > depth[order])[-1])
    filled: FloatArray = np.maximum(levels[active] - depth, 0.0)
    return filled * (total / math.fsum(filled))


def with_floor(weights: FloatArray) -> FloatArray:
    """Return shares in proportion to weights >= 0, except for `FLOOR` spread equally.

    The result sums to 1 and every share is at least FLOOR/d.
    """
    d = len(weights)
    shares: FloatArray = FLOOR / d + (1 - FLOOR) * weights / math.fsum(weights)
    return shares / math.fsum(shares)
