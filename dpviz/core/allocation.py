"""The precision allocation: which directions get how much of the precision.

An allocation is public. It gives each of d directions a share theta of the
precision, and says what the directions are: the features, private principal
directions bought with a share of the budget, or (for teaching, and not
private) the true ones. Directions are numbered from 1: features in the order
of the table in use, principal directions by descending variance.

Source
------
Chanyaswad, Dytso, Poor and Mittal 2018, sections 6 and 7. That no direction
may get less than a floor is ours: without it the noise there is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import numeral
from dpviz.core.params import format_number

SMALLEST_SHARE = 1e-6
"""Least share that a user may give a direction."""

DEFAULT_SHARE = 0.2
"""Share of the budget that buys private directions, as in the paper's experiments."""

SHARE_RANGE = (0.01, 0.95)

ALLOCATION_ALLOWED = (
    "uniform, binary:COLUMNS:TAU, max-pnr, custom:SHARES or a CSV file with the columns feature "
    "(or direction) and theta"
)
DIRECTIONS_ALLOWED = (
    "features, private:SHARE or private:SHARE:MECHANISM with SHARE from "
    f"{numeral(SHARE_RANGE[0], 6)} to {numeral(SHARE_RANGE[1], 6)}, or true"
)

SUM_TOLERANCE = 1e-6  # shares are written with few digits


def refused(allowed: str, given: object) -> InvalidSetting:
    """Return the error of an allocation that is not allowed."""
    return InvalidSetting("allocation", allowed, given, "--allocation")


@dataclass(frozen=True)
class Allocation:
    """How precision is shared among directions, and what the directions are.

    Attributes
    ----------
    strategy : {"uniform", "binary", "max-pnr", "custom"}
    directions : {"features", "private", "true"}
    chosen : tuple of int
        For ``binary``: the chosen directions, from 1, ascending.
    tau : float
        For ``binary``: the share that the chosen ones divide equally, in (0, 1); else 0.
    theta : tuple of float
        For ``custom``: one share per direction, summing to 1.
    share : float
        For ``private``: the share of the budget that buys the directions; else 0.
    supplier : str
        For ``private``: text of the variant that supplies them; empty for the default.
    """

    strategy: str = "uniform"
    directions: str = "features"
    chosen: tuple[int, ...] = ()
    tau: float = 0.0
    theta: tuple[float, ...] = ()
    share: float = 0.0
    supplier: str = ""

    def __post_init__(self) -> None:
        if self.strategy not in ("uniform", "binary", "max-pnr", "custom"):
            raise refused(ALLOCATION_ALLOWED, self.strategy)
        if self.directions not in ("features", "private", "true"):
            raise InvalidSetting("directions", DIRECTIONS_ALLOWED, self.directions, "--directions")
        low, high = SHARE_RANGE
        if self.directions == "private" and not low <= self.share <= high:
            raise InvalidSetting("directions", DIRECTIONS_ALLOWED, self.text[1], "--directions")
        if self.supplier and self.directions != "private":
            raise InvalidSetting("directions", DIRECTIONS_ALLOWED, self.directions, "--directions")
        if self.strategy == "binary":
            if not self.chosen or min(self.chosen) < 1:
                raise refused("a choice of at least one direction, numbered from 1", self.text[0])
            if not SMALLEST_SHARE <= self.tau <= 1 - SMALLEST_SHARE:
                raise refused("binary with a TAU above 0 and below 1", self.text[0])
            object.__setattr__(self, "chosen", tuple(sorted(set(self.chosen))))
        if self.strategy == "custom":
            _check_shares(self.theta)

    @property
    def text(self) -> tuple[str, str]:
        """The allocation and the directions as the settings write them."""
        if self.strategy == "binary":
            written = f"binary:{_joined(self.chosen)}:{format_number(self.tau)}"
        elif self.strategy == "custom":
            written = "custom:" + ",".join(format_number(share) for share in self.theta)
        else:
            written = self.strategy
        if self.directions != "private":
            return written, self.directions
        named = f":{self.supplier}" if self.supplier else ""
        return written, f"private:{format_number(self.share)}{named}"

    @property
    def needs_spectrum(self) -> bool:
        """Whether the shares follow from the variances along the directions."""
        return self.strategy == "max-pnr"

    def check_dimension(self, d: int) -> None:
        """Raise InvalidSetting if the allocation is not one of d directions."""
        if self.strategy == "binary":
            if self.chosen[-1] > d:
                raise refused(f"a choice of directions from 1 to {d}", self.text[0])
            if len(self.chosen) == d:
                raise refused(f"a choice of fewer than all {d} directions", self.text[0])
        elif self.strategy == "custom" and len(self.theta) != d:
            raise refused(f"{d} shares, one per direction", f"{len(self.theta)} shares")

    def shares(self, d: int) -> FloatArray:
        """Return theta of shape (d,), positive and summing to 1.

        Raises
        ------
        InvalidSetting
            If the allocation is not one of d directions, or needs a spectrum.
        """
        self.check_dimension(d)
        if self.strategy == "uniform":
            return np.full(d, 1.0 / d)
        if self.strategy == "binary":
            theta = np.full(d, (1.0 - self.tau) / (d - len(self.chosen)))
            theta[np.array(self.chosen) - 1] = self.tau / len(self.chosen)
            return theta
        if self.strategy == "custom":
            return np.array(self.theta) / math.fsum(self.theta)
        raise refused("one whose shares are known without a spectrum here", self.strategy)


UNIFORM = Allocation()


def _check_shares(theta: Sequence[float]) -> None:
    if len(theta) < 2:
        raise refused("at least 2 shares", f"{len(theta)} shares")
    if not all(share >= SMALLEST_SHARE for share in theta):  # also true for NaN
        raise refused(
            f"shares of at least {numeral(SMALLEST_SHARE, 6)} each", format_number(min(theta))
        )
    total = math.fsum(theta)
    if abs(total - 1) > SUM_TOLERANCE:
        raise refused(
            "shares that sum to 1", f"{len(theta)} shares that sum to {numeral(total, 7)}"
        )


def _joined(items: Sequence[object]) -> str:
    return ",".join(str(item) for item in items)
