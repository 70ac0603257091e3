"""The small pictures of the glossary."""

from __future__ import annotations

from collections.abc import Sequence

from dpviz.core.number_text import parseable
from dpviz.lessons.glossary import Layer, Term
from dpviz.report.figures.svg import picture

_TONES = {"main": "#2a7fd0", "other": "#c98500", "faint": "#8a93a0"}
_WIDTH, _HEIGHT, _PAD = 240.0, 140.0, 10.0


def term_picture(term: Term) -> str:
    """Return a term's picture as an image element."""
    words = f"{term.word}: {term.shows}"
    return picture(layers_svg(term.picture(), term.space), words, round(_WIDTH), round(_HEIGHT))


def layers_svg(layers: Sequence[Layer], space: bool = False) -> str:
    """Return layers as an SVG on shared axes; bars stand on zero.

    Parameters
    ----------
    layers : sequence of Layer
    space : bool
        Whether a unit is as long across as up.
    """
    left = min(float(layer.x.min()) for layer in layers)
    right = max(float(layer.x.max()) for layer in layers)
    low = min(float(layer.y.min()) for layer in layers)
    high = max(float(layer.y.max()) for layer in layers)
    if any(layer.kind == "bars" for layer in layers):
        # bars stand on 0 and are half a step wide on each side
        low, left, right = min(low, 0.0), left - 0.5, right + 0.5

    per_x = (_WIDTH - 2 * _PAD) / ((right - left) or 1.0)
    per_y = (_HEIGHT - 2 * _PAD) / ((high - low) or 1.0)
    if space:
        # an angle between directions is then seen as it is
        per_x = per_y = min(per_x, per_y)

    def x(value: float) -> float:
        return _WIDTH / 2 + per_x * (value - (left + right) / 2)

    def y(value: float) -> float:
        return _HEIGHT / 2 - per_y * (value - (low + high) / 2)

    parts = []
    for layer in layers:
        tone = _TONES[layer.tone]
        points = [(x(float(a)), y(float(b))) for a, b in zip(layer.x, layer.y, strict=True)]
        if layer.kind == "line":
            joined = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
            parts.append(
                f'<polyline points="{joined}" fill="none" stroke="{tone}" stroke-width="2.5"/>'
            )
        elif layer.kind == "bars":
            width = 0.7 * (x(left + 1) - x(left))
            parts += [
                f'<rect x="{a - width / 2:.1f}" y="{b:.1f}" width="{width:.1f}" '
                f'height="{max(y(0.0) - b, 0.0):.1f}" fill="{tone}"/>'
                for a, b in points
            ]
        else:
            # few are pointed at, many are a cloud
            size = 2.5 if len(points) > 5 else 6
            parts += [
                f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{size}" fill="{tone}"/>' for a, b in points
            ]
    return (
        f'<svg viewBox="0 0 {parseable(_WIDTH, 6)} {parseable(_HEIGHT, 6)}" xmlns="http://www.w3.org/2000/svg">'
        f"{''.join(parts)}</svg>"
    )
