"""The axes of a sweep, and a table at one value of an axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpviz.core.entries import PRIVATE
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import parseable
from dpviz.core.params import Param, params_of
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import BoundedTable
from dpviz.preparation.load import PlannedTable
from dpviz.preparation.prepared import Measured

N_RANGE = (2, 10**15)


def axis_param(axis: str) -> Param:
    """Return the declaration of an axis: range, kind and words.

    Raises
    ------
    InvalidSetting
        If `AXES` does not contain the axis.
    """
    if axis not in AXES:
        raise InvalidSetting("over", f"one of {', '.join(AXES)}", axis, "--over")
    return AXES[axis]


def _axes() -> dict[str, Param]:
    params = params_of(Settings)
    n = Param(
        "n", "integer", None, "People n", "Rows the release stands for.", "--values",
        low=N_RANGE[0], high=N_RANGE[1],
    )  # fmt: skip
    common = {name: params[name] for name in ("epsilon", "delta", "k")}
    return {**common, "n": n, "row_bound": params["row_bound"]}


AXES = _axes()
"""The axes that `sweep` can vary, keyed by name."""


def parse_values(axis: str, text: str) -> list[Any]:
    """Return the values of an axis written as ``A,B,C``; each item may be ``low:high:count``.

    A range has ``count`` values, equally spaced on a logarithmic scale, rounded
    to six digits (whole numbers for k and n).

    Raises
    ------
    InvalidSetting
        If a value is not allowed on this axis.
    """
    param = axis_param(axis)
    values: list[Any] = []
    for item in text.split(","):
        parts = item.split(":")
        texts = _spaced(axis, parts, item) if len(parts) == 3 else [item]
        values += [clean_value(param, axis, value) for value in texts]
    return values


def clean_value(param: Param, axis: str, value: Any) -> Any:
    """Return one value of an axis, parsed and within its range."""
    flag = f"--values (of {axis})"
    try:
        number = param.parse(value) if isinstance(value, str) else param.clean(value)
    except InvalidSetting as error:
        raise InvalidSetting(axis, error.allowed, error.given, flag) from None
    if str(number).startswith(f"{PRIVATE}:"):
        rule = "max, a number or quantile:Q along an axis: a private bound differs in each draw"
        raise InvalidSetting(axis, rule, number, flag)
    return number


def _spaced(axis: str, parts: Sequence[str], item: str) -> list[Any]:
    error = InvalidSetting(
        axis, "low:high:count with 0 < low < high and a count of 2 to 1000", item, "--values"
    )
    try:
        low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
    except ValueError:
        raise error from None
    if not (0 < low < high < math.inf and 2 <= count <= 1_000):
        raise error
    # Round values to six digits, so that the table shows exactly the values that were simulated.
    values = [float(f"{value:.6g}") for value in np.geomspace(low, high, count)]
    if AXES[axis].kind == "integer":
        return list(dict.fromkeys(round(value) for value in values))
    return [parseable(value, 6) for value in values] if axis == "row_bound" else values


COARSE, FINE = 7, 13

AXES_OF_PLANS = {name: param for name, param in AXES.items() if name != "row_bound"}
"""The axes that can be varied without rows, keyed by name."""
_MOST_K = 20  # Larger k is too slow, because sampling time grows with k squared.


def default_values(axis: str, rows: Measured, count: int) -> list[Any]:
    """Return values that suit a table, in increasing order.

    A fine list contains the coarse list, so refining reuses finished simulations.

    Parameters
    ----------
    axis : str
        Name of an axis in `dpviz.simulation.axes.AXES`.
    rows : Measured
    count : int
        `COARSE` or `FINE`.

    Raises
    ------
    InvalidSetting
        If the axis cannot be varied on this table.
    """
    axis_param(axis)
    if axis == "epsilon":
        return [_rounded(value) for value in np.geomspace(0.01, 100, count)]
    if axis == "delta":
        return [_rounded(value) for value in np.geomspace(1e-10, 1e-2, count)]
    if axis == "n":
        low, high = max(20.0, rows.n / 30), 300.0 * rows.n
        return sorted({*(int(value) for value in np.geomspace(low, high, count)), rows.n})
    if axis == "k":
        most = min(rows.d - 1, _MOST_K)
        return sorted({round(value) for value in np.geomspace(1, most, count)})
    if rows.domain.kind == "box":
        raise InvalidSetting(
            "the varied quantity", "epsilon, delta, k or n if the domain is box", axis
        )
    return [f"quantile:{_rounded(level)}" for level in np.linspace(0.05, 0.95, count - 1)] + ["max"]


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def rows_at(rows: Measured, axis: str, value: Any, seed: int, with_rows: bool = False) -> Measured:
    """Return the table at one value of an axis, unchanged if the axis does not affect rows.

    For another n, the bounded rows are included on request, up to the number of rows that exist.

    Raises
    ------
    InvalidSetting
        If the axis needs rows and the table has none.
    """
    if axis == "n" and isinstance(rows, (BoundedTable, PlannedTable)):
        return rows.with_n(int(value), seed, with_rows=with_rows and value <= rows.n)
    if axis == "row_bound" and isinstance(rows, (BoundedTable, PlannedTable)):
        return rows.rebound(str(value))
    if axis in ("n", "row_bound"):
        raise InvalidSetting("over", "epsilon, delta or k if no table is given", axis, "--over")
    return rows


def settings_at(settings: Settings, axis: str, value: Any) -> Settings:
    """Return the settings at one value of an axis; n is not among the settings."""
    return settings if axis == "n" else replace(settings, **{axis: value})


def where(rows: Measured, measured: Measured, axis: str, value: Any) -> tuple[float, float]:
    """Return a value's plot position, and its squared row-norm bound over the base setting's."""
    if axis == "row_bound":
        return measured.row_bound, (measured.row_bound / rows.row_bound) ** 2
    return float(value), 1.0


def now(rows: Measured, settings: Settings, axis: str) -> float:
    """Return the position of the current setting on an axis."""
    values: Mapping[str, float] = {
        "epsilon": settings.epsilon,
        "delta": rows.budget(settings).delta,
        "k": settings.k,
        "n": rows.n,
        "row_bound": rows.row_bound,
    }
    return float(values[axis])
