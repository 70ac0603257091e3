"""The options of a real release, declared once for the command line and the page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpviz.base.params import Declared, again, format_number, integer, params_of, text
from dpviz.errors import InvalidSetting
from dpviz.releasing.grid import BITS_RANGE, DEFAULT_BITS
from dpviz.settings import Settings
from dpviz.values.bounds_text import pair_of

BOUNDS_ALLOWED = "LOW:HIGH for all features, known, none, or a file with feature, low, high"
NO_BOUNDS = "none"
_CENTRINGS = params_of(Settings)["center"].choices
LARGEST_EPSILON = 100.0
"""Of a real release: beyond it nothing is protected, and OpenDP's privacy curves overflow."""


def _row_bound(value: str) -> str:
    """Return a row bound in canonical text; only a number is public."""
    try:
        bound = float(value)
    except ValueError:
        bound = math.nan
    if not 0 < bound < math.inf:
        raise InvalidSetting(
            "row bound",
            "a number above 0 that was known before anybody looked at the table",
            value or "nothing",
            "--row-bound",
        )
    return format_number(bound)


def _bounds(value: str) -> str:
    """Return bounds as given; a pair of numbers in canonical text."""
    if not value:
        raise InvalidSetting("bounds", BOUNDS_ALLOWED, "nothing", "--bounds")
    pair = pair_of(value)
    return value if pair is None else f"{format_number(pair[0])}:{format_number(pair[1])}"


def limit_of(written: str) -> tuple[float, float]:
    """Return the epsilon and delta of ``EPSILON,DELTA``; the delta may be left out."""
    first, _, second = written.partition(",")
    try:
        return float(first), float(second or 0)
    except ValueError:
        raise InvalidSetting("limit", "written EPSILON,DELTA", written, "--limit") from None


@dataclass(frozen=True)
class ReleaseOptions(Declared):
    """What is released, and everything that is public about the table beforehand."""

    table: str = again(
        Settings,
        "table",
        help="Built-in table, or the path of a CSV or Parquet file without missing values.",
    )
    row_bound: str = text(
        "",
        label="Row bound",
        help="R, the largest length of a centred row, in the table's units: a number that was "
        "known before anybody looked at the table. Longer rows are scaled down.",
        examples=("40",),
    )
    bounds: str = text(
        "",
        label="Feature bounds",
        help="Public bounds of each feature: LOW:HIGH for all of them; a CSV or Parquet file with "
        "the columns feature, low, high; known (the table's own public bounds); or none, if only "
        "the row bound is to hold.",
        examples=("0:16",),
    )
    center: str = again(
        Settings,
        "center",
        default="midpoint",
        optional=False,
        choices={name: _CENTRINGS[name] for name in ("midpoint", "none")},
        help="What is subtracted from each feature; without bounds nothing is.",
        examples=("none",),
    )
    epsilon: float = again(
        Settings,
        "epsilon",
        high=LARGEST_EPSILON,
        help="Privacy loss that the release is proved to stay within.",
    )
    delta: float = again(
        Settings,
        "delta",
        default=1e-6,
        optional=False,
        help="Its delta; 0 needs a mechanism without delta.",
    )
    k: int = again(Settings, "k", help="Number of principal components in the file.")
    relation: str = again(Settings, "relation")
    mechanism: str | None = text(
        None,
        label="Mechanism",
        help="One with a sampler that is safe on a computer; auto takes Gaussian noise where "
        "delta is above 0 and Laplace noise where it is 0.",
        optional=True,
        examples=("some_key",),
    )
    grid: int | None = integer(
        None,
        *BITS_RANGE,
        label="Grid",
        help="Rows are cut to multiples of 2^-grid row bounds; auto takes "
        f"{DEFAULT_BITS}, or the finest that this many rows allow.",
        optional=True,
        examples=(16,),
    )
    label: str | None = again(Settings, "label", help="Column that is left out of the analysis.")

    def require(self) -> None:
        """Raise `InvalidSetting` where the row bound or the bounds are missing or wrong."""
        _row_bound(self.row_bound)
        _bounds(self.bounds)
