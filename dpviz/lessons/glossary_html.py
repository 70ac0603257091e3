"""The small charts of the glossary."""

from __future__ import annotations

from collections.abc import Sequence

from dpviz.core.number_text import parseable
from dpviz.lessons.glossary import Layer, Term
from dpviz.report.figures.svg import picture

_TONES = {"main": "#2a7fd0", "other": "#c98500", "faint": "#8a93a0"}
_WIDTH, _HEIGHT, _PAD = 240.0, 140.0, 10.0


def term_picture(term: Term) -> str:
    """Return a term's chart as an image element."""
    words = f"{term.word}: {term.shows}"
    return picture(layers_svg(term.picture(), term.space), words, round(_WIDTH), round(_HEIGHT))


def layers_svg(layers: Sequence[Layer], space: bool = False) -> str:
    """Return layers as an SVG on shared axes; bars start at zero.

    Parameters
    ----------
    layers : sequence of Layer
    space : bool
        Whether both axes have the same scale.
    """
    start = min(float(layer.x.min()) for layer in layers)
    right = max(float(layer.x.max()) for layer in layers)
    low = min(float(layer.y.min()) for layer in layers)
    high = max(float(layer.y.max()) for layer in layers)
    if any(layer.kind == "bars" for layer in layers):
        # Bars start at 0 and extend half a step to the left and right.
        low, start, right = min(low, 0.0), start - 0.5, right + 0.5

    per_x = (_WIDTH - 2 * _PAD) / ((right - start) or 1.0)
    per_y = (_HEIGHT - 2 * _PAD) / ((high - low) or 1.0)
    if space:
        # Use equal scales for both axes, so that angles between directions look right.
        per_x = per_y = min(per_x, per_y)

    def x(value: float) -> float:
        return _WIDTH / 2 + per_x * (value - (start + right) / 2)

    def y(value: float) -> float:
        return _HEIGHT / 2 - per_y * (value - (low + high) / 2)

    parts = []
    for layer in layers:
        tone = _TONES[layer.tone]
        points = [(x(float(a)), y(float(b))) for a, b in zip(layer.x, layer.y, strict=True)]
        if layer.kind == "line":
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            parts.append(
                f'<polyline points="{path}" fill="none" stroke="{tone}" stroke-width="2.5"/>'
            )
        elif layer.kind == "bars":
            width = 0.7 * (x(start + 1) - x(start))
            parts += [
                f'<rect x="{a - width / 2:.1f}" y="{b:.1f}" width="{width:.1f}" '
                f'height="{max(y(0.0) - b, 0.0):.1f}" fill="{tone}"/>'
                for a, b in points
            ]
        else:
            # Show a few points larger than the points of a large cloud.
            size = 2.5 if len(points) > 5 else 6
            parts += [
                f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{size}" fill="{tone}"/>' for a, b in points
            ]
    return (
        f'<svg viewBox="0 0 {parseable(_WIDTH, 6)} {parseable(_HEIGHT, 6)}" xmlns="http://www.w3.org/2000/svg">'
        f"{''.join(parts)}</svg>"
    )
