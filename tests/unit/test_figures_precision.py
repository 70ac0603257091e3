"""Figures of the Precision page: what is drawn is what the tables say."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from dpviz.report.figures.precision import (
    accounts_figure,
    ellipses_figure,
    payoff_figure,
    prices_figure,
    stds_figure,
)
from dpviz.report.figures.theme import Panel

PANELS = [
    Panel("a", "First", "✓ claim holds", "#0072B2", "circle", "solid"),
    Panel("b[x=1]", "Second", "✓ claim holds", "#CC79A7", "diamond", "dash"),
    Panel("c", "Absent", "✓ claim holds", "#E69F00", "square", "dot"),
]
NAMES = ("length", "width", "height")
NOISE = pd.DataFrame(
    {
        "mechanism": ["a"] * 3 + ["b[x=1]"] * 3,
        "direction": [1, 2, 3] * 2,
        "std": [0.1, 0.1, 0.1, 0.02, 0.4, 4.0],
    }
)


def test_noise_is_drawn_along_each_direction() -> None:
    figure = stds_figure(NOISE, PANELS, NAMES, (2,))
    assert [trace.name for trace in figure.data] == ["First", "Second"]  # none for the absent
    assert list(figure.data[1].y) == [0.02, 0.4, 4.0]
    assert list(figure.data[1].customdata) == list(NAMES)
    assert figure.layout.yaxis.type == "log"
    assert list(figure.layout.xaxis.ticktext) == list(NAMES)
    (shade,) = figure.layout.shapes
    assert (shade.x0, shade.x1) == (1.5, 2.5)


def test_lines_are_named_where_they_end() -> None:
    said = {note.text: note.y for note in stds_figure(NOISE, PANELS, NAMES, ()).layout.annotations}
    assert said == {"First": pytest.approx(-1), "Second": pytest.approx(math.log10(4))}
    close = NOISE.assign(std=[0.1] * 3 + [0.103] * 3)  # 0.013 decades: one name for both
    assert len(stds_figure(close, PANELS, NAMES, ()).layout.annotations) == 1
    near = NOISE.assign(std=[0.1] * 3 + [0.11] * 3)  # 0.04 decades: two names, moved apart
    first, second = stds_figure(near, PANELS, NAMES, ()).layout.annotations
    assert second.y - first.y == pytest.approx(0.075)
    together = NOISE.assign(std=0.1)
    (note,) = stds_figure(together, PANELS, NAMES, ()).layout.annotations
    assert note.text == "First and 1 more"


def test_long_names_of_directions_are_cut_to_two_short_lines() -> None:
    names = ("sepal length (cm)", "Supercalifragilistic", "one two three four five six")
    figure = stds_figure(NOISE, PANELS, names, ())
    assert list(figure.layout.xaxis.ticktext) == [
        "sepal length<br>(cm)",
        "Supercalifr…",
        "one two<br>three four…",
    ]
    assert list(figure.data[0].customdata) == list(names)  # whole where one points at them


def test_many_directions_have_no_names_on_the_axis() -> None:
    count = 120
    noise = pd.DataFrame(
        {"mechanism": "a", "direction": np.arange(1, count + 1), "std": np.full(count, 0.5)}
    )
    figure = stds_figure(noise, PANELS, [f"f{j}" for j in range(count)], ())
    assert figure.layout.xaxis.ticktext is None
    assert figure.data[0].mode == "lines"


def test_nothing_to_draw_is_an_empty_figure() -> None:
    empty = NOISE.iloc[:0]
    assert len(stds_figure(empty, PANELS, NAMES, (1,)).data) == 0
    assert len(ellipses_figure(pairs().iloc[:0], PANELS, "x", "y").data) == 0


def pairs() -> pd.DataFrame:
    return pd.DataFrame({"mechanism": ["a", "b[x=1]"], "first": [0.1, 0.02], "second": [0.1, 4.0]})


def test_ellipses_have_the_stds_as_half_axes_and_circles_are_round() -> None:
    figure = ellipses_figure(pairs(), PANELS, "length", "height")
    circle, ellipse = figure.data
    np.testing.assert_allclose(np.hypot(circle.x, circle.y), 0.1)
    assert max(ellipse.x) == pytest.approx(0.02)
    assert max(ellipse.y) == pytest.approx(4.0)
    assert figure.layout.yaxis.scaleanchor == "x"
    assert list(figure.layout.xaxis.range) == list(figure.layout.yaxis.range)
    assert figure.layout.xaxis.range[1] > 4
    assert "length" in figure.layout.xaxis.title.text
    assert "height" in figure.layout.yaxis.title.text


def test_accounts_are_points_with_what_they_spend() -> None:
    table = pd.DataFrame({"mechanism": ["a", "b[x=1]"], "std": [0.1, 900.0], "spent": [1.0, None]})
    figure = accounts_figure(table, PANELS)
    assert {trace.x[0]: trace.text[0] for trace in figure.data} == {
        900.0: "900",
        0.1: "0.1  spends 1",
    }
    assert figure.layout.xaxis.type == "log"
    # Text stands on the inner side of its point: a narrow screen has no room on the outer.
    assert {trace.x[0]: trace.textposition for trace in figure.data} == {
        900.0: "middle left",
        0.1: "middle right",
    }
    low, high = figure.layout.xaxis.range
    assert low < -1
    assert high > math.log10(900)
    assert list(figure.layout.yaxis.ticktext) == ["Second", "First"]  # the first stands on top


def test_prices_are_lines_over_the_share() -> None:
    table = pd.DataFrame(
        {"mechanism": ["a", "a", "b[x=1]", "b[x=1]"], "share": [0.1, 0.9] * 2, "std": [3, 3, 9, 1]}
    )
    figure = prices_figure(table, PANELS)
    assert [list(trace.y) for trace in figure.data] == [[3, 3], [9, 1]]
    assert figure.layout.xaxis.type == "log"
    assert {note.text for note in figure.layout.annotations} == {"First", "Second"}


def test_the_payoff_stands_beside_equal_shares() -> None:
    table = pd.DataFrame(
        {
            "mechanism": ["a", "b[x=1]", "c"],
            "recovery": [0.95, -0.2, None],
            "uniform": [0.1, 0.3, None],
        }
    )
    figure = payoff_figure(table, PANELS)
    # From the top: First, Second; the third has no recovery and no row.
    assert list(figure.layout.yaxis.ticktext) == ["Second", "First"]
    second, first = figure.data
    assert list(first.x) == [0.1, 0.95]
    assert list(first.marker.symbol) == ["circle-open", "circle"]
    assert first.text[1] == "95\u00a0%"
    assert second.text[1] == "-20\u00a0%"
    assert figure.layout.xaxis.range[0] <= -0.5  # room on a phone for -20 % beside its mark
    assert {note.text for note in figure.layout.annotations} == {"chance", "exact PCA"}
