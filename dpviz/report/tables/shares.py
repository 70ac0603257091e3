"""Shares of the precision that a page lets a user edit, drag and take along."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.core.allocation import SMALLEST_SHARE, SUM_TOLERANCE, UNIFORM, Allocation, refused
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.files import csv_text
from dpviz.core.number_text import numeral

SHARE_DIGITS = 6
"""Decimals of a share that was dragged."""


def rebalance(theta: FloatArray, locked: NDArray[np.bool_]) -> FloatArray:
    """Return theta with the unlocked entries rescaled so that all sum to 1.

    Parameters
    ----------
    theta : ndarray of shape (d,)
        At least 0 each; unlocked entries keep their proportions, or become
        equal where they are all 0.
    locked : ndarray of bool, shape (d,)

    Raises
    ------
    InvalidSetting
        If the locked entries leave the others less than `SMALLEST_SHARE` each,
        or everything is locked and the sum is not 1.
    """
    fixed = math.fsum(theta[locked])
    free = int((~locked).sum())
    left = 1.0 - fixed
    if free == 0:
        if abs(left) > SUM_TOLERANCE:
            raise refused("shares that sum to 1; all are locked", f"a sum of {numeral(fixed, 7)}")
        return theta / fixed
    if left < free * SMALLEST_SHARE:
        raise refused(
            f"locked shares that leave at least {numeral(SMALLEST_SHARE, 6)} for each of the other "
            f"{free}",
            f"locked shares that sum to {numeral(fixed, 7)}",
        )
    result = theta.astype(np.float64)
    weights = np.maximum(theta[~locked], 0.0)
    total = math.fsum(weights)
    weights = weights / total if total > 0 else np.full(free, 1.0 / free)
    # What lies above the least share is divided in proportion, so no entry falls below it.
    result[~locked] = SMALLEST_SHARE + (left - free * SMALLEST_SHARE) * weights
    return result


def shares_table(allocation: Allocation, names: Sequence[str]) -> pd.DataFrame:
    """Return the shares to edit: columns direction, theta and locked.

    Where the shares follow from a spectrum, the table starts from equal ones.
    """
    d = len(names)
    shares = UNIFORM.shares(d) if allocation.needs_spectrum else allocation.shares(d)
    return pd.DataFrame({"direction": list(names), "theta": shares, "locked": False})


def rebalanced_text(table: pd.DataFrame) -> str:
    """Return the text of an edited table of shares after `rebalance`.

    Parameters
    ----------
    table : DataFrame
        As `shares_table` returns it, edited.

    Raises
    ------
    InvalidSetting
        If a share is missing, or the locked ones leave the others too little.
    """
    theta = table["theta"].to_numpy(dtype=np.float64)
    _check_numbers(theta)
    return custom_text(rebalance(theta, table["locked"].to_numpy(dtype=np.bool_)).tolist())


def moved_text(theta: Sequence[float], locked: Sequence[bool], moved: int) -> str:
    """Return the text of shares after one of them was dragged to its place.

    The one that moved stays, locked ones stay, and the others are rescaled by `rebalance`. Shares
    are rounded to `SHARE_DIGITS` decimals.

    Parameters
    ----------
    theta : sequence of float
    locked : sequence of bool
    moved : int
        Index of the share that was dragged.

    Raises
    ------
    InvalidSetting
        If these are not shares, or the ones that stay leave the others too little.
    """
    _check_numbers(theta)
    if len(locked) != len(theta) or not 0 <= moved < len(theta):
        raise refused("one lock for each share", f"{len(locked)} locks")
    shares, stays = np.array(theta, dtype=np.float64), np.array(locked, dtype=np.bool_)
    shares[moved] = max(shares[moved], SMALLEST_SHARE)
    stays[moved] = True
    shares = np.round(rebalance(shares, stays), SHARE_DIGITS)
    # What rounding leaves over goes where it is felt least, and not to what stays.
    place = int(np.where(stays & ~stays.all(), 0.0, shares).argmax())
    shares[place] = round(float(shares[place]) + 1 - math.fsum(shares), SHARE_DIGITS)
    return custom_text(shares.tolist())


def _check_numbers(shares: Sequence[float] | FloatArray) -> None:
    if not np.isfinite(np.asarray(shares, dtype=np.float64)).all():
        raise InvalidSetting("allocation", "shares that are numbers", "a blank", "--allocation")


def custom_text(shares: Sequence[float]) -> str:
    """Return the settings text of a custom allocation; raises unless it sums to 1."""
    _check_numbers(shares)
    return Allocation("custom", theta=tuple(float(share) for share in shares)).text[0]


def shares_file(allocation: Allocation, names: Sequence[str], shares: Sequence[float]) -> str:
    """Return shares as the text of a CSV file that can be read back.

    Features go by name; principal directions have numbers only.
    """
    key = "feature" if allocation.directions == "features" else "direction"
    keys = list(names) if key == "feature" else list(range(1, len(names) + 1))
    return csv_text(pd.DataFrame({key: keys, "theta": list(shares)}))
