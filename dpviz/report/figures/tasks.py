"""What can still be learned: a score against epsilon, with bands and floors."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from dpviz.core.number_text import decimals, numeral
from dpviz.report.figures.failing import stretches, symbols, verdict_words
from dpviz.report.figures.names import apart
from dpviz.report.figures.theme import BELOW, TRUE_COLOUR, Panel, faded, scatter, standing, told
from dpviz.simulation.tasks.learners import Score

NAMED = 8  # more lines than this cannot be named beside their ends
_FLOOR_DASHES = ("dash", "dot", "longdashdot")
_HEIGHT = 580
_LINE = 15 / 290  # a line of text, as a share of the height of the plot on a phone
_ROOM = 124  # pixels right of the plot, for names
_LETTERS = 18  # of a name that fit there in one line

Named = tuple[float, str, str]  # height of a line, its name, its colour


def task_figure(
    bands: pd.DataFrame,
    panels: Sequence[Panel],
    *,
    score: Score,
    epsilons: Sequence[float],
    now: float,
) -> go.Figure:
    """Draw mean and band of a score for each variant, and the floors as lines.

    Parameters
    ----------
    bands : DataFrame
        `dpviz.simulation.tasks.TASK_BAND_COLUMNS`; floors have no epsilon.
    panels : sequence of Panel
        In the order of the legend.
    score : Score
    epsilons : sequence of float
        The whole axis, also where nothing has been measured yet.
    now : float
        Where the current setting stands.
    """
    figure = go.Figure()
    low, high = _range(bands, score)
    x0, x1 = min(epsilons), max(epsilons)
    if x0 == x1:
        x0, x1 = x0 / 2, x1 * 2
    ends = _add_floors(figure, bands[bands["epsilon"].isna()], (x0, x1), score)
    for number, panel in enumerate(panels):
        part = bands[bands["mechanism"] == panel.key].sort_values("epsilon")
        if part.empty:
            continue
        colour = panel.colour
        _add_band(figure, part, panel, colour, score, named=number < NAMED)
        if number < NAMED:
            ends.append((float(part["mean"].iloc[-1]), _wrapped(panel.label), colour))
    notes: list[dict[str, Any]] = [
        {
            "x": 1.0, "xref": "paper", "xanchor": "left", "xshift": 4, "y": at, "yanchor": "middle",
            "text": words, "showarrow": False, "align": "left",
            "font": {"color": colour, "size": 12},
        }
        for at, (_, words, colour) in _apart(ends, low, high)
    ]  # fmt: skip
    here = standing(now, log=True) if x0 <= now <= x1 else {"shapes": [], "annotations": []}
    ticks = sorted(epsilons)
    figure.update_xaxes(
        title="Epsilon", type="log", tickvals=ticks,
        ticktext=[numeral(value, 3) for value in ticks],
        range=[math.log10(x0) - 0.03, math.log10(x1) + 0.03],
    )  # fmt: skip
    figure.update_yaxes(
        title=_title(score), range=[low, high], automargin=True,
        tickformat=".0%" if score.key == "accuracy" else None,
    )  # fmt: skip
    figure.update_layout(
        overwrite=True,
        height=_HEIGHT,
        margin={"l": 10, "r": _ROOM, "t": 30, "b": 10},
        legend=BELOW,
        shapes=here["shapes"],
        annotations=notes + here["annotations"],
        hovermode="closest",
        meta={"highlight": "group"},  # what pages/ui/highlight.js goes by
    )
    figure.update_xaxes(automargin=True)
    return figure


def _title(score: Score) -> str:
    unit = "<br>in standard deviations of the label" if score.key == "rmse" else ""
    return f"{score.label}{unit}"


def _range(bands: pd.DataFrame, score: Score) -> tuple[float, float]:
    """Return the limits of the score's axis: what is drawn, with room, within what is possible."""
    if bands.empty:
        return (score.low, score.high) if math.isfinite(score.high) else (0.0, 1.0)
    low, high = float(bands["low"].min()), float(bands["high"].max())
    room = 0.06 * max(high - low, 0.05)
    return max(low - room, score.low - 0.02), min(high + room, score.high + 0.02)


def _add_floors(
    figure: go.Figure, floors: pd.DataFrame, across: tuple[float, float], score: Score
) -> list[Named]:
    """Add grey lines; their bands are told when pointed at. Return their heights and names."""
    named = []
    for number, floor in enumerate(floors.to_dict("records")):
        mean = float(floor["mean"])
        told = f"{_told(mean, score)} ({_told(floor['low'], score)} to "
        figure.add_trace(
            scatter(
                x=list(across), y=[mean, mean], mode="lines", name=floor["mechanism"],
                showlegend=False,
                line={"color": TRUE_COLOUR, "width": 1.5,
                      "dash": _FLOOR_DASHES[number % len(_FLOOR_DASHES)]},
                hovertemplate=f"{told}{_told(floor['high'], score)}, {floor['rounds']} rounds)"
                f"<extra>{floor['mechanism']}</extra>",
            )
        )  # fmt: skip
        named.append((mean, _wrapped(str(floor["mechanism"])), TRUE_COLOUR))
    return named


def _add_band(
    figure: go.Figure, part: pd.DataFrame, panel: Panel, colour: str, score: Score, *, named: bool
) -> None:
    """Add band and mean of one variant, with its status in the legend where it is named.

    The mean is dashed, and its points open, where the claim fails: judged at each epsilon.
    """
    figure.add_trace(
        scatter(
            x=[*part["epsilon"], *part["epsilon"][::-1]], y=[*part["high"], *part["low"][::-1]],
            fill="toself", fillcolor=faded(colour, 0.1), line={"width": 0},
            hoverinfo="skip", showlegend=False, legendgroup=panel.key, mode="lines",
        )
    )  # fmt: skip
    for number, (line, dash) in enumerate(stretches(part, "solid", x="epsilon")):
        words = verdict_words(line["verdict"])
        scores = [
            [_told(row["mean"], score), _told(row["low"], score), _told(row["high"], score),
             row["rounds"], said]
            for row, said in zip(line.to_dict("records"), words, strict=True)
        ]  # fmt: skip
        figure.add_trace(
            scatter(
                x=line["epsilon"], y=line["mean"], name=f"{panel.label} · {panel.status}",
                legendgroup=panel.key, mode="lines+markers", showlegend=named and number == 0,
                line={"color": colour, "width": panel.width, "dash": dash},
                marker={"symbol": symbols(line["verdict"], panel.marker), "size": 7},
                customdata=scores,
                hovertext=told("epsilon {}", (line["epsilon"], 3)),
                hovertemplate="%{hovertext}: %{customdata[0]} (%{customdata[1]} to "
                "%{customdata[2]}, %{customdata[3]} rounds), %{customdata[4]}<extra>"
                + panel.label + "</extra>",
            )
        )  # fmt: skip


def _told(value: float, score: Score) -> str:
    return f"{decimals(100 * value, 1)} %" if score.key == "accuracy" else numeral(value, 3)


def _wrapped(label: str) -> str:
    """Return a name in lines that fit beside the plot."""
    return "<br>".join(textwrap.wrap(label, _LETTERS))


def _apart(named: Sequence[Named], low: float, high: float) -> list[tuple[float, Named]]:
    """Return heights near those of the lines at which no name covers another."""
    ordered = sorted(named)
    sizes = [_LINE * (high - low) * (item[1].count("<br>") + 1) for item in ordered]
    places = apart([item[0] for item in ordered], sizes, low, high)
    return list(zip(places, ordered, strict=True))
