"""What can still be learned: a score against epsilon, with bands and floors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpviz.core.number_text import decimals, numeral, per_cent
from dpviz.report.figures.theme import (
    BELOW,
    GREY,
    SHARES,
    TRUE_COLOUR,
    Panel,
    faded,
    scatter,
    standing,
    stretches,
    symbols,
    told,
    verdict_words,
    wrapped,
)
from dpviz.simulation.tasks.learners import Score

COMPARED = 8  # of more mechanisms the others are not drawn behind each
_ACROSS = 2  # panels beside each other, on a phone too
_FLOOR_DASHES = ("dash", "dot", "longdashdot")
_PANEL, _AROUND, _LEAST = 172, 84, 420  # pixels: of a row of panels, around all, of the whole


def task_figure(
    bands: pd.DataFrame,
    panels: Sequence[Panel],
    *,
    score: Score,
    epsilons: Sequence[float],
    now: float,
) -> go.Figure:
    """Draw mean and band of a score for each variant in a panel of its own, all on one scale.

    Behind each stand the floors and, thin, the means of the others.

    Parameters
    ----------
    bands : DataFrame
        `dpviz.simulation.tasks.TASK_BAND_COLUMNS`; floors have no epsilon.
    panels : sequence of Panel
        In the order of the panels.
    score : Score
    epsilons : sequence of float
        The whole axis, also where nothing has been measured yet.
    now : float
        Where the current setting stands.
    """
    # Until something is measured of one its panel is there, so that none moves when it comes.
    rows = max(1, math.ceil(len(panels) / _ACROSS))
    figure = make_subplots(
        rows=rows,
        cols=min(_ACROSS, max(1, len(panels))),
        shared_xaxes="all",
        shared_yaxes="all",
        subplot_titles=[_named(panel) for panel in panels],
        horizontal_spacing=0.06,
        vertical_spacing=0.11 / rows,
    )
    across = min(epsilons), max(epsilons)
    if across[0] == across[1]:
        across = across[0] / 2, across[1] * 2
    _fill_panels(figure, bands, panels, score, across)
    _set_axes(figure, _range(bands, score), score, epsilons, across, rows)
    _set_names(figure, panels)
    mark = _mark(now, len(panels)) if across[0] <= now <= across[1] else _NO_MARK
    figure.update_layout(
        overwrite=True,
        height=max(_LEAST, _PANEL * rows + _AROUND),
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
        legend=BELOW | {"traceorder": "normal"},
        annotations=[*figure.layout.annotations, *mark["annotations"]],
        shapes=mark["shapes"],
        hovermode="closest",
        meta={"highlight": "group"},  # what pages/ui/highlight.js goes by
    )
    return figure


_Ends = tuple[float, float]
_NO_MARK: dict[str, Any] = {"shapes": [], "annotations": []}


def _fill_panels(
    figure: go.Figure, bands: pd.DataFrame, panels: Sequence[Panel], score: Score, across: _Ends
) -> None:
    """Add to each panel the floors, the means of the others, and its own band."""
    parts = {
        panel.key: bands[bands["mechanism"] == panel.key].sort_values("epsilon") for panel in panels
    }
    floors = bands[bands["epsilon"].isna()]
    if not panels:
        _add_floors(figure, floors, across, score, (1, 1), named=True)
    for number, panel in enumerate(panels):
        place = (number // _ACROSS + 1, number % _ACROSS + 1)
        _add_floors(figure, floors, across, score, place, named=number == 0)
        if len(panels) <= COMPARED:
            for other in panels:
                if other.key != panel.key and not parts[other.key].empty:
                    _add_behind(figure, parts[other.key], other, place)
        if not parts[panel.key].empty:
            _add_band(figure, parts[panel.key], panel, score, place)


def _set_axes(
    figure: go.Figure, limits: _Ends, score: Score, epsilons: Sequence[float], across: _Ends,
    rows: int,
) -> None:  # fmt: skip
    """Give all panels the same axes, named along the foot and at the first panel."""
    ticks = sorted(epsilons)
    figure.update_xaxes(
        type="log", tickvals=ticks, automargin=True,
        ticktext=[numeral(value, 3) for value in ticks],
        range=[math.log10(across[0]) - 0.03, math.log10(across[1]) + 0.03],
    )  # fmt: skip
    figure.update_yaxes(
        range=[*limits], automargin=True, nticks=5,
        **(SHARES if score.key == "accuracy" else {}),
    )  # fmt: skip
    figure.update_xaxes(title="Epsilon", row=rows)
    figure.update_yaxes(title=_title(score), row=1, col=1)


def _set_names(figure: go.Figure, panels: Sequence[Panel]) -> None:
    """Put the name of each panel above its left end."""
    for number, (note, panel) in enumerate(zip(figure.layout.annotations, panels, strict=False)):
        left = figure.get_subplot(1, number % _ACROSS + 1).xaxis.domain[0]
        note.update(
            font={"size": 13, "color": panel.colour}, name=f"name:{panel.key}", x=left,
            xanchor="left", align="left",
        )  # fmt: skip


def _mark(now: float, panels: int) -> dict[str, Any]:
    """Return the line of the current setting in each panel, and its word in the first."""
    mark = standing(now, log=True)
    axes = ["", *range(2, panels + 1)][:panels]  # those of the first have no number
    lines = [
        line | {"xref": f"x{axis}", "yref": f"y{axis} domain"}
        for line in mark["shapes"]
        for axis in axes
    ]
    for word in mark["annotations"]:  # within the first panel: its name stands above
        word.update(yref="y domain", yanchor="top", xanchor="left")
    return {"shapes": lines, "annotations": mark["annotations"]}


def _named(panel: Panel) -> str:
    """Return the name of a panel, with the mark of its claim; words where it has no mark."""
    mark, _, _ = panel.status.partition(" ")
    return wrapped(f"{panel.label} {panel.status if mark.isalpha() else mark}", 26)


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


_Place = tuple[int, int]
"""Row and column of a panel, from 1."""


def _add_floors(
    figure: go.Figure, floors: pd.DataFrame, across: tuple[float, float], score: Score,
    place: _Place, *, named: bool,
) -> None:  # fmt: skip
    """Add grey lines; their bands are told when pointed at."""
    for number, floor in enumerate(floors.to_dict("records")):
        mean = float(floor["mean"])
        told = f"{_told(mean, score)} ({_told(floor['low'], score)} to "
        figure.add_trace(
            scatter(
                x=list(across), y=[mean, mean], mode="lines", name=floor["mechanism"],
                showlegend=named,
                line={"color": TRUE_COLOUR, "width": 1.5,
                      "dash": _FLOOR_DASHES[number % len(_FLOOR_DASHES)]},
                hovertemplate=f"{told}{_told(floor['high'], score)}, {floor['rounds']} rounds)"
                f"<extra>{floor['mechanism']}</extra>",
            ), row=place[0], col=place[1],
        )  # fmt: skip


def _add_behind(figure: go.Figure, part: pd.DataFrame, panel: Panel, place: _Place) -> None:
    """Add the mean of another variant, thin."""
    figure.add_trace(
        scatter(
            x=part["epsilon"], y=part["mean"], mode="lines", hoverinfo="skip", showlegend=False,
            line={"color": faded(GREY, 0.45), "width": 1}, legendgroup=panel.key,
        ), row=place[0], col=place[1],
    )  # fmt: skip


def _add_band(
    figure: go.Figure, part: pd.DataFrame, panel: Panel, score: Score, place: _Place
) -> None:
    """Add band and mean of one variant.

    The mean is dashed, and its points open, where the claim fails: judged at each epsilon.
    """
    row, col = place
    colour = panel.colour
    figure.add_trace(
        scatter(
            x=[*part["epsilon"], *part["epsilon"][::-1]], y=[*part["high"], *part["low"][::-1]],
            fill="toself", fillcolor=faded(colour, 0.16), line={"width": 0},
            hoverinfo="skip", showlegend=False, legendgroup=panel.key, mode="lines",
        ), row=row, col=col,
    )  # fmt: skip
    for line, dash in stretches(part, "solid", x="epsilon"):
        words = verdict_words(line["verdict"])
        scores = [
            [_told(row["mean"], score), _told(row["low"], score), _told(row["high"], score),
             row["rounds"], said]
            for row, said in zip(line.to_dict("records"), words, strict=True)
        ]  # fmt: skip
        figure.add_trace(
            scatter(
                x=line["epsilon"], y=line["mean"], name=f"{panel.label} · {panel.status}",
                legendgroup=panel.key, mode="lines+markers", showlegend=False,
                line={"color": colour, "width": 2, "dash": dash},
                marker={"symbol": symbols(line["verdict"], "circle"), "size": 7},
                customdata=scores,
                hovertext=told("epsilon {}", (line["epsilon"], 3)),
                hovertemplate="%{hovertext}: %{customdata[0]} (%{customdata[1]} to "
                "%{customdata[2]}, %{customdata[3]} rounds), %{customdata[4]}<extra>"
                + panel.label + "</extra>",
            ), row=row, col=col,
        )  # fmt: skip


def _told(value: float, score: Score) -> str:
    return per_cent(decimals(100 * value, 1)) if score.key == "accuracy" else numeral(value, 3)
