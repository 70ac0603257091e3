"""Figures: what stands in them, read off the figure and compared with the table that made it."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from dpviz import datasets
from dpviz.figures.distance import distance_figure
from dpviz.figures.grid import columns_for, layout
from dpviz.figures.spectrum import spectrum_figure
from dpviz.figures.theme import (
    GREY,
    HIGHLIGHTS,
    MARKERS,
    TRUE_COLOUR,
    SymmetricLog,
    colour_of_key,
    log_ticks,
    panels,
    panels_of,
    wrapped,
)
from dpviz.mechanisms import Mechanism, all_mechanisms, featured, parse_variant
from dpviz.metrics import chance_distance, farthest_distance
from dpviz.prepare.bounding import prepare
from dpviz.run.compare import Comparison, compare
from dpviz.settings import Settings
from dpviz.tidy.comparison import distance_table, spectrum_table
from dpviz.tidy.precision import precision_variants
from dpviz.values.problem import Budget, Domain, Problem, Relation

SOME = ("laplace", "gaussian", "analyze_gauss", "wishart_difference", "ppca")
BASE = Settings(table="iris", mechanisms=SOME, trials=9)


@cache
def comparison(settings: Settings = BASE) -> Comparison:
    return compare(prepare(datasets.load(settings.table), settings), settings)


def spectrum(found: Comparison, scale: str = "log") -> dict[str, Any]:
    table = spectrum_table(found.prepared, found.results)
    option, height = spectrum_figure(
        table,
        panels(found.results),
        found.prepared.reference.eigenvalues.tolist(),
        {r.mechanism.text: r.edges for r in found.results if r.edges is not None},
        {r.mechanism.text: r.threshold for r in found.results if r.threshold is not None},
        scale=scale,
    )
    assert height > 100
    json.dumps(option, allow_nan=False)  # or the browser gets no chart
    return option["baseOption"]


def distance(found: Comparison) -> Any:
    d, k = found.problem.d, found.problem.k
    return distance_figure(
        distance_table(found.results),
        panels(found.results),
        farthest=farthest_distance(d, k),
        chance=chance_distance(d, k),
    )


def in_panel(option: dict[str, Any], number: int, name: str) -> dict[str, Any]:
    """Return the one series of that name in a panel."""
    (series,) = [
        one for one in option["series"] if one.get("xAxisIndex") == number and one["name"] == name
    ]
    return series


# Theme


def test_a_mechanism_has_one_colour_whatever_else_is_shown() -> None:
    everything = comparison(replace(BASE, mechanisms=()))
    by_key = {panel.key: panel for panel in panels(everything.results)}
    for chosen in (SOME, SOME[1:], ("ppca", "gaussian"), ("gaussian",)):
        for panel in panels(comparison(replace(BASE, mechanisms=chosen)).results):
            assert panel.colour == by_key[panel.key].colour == colour_of_key(panel.key)
            assert panel.label == by_key[panel.key].label


def test_those_shown_first_and_those_of_unequal_precision_are_highlighted() -> None:
    places = {key: cls.info.highlight for key, cls in all_mechanisms().items()}
    taken = [place for place in places.values() if place]
    assert sorted(taken) == list(range(1, len(HIGHLIGHTS) + 1))
    assert {key for key, place in places.items() if 1 <= place <= 6} == set(featured())
    for key in set(places) - {key for key, place in places.items() if place}:
        assert colour_of_key(key) == GREY


def test_those_of_one_colour_differ_in_marker_or_dash() -> None:
    problem = Problem(100, 4, 2, Relation.REPLACE, Domain.box(4))
    budget = Budget(0.5, 1e-6)
    for chosen in ([cls() for cls in all_mechanisms().values()], precision_mechanisms()):
        shown = panels_of(chosen, problem, budget)
        looks = [(panel.colour, panel.marker, panel.dash) for panel in shown]
        assert len(set(looks)) == len(looks)
        assert {panel.marker for panel in shown} <= set(MARKERS)
        for panel in shown:
            assert (panel.width < 2) == (panel.colour == GREY) == (not panel.highlighted)


def precision_mechanisms() -> list[Mechanism]:
    return [parse_variant(text) for text in precision_variants()]


def test_long_labels_are_wrapped_and_short_ones_are_not() -> None:
    assert wrapped("Gaussian, exact") == "Gaussian, exact"
    assert wrapped("Directional Gaussian (noise isotropic)") == (
        "Directional Gaussian<br>(noise isotropic)"
    )
    assert wrapped("averyveryverylongnamewithoutspaces") == "averyveryverylongnamewithoutspaces"


def test_status_is_in_words() -> None:
    for panel in panels(comparison().results):
        assert len(panel.status.split()) >= 2, "not by a mark or a colour alone"


@pytest.mark.parametrize(
    ("first", "last", "ticks"),
    [
        (-6.0, 0.0, [1e-6, 1e-4, 1e-2, 1.0]),
        (-0.3, 1.1, [1.0, 2.0, 5.0, 10.0]),
        (-0.1, 0.4, [1.0, 1.5, 2.0]),
        (-300.0, 0.0, [1e-300, 1e-240, 1e-180, 1e-120, 1e-60, 1.0]),
    ],
)
def test_log_ticks_are_round_and_few(first: float, last: float, ticks: list[float]) -> None:
    assert log_ticks(first, last) == ticks


@pytest.mark.parametrize(("low", "high"), [(-3.0, 5.0), (0.0, 1e-3), (-1e17, 1e17), (-0.01, 40.0)])
def test_symmetric_log_ticks_are_in_range_and_apart(low: float, high: float) -> None:
    axis = SymmetricLog(0.004)
    ticks = axis.ticks(low, high)
    positions = [at for at, _ in ticks]
    span = axis.forward(high) - axis.forward(low)
    assert positions == sorted(positions)
    assert (0.0, "0") in ticks
    assert all(axis.forward(low) <= at <= axis.forward(high) for at in positions)
    assert all(b - a > 0.05 * span for a, b in itertools.pairwise(positions))
    for at, text in ticks:
        assert math.sinh(at) * axis.threshold == pytest.approx(float(text), rel=1e-12)


# The grid of panels


@pytest.mark.parametrize("count", [1, 2, 3, 6, 7, 9, 10, 25])
@pytest.mark.parametrize("narrow", [False, True])
def test_panels_do_not_overlap(count: int, narrow: bool) -> None:
    height = 400 + 150 * count
    grids, titles = layout(count, height, narrow=narrow, lines=2)
    assert len(grids) == len(titles) == count
    across = columns_for(count, narrow=narrow)
    for number, grid in enumerate(grids):
        left, width = (float(grid[side].rstrip("%")) for side in ("left", "width"))
        assert left >= 0
        assert left + width <= 100
        assert width > 10
        assert grid["height"] > 40
        assert grid["top"] + grid["height"] <= height
        if (number + 1) % across and number + 1 < count:
            assert left + width <= float(grids[number + 1]["left"].rstrip("%"))
        if number + across < count:
            assert grid["top"] + grid["height"] <= titles[number + across]["top"]


# Eigenspectra


def test_spectrum_shows_the_medians_the_range_and_the_truth() -> None:
    found = comparison()
    table = spectrum_table(found.prepared, found.results)
    option = spectrum(found, "linear")
    true = found.prepared.reference.eigenvalues
    for number, result in enumerate(found.results):
        part = table[table["mechanism"] == result.mechanism.text]
        released = result.eigenvalues is not None
        name = "median of draws" if released else "captured per direction"
        size = np.abs(part["high"]).max()
        drawn = np.array(in_panel(option, number, name)["data"])
        np.testing.assert_array_equal(drawn[:, 0], part["component"])
        np.testing.assert_allclose(drawn[:, 1], part["median"], atol=1e-3 * size)
        lows = np.array(in_panel(option, number, "range, low")["data"])[:, 1]
        heights = np.array(in_panel(option, number, "range, high")["data"])[:, 1]
        np.testing.assert_allclose(lows, part["low"], atol=1e-3 * size)
        np.testing.assert_allclose(lows + heights, part["high"], atol=1e-3 * size)
        shown = np.array(in_panel(option, number, "true")["data"])
        np.testing.assert_array_equal(shown[:, 0], np.arange(1, len(true) + 1))
        np.testing.assert_allclose(shown[:, 1], true, atol=1e-3 * size)
        assert list(shown[:, 1]) == sorted(shown[:, 1], reverse=True)


def test_panels_stand_in_the_order_of_the_results_with_their_colours() -> None:
    found = comparison()
    option = spectrum(found)
    shown = panels(found.results)
    assert [title["text"] for title in option["title"]] == [panel.label for panel in shown]
    for number, panel in enumerate(shown):
        assert option["title"][number]["subtext"].startswith(panel.status)
        assert in_panel(option, number, "true")["lineStyle"]["color"] == TRUE_COLOUR
        assert in_panel(option, number, "range, high")["areaStyle"]["color"] == panel.colour


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_negative_eigenvalues_are_within_the_axes(scale: str) -> None:
    found = comparison()
    table = spectrum_table(found.prepared, found.results)
    assert table["low"].min() < 0, "laplace at epsilon 1 on 150 rows has negative eigenvalues"
    option = spectrum(found, scale)
    for number, axis in enumerate(option["yAxis"]):
        assert axis["min"] < 0 < axis["max"]
        for name in ("range, low", "true"):
            heights = [y for _, y in in_panel(option, number, name)["data"]]
            assert min(heights) >= axis["min"]
            assert max(heights) <= axis["max"]
    limits = {(axis["min"], axis["max"]) for axis in option["yAxis"]}
    assert len(limits) == 1, "panels share their limits"


def test_both_lines_of_the_noise_are_drawn_where_they_are() -> None:
    found = comparison()
    option = spectrum(found, "linear")
    for number, result in enumerate(found.results):
        marks = in_panel(option, number, "true")["markLine"]["data"]
        edges = [m["yAxis"] for m in marks if m["label"]["formatter"] == "noise edge"]
        assert edges == ([] if result.edges is None else [result.edges[1]])
        thresholds = [m["yAxis"] for m in marks if m["label"]["formatter"] == "threshold"]
        assert thresholds == ([] if result.threshold is None else [result.threshold])
    assert any(result.edges is None for result in found.results)  # both cases were seen
    assert any(result.edges is not None for result in found.results)


def test_a_released_subspace_is_said_to_have_no_spectrum() -> None:
    found = comparison()
    option = spectrum(found)
    for title, result in zip(option["title"], found.results, strict=True):
        assert ("no spectrum" in title["subtext"]) == (result.eigenvalues is None)


def test_one_loud_mechanism_does_not_press_the_others_flat() -> None:
    found = comparison()
    table = spectrum_table(found.prepared, found.results)
    true = found.prepared.reference.eigenvalues.tolist()
    loud = table["mechanism"] == "laplace"
    table.loc[loud, ["median", "low", "high"]] *= 1e12
    option, _ = spectrum_figure(table, panels(found.results), true, {}, {}, scale="linear")
    base = option["baseOption"]
    assert base["yAxis"][0]["max"] < 1e6
    beyond = ["beyond the scale" in title["subtext"] for title in base["title"]]
    assert beyond == [result.mechanism.key == "laplace" for result in found.results]
    # Where every mechanism is that loud, the quietest sets the scale and none is lost.
    table[["median", "low", "high"]] *= 1e9
    option, _ = spectrum_figure(table, panels(found.results), true, {}, {}, scale="linear")
    assert option["baseOption"]["yAxis"][0]["max"] > 1e6


# Distances


def test_distance_shows_every_draw_of_every_mechanism() -> None:
    found = comparison()
    figure = distance(found)
    table = distance_table(found.results)
    shown = panels(found.results)
    names = list(figure.layout.yaxis.ticktext)
    assert names == [wrapped(panel.label) for panel in shown]
    labels = [panel.label for panel in shown]
    place = dict(zip(labels, figure.layout.yaxis.tickvals, strict=True))
    assert list(place.values()) == sorted(place.values(), reverse=True)  # the first is on top
    draws = [trace for trace in figure.data if trace.name == "draws"]
    assert {c for trace in draws for c in trace.marker.color} == {panel.colour for panel in shown}
    for panel in shown:
        (trace,) = [t for t in draws if panel.label in [note[0] for note in t.customdata]]
        mine = [i for i, note in enumerate(trace.customdata) if note[0] == panel.label]
        assert {trace.marker.color[i] for i in mine} == {panel.colour}
        part = table[(table["mechanism"] == panel.key) & (table["angle"] == 1)]
        np.testing.assert_allclose(np.array(trace.x)[mine], part["projection_distance"], atol=1e-4)
        assert {trace.marker.symbol[i] for i in mine} == {panel.marker}
        assert np.abs(np.array(trace.y)[mine] - place[panel.label]).max() < 0.5
    (medians,) = [trace for trace in figure.data if trace.name == "medians"]
    wanted = [
        table.loc[(table["mechanism"] == p.key) & (table["angle"] == 1), "projection_distance"]
        .median()
        for p in shown
    ]  # fmt: skip
    np.testing.assert_allclose(medians.x, wanted, atol=1e-4)
    assert list(medians.marker.color) == [panel.colour for panel in shown]


def test_angles_have_medians_and_ranges_within_ninety_degrees() -> None:
    found = comparison()
    figure = distance(found)
    k = found.problem.k
    angles = [trace for trace in figure.data if trace.name == "angles"]
    assert sum(len(trace.x) for trace in angles) == k * len(found.results)
    for trace in angles:
        x, above, below = (
            np.array(side) for side in (trace.x, trace.error_x.array, trace.error_x.arrayminus)
        )
        assert (above >= 0).all()
        assert (below >= 0).all()
        assert (x - below > -1e-3).all()
        assert (x + above < 90.001).all()
    for result, panel in zip(found.results, panels(found.results), strict=True):
        (trace,) = [t for t in angles if panel.label in [note[0] for note in t.customdata]]
        mine = [i for i, note in enumerate(trace.customdata) if note[0] == panel.label]
        assert {trace.marker.color[i] for i in mine} == {panel.colour}
        assert trace.error_x.color == panel.colour
        wanted = np.degrees(np.median(result.angles, axis=0))
        np.testing.assert_allclose(np.array(trace.x)[mine], wanted, atol=1e-3)


def test_chance_stands_where_chance_is() -> None:
    found = comparison()
    (line,) = distance(found).layout.shapes
    assert line.x0 == line.x1 == chance_distance(found.problem.d, found.problem.k)


def test_a_browser_is_sent_few_traces() -> None:
    figure = distance(comparison(replace(BASE, mechanisms=())))
    assert len(figure.data) <= 2 * (len(HIGHLIGHTS) + 1) + 1


def test_two_features() -> None:
    table = replace(
        datasets.load("iris"),
        rows=datasets.load("iris").rows[:, :2].copy(),
        columns=datasets.load("iris").columns[:2],
        bounds=None,
    )
    for k in (1, 2):
        settings = replace(BASE, k=k, mechanisms=SOME if k == 1 else SOME[:-1])
        found = compare(prepare(table, settings), settings)
        assert spectrum(found)["xAxis"][0]["max"] == 3
        assert np.isfinite([x for trace in distance(found).data for x in trace.x]).all()


def test_every_mechanism_at_once() -> None:
    found = comparison(replace(BASE, mechanisms=()))
    shown = panels(found.results)
    assert len(shown) >= 20
    option = spectrum(found)
    assert len(option["grid"]) == len(option["title"]) == len(shown)
    assert len(option["xAxis"]) == len(option["yAxis"]) == len(shown)
    assert len(distance(found).layout.yaxis.ticktext) == len(shown)


@pytest.mark.parametrize("epsilon", [1e-4, 1e6])
def test_extreme_epsilons_still_draw(epsilon: float) -> None:
    found = comparison(replace(BASE, epsilon=epsilon))
    for scale in ("log", "linear"):
        for axis in spectrum(found, scale)["yAxis"]:
            assert axis["min"] < axis["max"]
    assert distance(found).data
