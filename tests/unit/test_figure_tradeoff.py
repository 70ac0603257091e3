"""The trade-off figure: every table given is drawn where it says, and nothing else is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from dpviz.core.number_text import numeral, percent
from dpviz.report.figures.theme import GREY, Panel
from dpviz.report.figures.tradeoff import FEW, NARROWEST, tradeoff_figure, with_ranges
from dpviz.report.tables.comparison import PREDICTION_COLUMNS
from dpviz.report.tables.curves import BAND_COLUMNS, BOUND_COLUMNS, DRAW_COLUMNS, LINE_COLUMNS

PANELS = [
    Panel("one", "First", "holds", "#0072B2", "circle", "solid"),
    Panel("two", "Second", "refuted", "#D55E00", "square", "dash"),
]
BANDS = pd.DataFrame(
    [
        ("one", 1.0, 0.4, 0.01, 0.3, 0.5, 9, "holds"),
        ("one", 10.0, 0.8, 0.01, 0.7, 0.9, 9, "holds"),
        ("one", 100.0, 0.9, 0.01, 0.8, 1.0, 9, "holds"),
        ("two", 1.0, 0.2, 0.01, 0.1, 0.3, 9, "refuted"),
        ("two", 10.0, 0.3, 0.01, 0.2, 0.4, 9, "refuted"),
        ("two", 100.0, 0.5, 0.01, 0.4, 0.6, 9, "refuted"),
    ],
    columns=list(BAND_COLUMNS),
)


def draw(bands: pd.DataFrame = BANDS, **options: Any) -> go.Figure:
    given = {"x_title": "x", "y_title": "y", "log_x": False, "log_y": False, "now": 3.0} | options
    panels = given.pop("panels", PANELS)
    return tradeoff_figure(bands, panels, **given)


def traces(figure: go.Figure, name: str) -> list[Any]:
    return [trace for trace in figure.data if trace.name == name]


def lines(rows: list[tuple[Any, ...]], columns: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(columns))


def test_shares_are_written_in_per_cent_and_powers_of_ten_are_not() -> None:
    assert draw().layout.yaxis.tickformat is None
    assert draw(shares=True).layout.yaxis.tickformat == "~%"
    assert draw(shares=True, log_y=True).layout.yaxis.tickformat is None


def test_a_wide_axis_has_plain_powers_of_ten() -> None:
    bands = BANDS.assign(x=[1e-8, 1e-4, 100.0] * 2)
    axis = draw(bands, log_x=True, now=1e-6).layout.xaxis
    named = dict(zip(axis.tickvals, axis.ticktext, strict=True))
    assert (named[1e-8], named[1e-4], named[0.01], named[1.0]) == ("10⁻⁸", "10⁻⁴", "0.01", "1")


@pytest.mark.parametrize(
    ("shares", "write"), [(False, partial(numeral, digits=3)), (True, percent)]
)
def test_what_stands_under_the_pointer_is_written_as_in_sentences(
    shares: bool, write: Callable[[float], str]
) -> None:
    alone = lines([("three", 1.0, 0.5, "holds")], PREDICTION_COLUMNS)
    figure = draw(
        panels=[*PANELS, Panel("three", "Third", "holds", GREY, "circle", "solid")],
        predicted=alone,
        limits=lines([("random", 1.0, 0.1)], LINE_COLUMNS),
        other=BANDS,
        other_name="other",
        shares=shares,
    )
    told = [trace for trace in figure.data if trace.hovertemplate]
    assert len(told) >= 6
    for trace in told:
        assert trace.hovertemplate.startswith("%{hovertext}")
        assert list(trace.hovertext) == [
            f"{numeral(x, 4)}: {write(y)}" for x, y in zip(trace.x, trace.y, strict=True)
        ]


def test_means_and_bands_are_where_the_table_says() -> None:
    figure = draw()
    (mean,) = traces(figure, "First · holds")
    assert list(mean.x) == [1.0, 10.0, 100.0]
    assert list(mean.y) == [0.4, 0.8, 0.9]
    band = next(t for t in figure.data if t.fill == "toself" and t.legendgroup == "one")
    assert list(band.x) == [1.0, 10.0, 100.0, 100.0, 10.0, 1.0]
    assert list(band.y) == [0.5, 0.9, 1.0, 0.8, 0.7, 0.3]


def test_the_status_stands_in_the_legend_in_words() -> None:
    names = {trace.name for trace in draw().data if trace.showlegend is not False}
    assert names == {"First · holds", "Second · refuted"}


@pytest.mark.parametrize(("log_x", "at"), [(False, 3.0), (True, math.log10(3.0))])
def test_the_current_setting_is_marked_on_either_axis(log_x: bool, at: float) -> None:
    figure = draw(log_x=log_x)
    assert figure.layout.xaxis.type == ("log" if log_x else "linear")
    assert figure.layout.shapes[0].x0 == 3.0
    (said,) = [note for note in figure.layout.annotations if note.text == "now"]
    assert said.x == pytest.approx(at)


def test_a_curve_is_dashed_where_its_claim_fails() -> None:
    bands = BANDS.copy()
    bands.loc[bands["x"] == 100.0, "verdict"] = ["out_of_scope", "refuted"]
    first = traces(draw(bands), "First · holds")
    assert [(trace.line.dash, list(trace.x)) for trace in first] == [
        ("solid", [1.0, 10.0]),
        ("dash", [10.0, 100.0]),
    ]
    assert [trace.showlegend for trace in first] == [True, False]
    assert list(first[1].marker.symbol) == ["circle", "circle-open"]
    (second,) = traces(draw(bands), "Second · refuted")
    assert (second.line.dash, list(second.x)) == ("dash", [1.0, 10.0, 100.0])
    # a lone point has no line; its marker says it
    (alone,) = traces(draw(bands[bands["x"] == 100.0]), "First · holds")
    assert list(alone.marker.symbol) == ["circle-open"]


def test_people_who_are_not_in_the_table_are_dashed() -> None:
    first = traces(draw(beyond=10.0), "First · holds")
    assert [(trace.line.dash, list(trace.x)) for trace in first] == [
        ("solid", [1.0, 10.0]),
        ("dash", [10.0, 100.0]),
    ]
    assert [trace.showlegend for trace in first] == [True, False]


def test_single_draws_are_one_trace_with_gaps() -> None:
    rows = [("one", 0, 1.0, 0.1), ("one", 0, 10.0, 0.2), ("one", 1, 1.0, 0.3)]
    figure = draw(draws=lines(rows, DRAW_COLUMNS))
    (thin,) = traces(figure, "First, draws")
    assert list(thin.x) == [1.0, 10.0, None, 1.0, None]
    assert list(thin.y) == [0.1, 0.2, None, 0.3, None]
    assert len(traces(figure, "single draws")) == 1  # explained in the legend
    assert traces(draw(), "single draws") == []


def test_prediction_bound_and_second_table_differ_in_style() -> None:
    predicted = lines([("one", 1.0, 0.41, "holds")], PREDICTION_COLUMNS)
    bound = lines([("one", 1.0, 0.7)], BOUND_COLUMNS)
    figure = draw(predicted=predicted, bound=bound, other=BANDS, other_name="wine")
    styles = {
        name: traces(figure, name)[0].line.dash
        for name in ("predicted without a draw", "Davis-Kahan bound", "wine")
    }
    assert len(set(styles.values())) == 3
    drawn = [(trace.line.dash, list(trace.y)) for trace in traces(figure, "First")]
    assert drawn == [("dot", [0.41]), ("longdash", [0.7]), ("dashdot", [0.4, 0.8, 0.9])]


def test_a_prediction_alone_stands_in_the_legend() -> None:
    predicted = lines([("one", 1.0, 0.41, "holds")], PREDICTION_COLUMNS)
    figure = draw(bands=BANDS.iloc[:0], predicted=predicted)
    assert [trace.showlegend for trace in traces(figure, "First · holds")] == [True]


def test_a_prediction_is_dashed_where_its_claim_fails_and_says_so() -> None:
    rows = [
        ("one", 1.0, 0.4, "holds"),
        ("one", 10.0, 0.8, "holds"),
        ("one", 100.0, 0.9, "out_of_scope"),
    ]
    figure = draw(bands=BANDS.iloc[:0], predicted=lines(rows, PREDICTION_COLUMNS))
    drawn = traces(figure, "First · holds")
    assert [(trace.line.dash, list(trace.x)) for trace in drawn] == [
        ("dot", [1.0, 10.0]),
        ("dash", [10.0, 100.0]),
    ]
    assert list(drawn[1].text) == ["claim holds", "fails outside its scope"]


Box = tuple[float, float, float, float]
LETTER = 5.4  # pixels of a letter on average


def names_of(figure: go.Figure, plot: tuple[int, int]) -> dict[str, Box]:
    """Return left, right, foot and top of each name, in pixels of a plot of that size."""
    (left, right), (foot, top) = figure.layout.xaxis.range, figure.layout.yaxis.range
    found = {}
    for note in figure.layout.annotations:
        if not (note.name or "").startswith("name:"):
            continue
        x = (note.x - left) / (right - left) * plot[0] + note.xshift
        y = (note.y - foot) / (top - foot) * plot[1] + note.yshift
        wide = LETTER * len(note.text)
        x -= {"left": 0.0, "center": wide / 2, "right": wide}[note.xanchor]
        y -= {"bottom": 0.0, "top": 14.0}[note.yanchor]
        found[note.text] = (x, x + wide, y, y + 14)
    return found


def sigmoids(count: int, digits: int = 12) -> pd.DataFrame:
    """Return curves that meet at both ends, as recovery does."""
    x = [10 ** (i / 4 - 2) for i in range(17)]
    rows = [
        (str(i), v, mean, 0.01, mean, mean, 9, "holds")
        for i in range(count)
        for v in x
        for mean in [round(1 / (1 + (10 ** (i * 1.6 / count - 0.8) / v) ** 2), digits)]
    ]
    return pd.DataFrame(rows, columns=list(BAND_COLUMNS))


def panels_of(count: int, colour: str = "#0072B2") -> list[Panel]:
    return [
        Panel(str(i), f"mechanism {i}", "✓ claim holds", colour, "circle", "solid")
        for i in range(count)
    ]


def distance(box: Box, at: tuple[float, float]) -> float:
    left, right, foot, top = box
    return math.hypot(max(left - at[0], 0, at[0] - right), max(foot - at[1], 0, at[1] - top))


@pytest.mark.parametrize("wide", [NARROWEST, 1310])
def test_names_stand_where_lines_part_each_beside_its_own(wide: int) -> None:
    count = 6
    figure = draw(bands=sigmoids(count), panels=panels_of(count), log_x=True, now=1.0)
    plot = (wide, 402)  # of whose height the legend has taken two rows
    (left, right), (foot, top) = figure.layout.xaxis.range, figure.layout.yaxis.range
    lines = {}
    for trace in figure.data:
        if trace.mode == "lines+markers":
            x = np.log10(np.asarray(trace.x))
            fine = np.linspace(x[0], x[-1], 2000)
            y = np.interp(fine, x, np.asarray(trace.y))
            lines[f"mechanism {trace.legendgroup}"] = [
                ((u - left) / (right - left) * plot[0], (v - foot) / (top - foot) * plot[1])
                for u, v in zip(fine, y, strict=True)
            ]
    found = names_of(figure, plot)
    assert set(found) == set(lines)
    for name, box in found.items():
        near = {other: min(distance(box, at) for at in line) for other, line in lines.items()}
        assert min(near, key=lambda other: near[other]) == name
        assert near[name] <= 12
        anchor = min(lines[name], key=lambda at: distance(box, at))
        others = [math.dist(anchor, at) for other in lines if other != name for at in lines[other]]
        assert min(others) > 25  # where they meet it is less than 2
    ends = [math.dist(lines["mechanism 0"][i], lines["mechanism 5"][i]) for i in (0, -1)]
    assert max(ends) < 2


@pytest.mark.parametrize("count", [1, 2, 8, 31])
@pytest.mark.parametrize("log_y", [False, True])
@pytest.mark.parametrize("shape", ["equal", "early", "sigmoid"])
def test_no_name_lies_on_another_or_outside(count: int, log_y: bool, shape: str) -> None:
    bands = sigmoids(count)
    if shape == "equal":
        bands["mean"] = 0.5
    if shape == "early":
        bands = bands[(bands["x"] <= 1) | (bands["mechanism"].astype(int) % 2 == 0)]
    figure = draw(bands=bands, panels=panels_of(count), log_x=True, log_y=log_y, now=1.0)
    plot = (NARROWEST, max(300, 460 - 29 * math.ceil(count / 3)))
    found = names_of(figure, plot)
    assert len(found) == count if count <= 8 else len(found) > 8
    for left, right, foot, top in found.values():
        assert -2 < left < right < plot[0] + 2
        assert -2 < foot < top < plot[1] + 2
    for one, other in itertools.combinations(found.values(), 2):
        apart = one[0] > other[1] or other[0] > one[1] or one[2] > other[3] or other[2] > one[3]
        assert apart


def test_a_line_without_a_colour_has_no_name_where_that_would_lie_on_a_line() -> None:
    bands = sigmoids(30)
    grey = draw(bands=bands, panels=panels_of(30, GREY), log_x=True, now=1.0)
    coloured = draw(bands=bands, panels=panels_of(30), log_x=True, now=1.0)
    plot = (NARROWEST, 402)
    assert 1 <= len(names_of(grey, plot)) < len(names_of(coloured, plot))


def test_before_a_claim_is_judged_a_line_has_its_name_alone() -> None:
    unjudged = [Panel(p.key, p.label, "", p.colour, p.marker, p.dash) for p in PANELS]
    shown = {trace.name for trace in draw(panels=unjudged).data if trace.showlegend}
    assert shown == {"First", "Second"}


def test_limits_and_scalings_are_named_for_what_they_are() -> None:
    limits = lines([("without privacy", 1.0, 0.0), ("random subspace", 1.0, 0.5)], LINE_COLUMNS)
    scalings = lines([("d/n", 1.0, 0.1)], LINE_COLUMNS)
    figure = draw(limits=limits, scalings=scalings)
    names = {trace.name for trace in figure.data}
    assert {"without privacy", "random subspace", "d/n (scaling only)"} <= names
    # A logarithmic axis has no zero.
    logarithmic = draw(limits=limits, log_y=True)
    assert traces(logarithmic, "without privacy") == []
    assert len(traces(logarithmic, "random subspace")) == 1


def test_on_a_page_no_range_is_filled_until_it_is_pointed_at_and_in_a_file_every_one_is() -> None:
    def fills(figure: go.Figure) -> set[str]:
        return {t.fillcolor.split(", ")[-1] for t in figure.data if t.fill == "toself"}

    assert fills(draw()) == {"0.13)"}
    page = draw(pointed=True)
    assert fills(page) == {"0.0)"}
    assert page.layout.meta["band"] == 0.13
    assert fills(with_ranges(page)) == {"0.13)"}
    assert fills(page) == {"0.0)"}


def test_marks_keep_to_the_foot_at_any_scale() -> None:
    marks = pd.DataFrame([("two", 1, 5.0)], columns=["mechanism", "component", "epsilon"])
    figure = draw(marks=marks, log_y=True)
    (mark,) = traces(figure, "Second, components")
    assert list(mark.x) == [5.0]
    assert mark.yaxis == "y2"
    assert figure.layout.yaxis2.range == (0, 1)
    (said,) = traces(figure, "component found from here")
    assert said.marker.symbol == "triangle-up"
    assert said.showlegend is not False


def test_the_frontier_is_ringed() -> None:
    (rings,) = traces(draw(best=BANDS.iloc[:1]), "best whose claim holds")
    assert list(rings.x) == [1.0]
    assert traces(draw(best=BANDS.iloc[:0]), "best whose claim holds") == []


def test_mechanisms_without_a_colour_are_thin_and_below_the_others() -> None:
    panels = [
        Panel("0", "0", "holds", "#218FFF", "circle", "solid"),
        Panel("1", "1", "holds", GREY, "square", "dash"),
    ]
    bands = pd.concat([BANDS.iloc[:3].assign(mechanism=panel.key) for panel in panels])
    lines = [t for t in draw(bands=bands, panels=panels).data if t.mode == "lines+markers"]
    assert [(line.line.color, line.line.width) for line in lines] == [(GREY, 1), ("#218FFF", 2)]


def test_of_many_lines_only_those_with_a_colour_have_a_range_and_stand_in_the_legend() -> None:
    def shown(count: int) -> tuple[int, int, int]:
        panels = [
            Panel(str(i), str(i), "holds", GREY if i else "#218FFF", "circle", "solid")
            for i in range(count)
        ]
        bands = pd.concat([BANDS.iloc[:3].assign(mechanism=str(i)) for i in range(count)])
        figure = draw(bands=bands, panels=panels)
        means = [trace for trace in figure.data if trace.mode == "lines+markers"]
        ranges = sum(trace.fill == "toself" for trace in figure.data)
        return len(means), ranges, sum(bool(trace.showlegend) for trace in means)

    assert shown(FEW) == (FEW, FEW, FEW)
    assert shown(FEW + 1) == (FEW + 1, 1, 1)
