"""The chart that needs no script: lines where the tables say, dashed where a claim fails."""

from __future__ import annotations

import base64
import math
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio
import pytest

import dpviz
from dpviz.report.figures.shown import IMAGE, PLOTLY, drawn
from dpviz.report.figures.svg import svg_curves
from dpviz.report.figures.theme import GREY, Panel
from dpviz.report.tables.comparison import PREDICTION_COLUMNS
from dpviz.report.tables.curves import LINE_COLUMNS

TEXT = "{http://www.w3.org/2000/svg}text"
PANELS = [
    Panel("one", "First", "", "#0072B2", "circle", "solid"),
    Panel("two", "Second", "", GREY, "square", "dash"),
]
PREDICTED = pd.DataFrame(
    [
        ("one", 0.01, 0.0, "holds"),
        ("one", 1.0, 0.5, "holds"),
        ("one", 100.0, 1.0, "refuted"),
        ("two", 0.01, 0.25, "holds"),
        ("two", 100.0, 0.75, "holds"),
    ],
    columns=list(PREDICTION_COLUMNS),
)
LIMITS = pd.DataFrame(
    [("without privacy", x, 1.0) for x in (0.01, 100.0)], columns=list(LINE_COLUMNS)
)


def still(
    predicted: pd.DataFrame | None = PREDICTED, limits: pd.DataFrame | None = LIMITS,
    *, log_x: bool = True, log_y: bool = False, now: float = 1.0, shares: bool = False,
) -> tuple[str, str]:  # fmt: skip
    """Return the HTML and, decoded, the SVG in it."""
    html = svg_curves(
        predicted, limits, PANELS, across=[0.01, 100.0], x_title="Epsilon", y_title="a < b",
        log_x=log_x, log_y=log_y, now=now, words="Recovery", shares=shares,
    )  # fmt: skip
    (coded,) = re.findall(r"base64,([^\"]+)\"", html)
    return html, base64.b64decode(coded).decode()


def pieces(svg: str, colour: str) -> list[tuple[list[list[float]], str]]:
    found = re.findall(rf'points="([^"]+)"[^>]*stroke="{colour}"[^>]*dasharray="([^"]+)"', svg)
    return [
        ([[float(v) for v in point.split(",")] for point in points.split()], dash)
        for points, dash in found
    ]


def test_a_line_lies_where_the_table_says_and_is_dashed_where_its_claim_fails() -> None:
    _, svg = still()
    (first, holds), (second, fails) = pieces(svg, "#0072B2")
    # Five decades with 2 % of room at each end, and heights 0 to 1 with 5 %.
    across = [1000 * (0.02 + u) / 1.04 for u in (0, 0.5, 1)]
    up = [1000 - 1000 * (0.05 + v) / 1.1 for v in (0, 0.5, 1)]
    ends = [pytest.approx([u, v], abs=0.06) for u, v in zip(across, up, strict=True)]
    assert first == ends[:2]
    assert second == ends[1:]
    assert holds != fails


def test_texts_are_escaped_and_of_the_page() -> None:
    html, svg = still()
    assert "a &lt; b" in html
    assert "<text" not in svg  # a stretched text could not be read
    assert 'data-predicted="2"' in html
    for words in (">now<", "Epsilon", "without privacy", ">0.01<", ">100<", ">0.5<"):
        assert words in html
    assert ">0.5<" not in still(shares=True)[0]
    assert ">50%<" in still(shares=True)[0]


def test_before_anything_is_known_there_are_axes_alone() -> None:
    html, svg = still(None, None, now=math.nan)
    assert 'data-predicted="0"' in html
    assert "<polyline" not in svg
    assert ">now<" not in html
    assert ">0.01<" in html


def test_a_logarithmic_measure_has_no_zero() -> None:
    _, svg = still(log_y=True)
    assert len(pieces(svg, "#0072B2")) == 1  # the piece from 0 has no place

    # Figures that a notebook shows ---------------------------------------------------------------
    nothing = pd.DataFrame([("random subspace", x, 0.0) for x in (0.01, 100.0)],
                           columns=list(LINE_COLUMNS))  # fmt: skip
    html, _ = still(limits=nothing, log_y=True)
    assert "random subspace" not in html
    html, _ = still(limits=nothing)
    assert "random subspace" in html


def test_a_figure_carries_an_image_beside_its_data_and_no_script(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = dpviz.compare("iris", trials=3, mechanisms=["gaussian", "wishart"])
    monkeypatch.setattr(pio.renderers, "default", "plotly_mimetype+colab")
    for name in ("spectrum", "distance", "projection", "recovery"):
        figure = found.figure(name)
        with pytest.raises(NotImplementedError):  # so that a notebook asks for what follows
            figure._ipython_display_()
        bundle = figure._repr_mimebundle_()
        assert set(bundle) == {PLOTLY, IMAGE}
        texts = [each.text or "" for each in ElementTree.fromstring(bundle[IMAGE]).iter(TEXT)]
        assert any("Gaussian, exact" in text for text in texts), name
        assert "<script" not in bundle[IMAGE]
    plain = go.Figure(found.figure())._repr_mimebundle_()  # the control
    assert "text/html" in plain
    assert IMAGE not in plain


def test_the_image_has_marks_where_the_values_are() -> None:
    figure = go.Figure(
        go.Scatter(x=np.array([1.0, 10.0, 100.0]), y=[0.0, 0.5, 1.0], mode="lines+markers")
    )
    figure.update_xaxes(type="log", range=[0, 2])
    figure.update_yaxes(range=[0, 1])
    figure.add_trace(go.Bar(x=[10.0], y=[0.5]))
    svg = drawn(figure).svg()
    discs = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', svg)
    (x0, y0), (x1, y1), (x2, y2) = ((float(x), float(y)) for x, y in discs)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert (x0 < x2, y0 > y2) == (True, True)
    assert f'points="{x1:.1f},{y0:.1f} {x1:.1f},{y1:.1f}"' in svg  # the bar, from nothing to .5
