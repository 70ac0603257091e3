"""The noisy eigenspectrum of each mechanism against the true one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpviz.figures import grid
from dpviz.figures.theme import TRUE_COLOUR, Panel, SymmetricLog

_FAR = 1e3  # times the largest true eigenvalue


def _axis_scale(table: pd.DataFrame, scale: str) -> SymmetricLog | None:
    """Return the symmetric logarithm for this spectrum, or None for linear."""
    if scale == "linear":
        return None
    true = table["true"].to_numpy()
    positive = true[true > 0]
    # Linear up to the typical true eigenvalue: what the reader looks for.
    return SymmetricLog(max(float(np.median(positive)), float(positive.max()) * 1e-4))


def spectrum_figure(
    table: pd.DataFrame,
    panels: Sequence[Panel],
    true: Sequence[float],
    edges: Mapping[str, tuple[float, float]],
    thresholds: Mapping[str, float],
    *,
    predicted: Mapping[str, Sequence[float]] | None = None,
    scale: str = "symmetric log",
) -> tuple[dict[str, Any], int]:
    """Draw one panel per mechanism: true spectrum, median and range of the draws.

    Parameters
    ----------
    table : DataFrame
        `dpviz.tidy.comparison.SPECTRUM_COLUMNS`.
    panels : sequence of Panel
    true : sequence of float
        All d true eigenvalues, descending.
    edges : mapping of str to (float, float)
        Noise edges of the variants that have them.
    thresholds : mapping of str to float
        Variance below which the noise hides a lone component, likewise.
    predicted : mapping of str to sequence of float, optional
        Expected noisy eigenvalues of the variants that have them, descending.
    scale : {"symmetric log", "linear"}

    Returns
    -------
    option : dict
        ECharts option.
    height : int
        In pixels.
    """
    axis = _axis_scale(table, scale)
    low, high, beyond = _range(table, max(true), edges)
    d = len(true)

    series: list[dict[str, Any]] = []
    x_axes: list[dict[str, Any]] = []
    y_axes: list[dict[str, Any]] = []
    bottom, top = (value if axis is None else axis.forward(value) for value in (low, high))
    span = (top - bottom) or 1.0
    decimals = 4 - math.floor(math.log10(span))  # far finer than a pixel

    def place(values: Any) -> np.ndarray:
        """Return the heights at which values are drawn."""
        values = np.asarray(values, dtype=float)
        heights: np.ndarray = values if axis is None else np.arcsinh(values / axis.threshold)
        return heights.round(decimals)

    parts = dict(iter(table.groupby("mechanism", sort=False)))
    released_by = {key: bool(part["released"].all()) for key, part in parts.items()}
    reference = _pairs(range(1, d + 1), place(true))
    for number, panel in enumerate(panels):
        part, released = parts[panel.key], released_by[panel.key]
        x_axes.append(_x_axis(number, d))
        y_axes.append(_y_axis(number, bottom, top, span, linear=axis is None))
        component = part["component"].to_list()
        lower, upper = place(part["low"]), place(part["high"])
        shared = {"xAxisIndex": number, "yAxisIndex": number, "animation": False}
        series += [
            {
                **shared, "type": "line", "name": "range, low", "stack": f"range{number}",
                "stackStrategy": "all", "symbol": "none", "silent": True,
                "lineStyle": {"opacity": 0}, "data": _pairs(component, lower),
                "tooltip": {"show": False},
            },
            {
                **shared, "type": "line", "name": "range, high", "stack": f"range{number}",
                "stackStrategy": "all", "symbol": "none", "silent": True,
                "lineStyle": {"opacity": 0}, "areaStyle": {"color": panel.colour, "opacity": 0.25},
                "data": _pairs(component, upper - lower), "tooltip": {"show": False},
            },
            {
                **shared, "type": "line", "name": "true", "z": 4,
                "symbol": "circle" if d <= 30 else "none", "symbolSize": 4,
                "lineStyle": {"color": TRUE_COLOUR, "width": 2},
                "itemStyle": {"color": TRUE_COLOUR},
                "data": reference,
                "markLine": _lines(
                    edges.get(panel.key), thresholds.get(panel.key), axis, low, high
                ),
            },
            {
                **shared, "type": "line", "z": 5,
                "name": "median of draws" if released else "captured per direction",
                "symbol": "circle" if len(component) <= 30 else "none",
                "symbolSize": 5 if released else 8,
                "lineStyle": {"color": panel.colour, "width": 2 if released else 0},
                "itemStyle": {"color": panel.colour},
                "data": _pairs(component, place(part["median"])),
            },
        ]  # fmt: skip
        expected = (predicted or {}).get(panel.key)
        if expected is not None:
            series.append(
                {
                    **shared, "type": "line", "name": "predicted", "z": 6, "symbol": "none",
                    "silent": True,
                    "lineStyle": {"color": TRUE_COLOUR, "width": 1.5, "type": "dotted"},
                    "data": _pairs(range(1, d + 1), place(expected)),
                }
            )  # fmt: skip

    subtexts = [
        panel.status
        + ("" if released_by[panel.key] else "\nno spectrum released")
        + ("\nnoise beyond the scale" if panel.key in beyond else "")
        for panel in panels
    ]
    base = {
        "animation": False,
        "xAxis": x_axes,
        "yAxis": y_axes,
        "series": series,
        "toolbox": {"right": 0, "bottom": 0, "feature": {"saveAsImage": {"name": "spectrum"}}},
    }
    height = grid.height_for(len(panels))
    return grid.responsive(panels, base, height, subtexts), height


def _range(
    table: pd.DataFrame, largest: float, edges: Mapping[str, tuple[float, float]]
) -> tuple[float, float, set[str]]:
    """Return the range that all panels share, and the variants that leave it.

    One mechanism whose noise is a million times the signal would press all
    others flat: beyond `_FAR` times the largest true eigenvalue lines leave
    their panel, unless all of them would.
    """
    tops, bottoms = {}, {}
    for key, part in table.groupby("mechanism", sort=False):
        lower, upper = edges.get(str(key), (0.0, 0.0))
        tops[str(key)] = max(float(part["high"].max()), upper)
        bottoms[str(key)] = min(float(part["low"].min()), lower)
    sizes = {key: max(tops[key], -bottoms[key]) for key in tops}
    limit = max(_FAR * largest, min(sizes.values()))
    inside = [key for key, size in sizes.items() if size <= limit]
    high = max([largest, *(tops[key] for key in inside)])
    low = min([0.0, *(bottoms[key] for key in inside)])
    return float(low), float(high), set(sizes) - set(inside)


def _pairs(xs: Any, ys: np.ndarray) -> list[list[float]]:
    return [[int(x), y] for x, y in zip(xs, ys.tolist(), strict=True)]


def _x_axis(number: int, d: int) -> dict[str, Any]:
    return {
        # From 0 in whole steps, so that ticks fall on components.
        "type": "value", "gridIndex": number, "min": 0,
        "max": d + 1, "interval": max(1, round(d / 5)),
        "axisLabel": {"fontSize": 10, "showMaxLabel": False, "showMinLabel": False},
        "splitLine": {"show": False}, "axisTick": {"show": False},
        "axisLine": {"onZero": False},
    }  # fmt: skip


def _y_axis(number: int, low: float, high: float, span: float, *, linear: bool) -> dict[str, Any]:
    return {
        "type": "value", "gridIndex": number,
        "min": low - 0.04 * span if low < 0 else low, "max": high + 0.04 * span,
        "axisLabel": {"show": linear, "fontSize": 10, "showMinLabel": False, "showMaxLabel": False},
        "splitLine": {"show": False}, "axisTick": {"show": False},
    }  # fmt: skip


def _lines(
    edge: tuple[float, float] | None,
    threshold: float | None,
    axis: SymmetricLog | None,
    low: float,
    high: float,
) -> dict[str, Any]:
    """Return the horizontal lines: ticks of the symmetric log, zero, noise edge and threshold."""
    # Faint by colour: an opacity would fade the labels too.
    faint = {"color": "rgba(127, 127, 127, 0.25)", "width": 1, "type": "solid"}
    data: list[dict[str, Any]] = []
    for position, text in [] if axis is None else axis.ticks(low, high):
        zero = text == "0"
        data.append(
            {
                "yAxis": position,
                "lineStyle": {**faint, "color": TRUE_COLOUR} if zero else faint,
                "label": {"position": "start", "formatter": text, "fontSize": 10, "distance": 4,
                          "color": TRUE_COLOUR, "opacity": 1},
            }
        )  # fmt: skip
    levels = (
        (edge and edge[1], "noise edge", "dotted", "insideEndTop"),
        (threshold, "threshold", "dashed", "insideEndBottom"),
    )
    for value, name, dash, place in levels:
        if value is None:
            continue
        data.append(
            {
                "yAxis": value if axis is None else axis.forward(value),
                "lineStyle": {"color": TRUE_COLOUR, "type": dash, "width": 1.5},
                "label": {"position": place, "formatter": name, "fontSize": 10,
                          "color": TRUE_COLOUR},
            }
        )  # fmt: skip
    return {"symbol": "none", "silent": True, "animation": False, "data": data}
