"""The 2-D picture of the rows in each released space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpviz.figures import grid
from dpviz.figures.theme import LABEL_COLOURS, TRUE_COLOUR, Panel

# In the order of LABEL_SHAPES.
_SYMBOLS = ("circle", "rect", "triangle", "diamond", "pin", "arrow")
TRUE_PANEL = Panel("", "Exact PCA", "not private", TRUE_COLOUR, "circle", "solid")


def projection_figure(
    table: pd.DataFrame, panels: Sequence[Panel], *, k: int, label_name: str | None
) -> tuple[dict[str, Any], int]:
    """Draw one panel of points per mechanism, the exact picture first.

    Parameters
    ----------
    table : DataFrame
        `dpviz.tidy.projection.PICTURE_COLUMNS`.
    panels : sequence of Panel
    k : int
        1 draws strips, more draws clouds.
    label_name : str or None
        What the colours mean.

    Returns
    -------
    option : dict
        ECharts option.
    height : int
        In pixels.
    """
    # The exact picture comes first; the baseline that releases it would be the same again.
    panels = [TRUE_PANEL, *(panel for panel in panels if panel.label != TRUE_PANEL.label)]
    labels = table["label"]
    numeric = labels.dtype.kind == "f" or (
        labels.dtype.kind in "iu" and labels.nunique() > len(LABEL_COLOURS)
    )
    limit_x = 1.05 * float(table["x"].abs().max() or 1.0)
    limit_y = 1.05 * float(table["y"].abs().max() or 1.0) if k > 1 else 1.6
    kinds = [] if numeric else sorted(labels.unique(), key=str)

    # One series per panel: a browser draws few long series sooner than many short ones. The third
    # number of a point says its colour: the label itself, or its place among the labels.
    third = labels.to_numpy(dtype=float) if numeric else _places(labels, kinds)
    points = np.column_stack([table["x"], table["y"], third])
    points[:, :2] = np.round(points[:, :2], 4)
    groups = table.groupby("mechanism", sort=False).indices
    series: list[dict[str, Any]] = [
        {
            "type": "scatter", "name": panel.label, "xAxisIndex": number, "yAxisIndex": number,
            "symbolSize": 4, "itemStyle": {"opacity": 0.75}, "animation": False, "silent": True,
            "data": points[groups[panel.key]].tolist(),
        }
        for number, panel in enumerate(panels)
    ]  # fmt: skip

    axis = {
        "type": "value", "axisLabel": {"show": False}, "axisTick": {"show": False},
        "splitLine": {"show": False}, "axisLine": {"lineStyle": {"opacity": 0.4}},
    }  # fmt: skip
    base: dict[str, Any] = {
        "animation": False,
        "xAxis": [
            {**axis, "gridIndex": i, "min": -limit_x, "max": limit_x} for i in range(len(panels))
        ],
        "yAxis": [
            {**axis, "gridIndex": i, "min": -limit_y, "max": limit_y, "show": k > 1}
            for i in range(len(panels))
        ],
        "series": series,
        "toolbox": {"right": 0, "bottom": 0, "feature": {"saveAsImage": {"name": "projection"}}},
    }
    if numeric:
        values = labels.to_numpy(dtype=float)
        base["visualMap"] = {
            "min": float(values.min()), "max": float(values.max()), "dimension": 2,
            "orient": "horizontal", "left": "center", "bottom": 0, "itemHeight": 120,
            "itemWidth": 10, "text": [f"high {label_name or ''}".strip(), "low"],
            "inRange": {"color": ["#440154", "#31688E", "#35B779", "#FDE725"]},
        }  # fmt: skip
    else:
        looks = [_look(place) for place in range(len(kinds))]
        base["visualMap"] = {
            "type": "piecewise", "show": False, "dimension": 2,
            "seriesIndex": list(range(len(panels))),
            "pieces": [
                {"value": place, "color": look["color"], "symbol": look["symbol"]}
                for place, look in enumerate(looks)
            ],
        }  # fmt: skip
        if len(kinds) > 1:
            # Series without points, so that the legend has something to name.
            series += [
                {"type": "scatter", "name": str(kind), "symbol": look["symbol"], "data": [],
                 "itemStyle": {"color": look["color"]}, "silent": True}
                for kind, look in zip(kinds, looks, strict=True)
            ]  # fmt: skip
            base["legend"] = {
                "bottom": 0, "left": "center", "type": "scroll", "width": "80%", "itemWidth": 10,
                "itemHeight": 10, "selectedMode": False, "data": [str(kind) for kind in kinds],
            }  # fmt: skip
    height = grid.height_for(len(panels)) + 20
    subtexts = [panel.status for panel in panels]
    return grid.responsive(panels, base, height, subtexts), height


def _places(labels: pd.Series, kinds: list[Any]) -> np.ndarray:
    """Return each row's place among the labels, as numbers."""
    return pd.Categorical(labels, categories=kinds).codes.astype(float)


def _look(place: int) -> dict[str, str]:
    """Return colour and symbol of a label by its place; no two of them share both."""
    return {
        "color": LABEL_COLOURS[place % len(LABEL_COLOURS)],
        "symbol": _SYMBOLS[place % len(_SYMBOLS)],
    }
