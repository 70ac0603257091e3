"""A grid of ECharts panels that rearranges itself on a narrow screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpviz.figures.theme import Panel

NARROW = 640  # pixels; below it the grid has fewer columns
_TITLE, _LINE, _GAP, _LEFT = 46, 14, 26, 46  # pixels


def columns_for(count: int, *, narrow: bool) -> int:
    """Return how many panels stand side by side."""
    most = 2 if narrow else (3 if count <= 9 else 4)
    return min(count, most)


def height_for(count: int) -> int:
    """Return a height in pixels that suits the wide and the narrow grid."""
    wide = math.ceil(count / columns_for(count, narrow=False)) * 232
    narrow = math.ceil(count / columns_for(count, narrow=True)) * 150
    return max(wide, narrow) + 30


def layout(
    count: int, height: int, *, narrow: bool, lines: int = 1
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the position of each panel's grid and title.

    Parameters
    ----------
    count : int
        Number of panels.
    height : int
        Of the whole chart, in pixels.
    narrow : bool
    lines : int
        Lines below each title's first.

    Returns
    -------
    grids : list of dict
        ECharts ``grid`` positions.
    titles : list of dict
        ECharts ``title`` positions.
    """
    across = columns_for(count, narrow=narrow)
    cell_height = (height - 30) / math.ceil(count / across)
    width = 100 / across
    # Room for tick labels, about _LEFT pixels at the usual width of each layout.
    margin = width * (0.2 if narrow else _LEFT / 340)
    title = _TITLE + _LINE * (lines - 1)
    grids, titles = [], []
    for number in range(count):
        row, column = divmod(number, across)
        left, top = column * width, row * cell_height
        grids.append(
            {
                "left": f"{left + margin:.2f}%",
                "width": f"{width * 0.96 - margin:.2f}%",
                "top": round(top + title),
                "height": round(cell_height - title - _GAP),
            }
        )
        titles.append({"left": f"{left + width * 0.03:.2f}%", "top": round(top) + 4})
    return grids, titles


def responsive(
    panels: Sequence[Panel], base: dict[str, Any], height: int, subtexts: Sequence[str]
) -> dict[str, Any]:
    """Return the option with one titled grid per panel, wide and narrow.

    Parameters
    ----------
    panels : sequence of Panel
    base : dict
        The option without ``grid`` and ``title``.
    height : int
        Of the whole chart, in pixels.
    subtexts : sequence of str
        What stands below each title, one line or more.
    """

    def titled(narrow: bool) -> dict[str, Any]:
        lines = 1 + max(text.count("\n") for text in subtexts)
        grids, titles = layout(len(panels), height, narrow=narrow, lines=lines)
        size = 11 if narrow else 13
        texts = [
            {
                **position,
                "text": panel.label,
                "subtext": subtext,
                "itemGap": 3,
                "padding": 0,
                "textStyle": {"fontSize": size, "lineHeight": size + 4, "fontWeight": 600},
                "subtextStyle": {"fontSize": size - 2, "lineHeight": size + 2},
            }
            for panel, subtext, position in zip(panels, subtexts, titles, strict=True)
        ]
        return {"grid": grids, "title": texts}

    wide = titled(narrow=False)
    return {
        "baseOption": {**base, **wide},
        "media": [
            {"query": {"maxWidth": NARROW}, "option": titled(narrow=True)},
            {"option": wide},
        ],
    }
