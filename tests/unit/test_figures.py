"""Figures: what stands in them, read off the figure and compared with the table that made it."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpviz import datasets
from dpviz.core.metrics import chance_distance, farthest_distance
from dpviz.core.number_text import decades, log_ticks, round_ticks
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, all_mechanisms, featured, parse_variant
from dpviz.preparation.bounding import prepare
from dpviz.report.figures.distance import distance_figure
from dpviz.report.figures.theme import (
    GREY,
    HIGHLIGHTS,
    MARKERS,
    SHARES,
    SymmetricLog,
    colour_of_key,
    panels,
    panels_of,
    wrapped,
)
from dpviz.report.figures.waterfall import waterfall
from dpviz.report.tables import board
from dpviz.report.tables.comparison import distance_table
from dpviz.report.tables.precision import precision_variants
from dpviz.simulation.compare import Comparison, compare

SOME = ("laplace", "gaussian", "analyze_gauss", "wishart_difference", "ppca")
BASE = Settings(table="iris", mechanisms=SOME, trials=9)


@cache
def comparison(settings: Settings = BASE) -> Comparison:
    return compare(prepare(datasets.load(settings.table), settings), settings)


def distance(found: Comparison) -> Any:
    d, k = found.problem.d, found.problem.k
    return distance_figure(
        distance_table(found.results),
        panels(found.results),
        farthest=farthest_distance(d, k),
        chance=chance_distance(d, k),
    )


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


def test_a_tick_of_a_share_has_its_space() -> None:
    alias = SHARES["labelalias"]
    for tick in ("0%", "7%", "0.5%", "92.5%", "99.9%", "100%"):
        assert alias[tick] == f"{tick[:-1]}\u00a0%"


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
        assert math.sinh(at) * axis.threshold == pytest.approx(
            float(text.replace(",", "")), rel=1e-12
        )


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
        assert np.isfinite([x for trace in distance(found).data for x in trace.x]).all()


def test_every_mechanism_at_once() -> None:
    found = comparison(replace(BASE, mechanisms=()))
    shown = panels(found.results)
    assert len(shown) >= 20
    assert len(distance(found).layout.yaxis.ticktext) == len(shown)


@pytest.mark.parametrize("epsilon", [1e-4, 1e6])
def test_extreme_epsilons_still_draw(epsilon: float) -> None:
    found = comparison(replace(BASE, epsilon=epsilon))
    for linear in (False, True):
        payload = board.spectra(found, [], {}, linear=linear)
        json.dumps(payload, allow_nan=False)  # or the browser gets no chart
        axis = payload["limits"]["spectrum"]["all"]
        assert axis["low"] < axis["high"]
    assert distance(found).data


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]), (-3.0, 9.0, [-2.5, 0, 2.5, 5, 7.5]), (7, 7.1, 6)],
)
def test_round_ticks_are_equal_steps_within_the_ends(
    low: float, high: float, ticks: list[float] | int
) -> None:
    found = round_ticks(low, high)
    assert len(found) == ticks if isinstance(ticks, int) else found == pytest.approx(ticks)
    assert all(low <= tick <= high * (1 + 1e-12) for tick in found)


def test_decades_are_thinned_and_inside() -> None:
    assert decades(-2.0, 3.0, 8) == [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]
    assert decades(-2.0, 3.0, 3) == [0.01, 1.0, 100.0]
    assert decades(0.1, 0.9, 3) == []


def test_losses_of_a_preparation_hang_from_a_hundred_per_cent_and_are_zoomed() -> None:
    table = pd.DataFrame(
        [("everything public", 0.91, 0.01), ("mean private", 0.90, 0.01), ("count", 0.92, 0.02)],
        columns=["step", "recovery", "se"],
    )
    figure = waterfall(table.assign(change=table["recovery"].diff()))
    bars, noise = figure.data
    assert list(bars.base) == [1.0, 0.91, 0.90]
    assert list(bars.y) == pytest.approx([-0.09, -0.01, 0.02])
    assert list(noise.error_y.array) == pytest.approx([0.02, 0.02, 0.04])
    low, high = figure.layout.yaxis.range
    assert 0.85 < low < 0.88
    assert 1.0 < high < 1.02
