"""Measured numbers as multiples of reported ones: everything drawn lies within labelled ticks."""

from __future__ import annotations

import math

import pytest

from dpviz.figures.reproduction import lines_figure
from dpviz.reproduce.lines import Agreement, Line, Stated
from dpviz.reproduce.measurements import Mean


def line(item: str, stated: Stated, mean: Mean | None, panel: str = "a table") -> Line:
    return Line(panel, item, stated.text, "", Agreement.AGREES, "", stated, mean)


LINES = [
    line("first", Stated(0.5, 0.1), Mean(1.0, 0.1, 0.8, 1.2, 9)),
    line("second", Stated(2.0), Mean(0.05, 0.05, -0.05, 0.15, 9), panel="another"),
    line("third", Stated(4.0, 9.0), Mean(100.0, math.nan, math.nan, math.nan, 1)),
]


def test_points_and_bars_are_within_the_axis_and_no_tick_is_raised() -> None:
    figure = lines_figure(LINES)
    assert figure is not None
    measured = [trace for trace in figure.data if trace.name == "measured"]
    assert [list(trace.x) for trace in measured] == [[2.0, 25.0], [0.025]]
    for axis in figure.select_xaxes():
        low, high = (10.0**end for end in axis.range)
        for trace in figure.data:
            for at, less, more in zip(
                trace.x,
                trace.error_x.arrayminus or trace.error_x.array,
                trace.error_x.array,
                strict=True,
            ):
                assert high > at + more
                # what would reach zero ends where the axis does
                assert low < at - less or at <= less
        assert list(axis.ticktext) == [f"{tick:g}" for tick in axis.tickvals]
        assert all(low <= tick <= high for tick in axis.tickvals)
        assert 1.0 in axis.tickvals
        assert axis.exponentformat is None


def test_a_bar_that_would_reach_zero_ends_above_it() -> None:
    figure = lines_figure(LINES)
    assert figure is not None
    second = [trace for trace in figure.data if trace.name == "measured"][1]
    assert second.error_x.array[0] == pytest.approx(0.05)
    assert second.x[0] - second.error_x.arrayminus[0] == pytest.approx(0.00025)


def test_nothing_measured_is_no_figure() -> None:
    assert lines_figure([line("none", Stated(1.0), None)]) is None
