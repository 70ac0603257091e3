"""Small charts as image elements, because pages strip SVG elements: dots and thumbnails."""

from __future__ import annotations

import base64
from html import escape

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.report.tables.projection import LABEL_COLOURS


def source(svg: str) -> str:
    """Return an SVG text as a data URL."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


IN_COLOUR = "#2a7fd0"


def picture(svg: str, words: str, width: int, height: int | None = None) -> str:
    """Return an SVG text as an image element, because some pages strip SVG elements."""
    return (
        f'<img src="{source(svg)}" width="{width}" height="{height or width}" '
        f'alt="{escape(words)}">'
    )


def hundred(count: int, words: str, size: int = 120) -> str:
    """Return an image element with ten by ten circles, of which ``count`` are filled.

    Parameters
    ----------
    count : int
        Number of filled circles, from 0 to 100.
    words : str
        Alternative text of the image.
    size : int
        Side length in pixels.
    """
    cells = "".join(
        f'<circle cx="{5 + 10 * (index % 10)}" cy="{5 + 10 * (index // 10)}" r="3.6" '
        f'fill="{IN_COLOUR if index < count else "none"}" '
        f'stroke="{IN_COLOUR if index < count else "#8a93a0"}"/>'
        for index in range(100)
    )
    svg = f'<svg viewBox="0 0 100 100" xmlns="http://www.w3.org/2000/svg">{cells}</svg>'
    return picture(svg, words, size)


# Thumbnails ---------------------------------------------------------------------------------------


def thumbnail(x: FloatArray, y: FloatArray, kinds: NDArray[np.intp]) -> str:
    """Return points, coloured by kind, as the data URL of a small image."""
    reach = max(float(np.abs(x).max(initial=0)), float(np.abs(y).max(initial=0))) or 1.0
    across, up = np.rint(28 + 26 * x / reach).astype(int), np.rint(20 - 18 * y / reach).astype(int)
    paths = "".join(
        f'<path d="{"".join(f"M{a} {b}h0" for a, b in zip(across[here], up[here], strict=True))}" '
        f'stroke="{LABEL_COLOURS[kind % len(LABEL_COLOURS)]}"/>'
        for kind in np.unique(kinds).tolist()
        if (here := kinds == kind).any()
    )
    return source(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 56 40" width="56" height="40" '
        f'fill="none" stroke-width="2.4" stroke-linecap="round">{paths}</svg>'
    )
