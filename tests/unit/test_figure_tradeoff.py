"""The trade-off figure: every table given is drawn where it says, and nothing else is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest

from dpviz.core.number_text import numeral, percent
from dpviz.report.figures.theme import GREY, Panel
from dpviz.report.figures.tradeoff import FEW, tradeoff_figure, with_ranges
from dpviz.report.tables.curves import BAND_COLUMNS, BOUND_COLUMNS, DRAW_COLUMNS, LINE_COLUMNS
from dpviz.report.tables.predicted import PREDICTION_COLUMNS

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


Box = tuple[float, float]


def names_of(figure: go.Figure) -> list[tuple[str, Box, float]]:
    """Return each name, its lower and upper edge and its pixels right of the plot."""
    layout = figure.layout
    plot = layout.height - 100  # less is taken up by what is above and below, and by the legend
    notes = [note for note in layout.annotations if (note.name or "").startswith("name:")]
    assert all((note.x, note.xref, note.xanchor) == (1, "paper", "left") for note in notes)
    half = 12 / 2 / plot  # of letters of 12 pixels, in shares of the plot at its highest
    return [(note.text, (note.y - half, note.y + half), note.xshift) for note in notes]


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 5, 8, 31])
@pytest.mark.parametrize("log_y", [False, True])
@pytest.mark.parametrize("ends", ["equal", "spread", "high", "early"])
def test_no_name_lies_on_another_or_on_a_line(count: int, log_y: bool, ends: str) -> None:
    panels = [
        Panel(str(i), f"mechanism {i}", "✓ claim holds", "#0072B2", "circle", "solid")
        for i in range(count)
    ]
    share = {"equal": 0.0, "spread": 0.9, "high": 0.01, "early": 0.9}[ends]
    bands = pd.concat(
        [
            BANDS.iloc[: 2 if ends == "early" and i % 2 else 3].assign(
                mechanism=str(i), mean=lambda part, i=i: part["mean"] * (1 - share * i / count)
            )
            for i in range(count)
        ]
    )
    figure = draw(bands=bands, panels=panels, log_x=True, log_y=log_y)
    found = names_of(figure)
    assert {name for name, *_ in found} == {panel.label for panel in panels}
    boxes = sorted(box for _, box, _ in found)
    for (_, top), (bottom, _) in itertools.pairwise(boxes):
        assert bottom > top
    assert boxes[0][0] >= -0.02
    assert boxes[-1][1] <= 1.02
    # Every line ends inside the plot, and every name starts right of it and fits its margin.
    high = 10 ** figure.layout.xaxis.range[1]
    assert all(max(v for v in t.x if v is not None) <= high for t in figure.data if t.x is not None)
    assert all(shift > 0 for *_, shift in found)
    longest = max(len(name) for name, *_ in found)
    assert found[0][2] + 6.6 * longest < figure.layout.margin.r
    # The leader of each starts where its line ends and leads to its name.
    low, top = figure.layout.yaxis.range
    leaders = [s for s in figure.layout.shapes if s.name == "leader" and s.xsizemode == "pixel"]
    lasts = bands.groupby("mechanism")["mean"].last()
    wanted = sorted(((math.log10(v) if log_y else v) - low) / (top - low) for v in lasts)
    assert sorted(leader.y0 for leader in leaders) == pytest.approx(wanted)
    middles = sorted((a + b) / 2 for _, (a, b), _ in found)
    assert sorted(leader.y1 for leader in leaders) == pytest.approx(middles)


def test_a_name_alone_stands_at_the_end_of_its_line() -> None:
    (leader,) = [s for s in draw(panels=PANELS[:1]).layout.shapes if s.name == "leader"]
    assert leader.y0 == pytest.approx(leader.y1)


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
