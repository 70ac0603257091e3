"""SVG as image elements: pages strip SVG elements, and show these."""

from __future__ import annotations

import base64
from html import escape


def source(svg: str) -> str:
    """Return an SVG as the address of an image."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def image(svg: str, words: str, style: str) -> str:
    """Return an SVG as an image element.

    Parameters
    ----------
    svg : str
    words : str
        What the picture says, for those who do not see it.
    style : str
        Of the element, in CSS.
    """
    return f'<img src="{source(svg)}" alt="{escape(words)}" style="{style}">'


IN_COLOUR = "#2a7fd0"


def picture(svg: str, words: str, width: int, height: int | None = None) -> str:
    """Return an SVG as an image element, which pages that strip SVG elements show too."""
    return (
        f'<img src="{source(svg)}" width="{width}" height="{height or width}" '
        f'alt="{escape(words)}">'
    )


def hundred(count: int, words: str, size: int = 120) -> str:
    """Return ten by ten circles, so many of them filled, as an image element.

    Parameters
    ----------
    count : int
        From 0 to 100.
    words : str
        What the picture says, for those who do not see it.
    size : int
        Pixels of each side.
    """
    cells = "".join(
        f'<circle cx="{5 + 10 * (index % 10)}" cy="{5 + 10 * (index // 10)}" r="3.6" '
        f'fill="{IN_COLOUR if index < count else "none"}" '
        f'stroke="{IN_COLOUR if index < count else "#8a93a0"}"/>'
        for index in range(100)
    )
    svg = f'<svg viewBox="0 0 100 100" xmlns="http://www.w3.org/2000/svg">{cells}</svg>'
    return picture(svg, words, size)
