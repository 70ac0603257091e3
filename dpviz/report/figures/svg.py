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
