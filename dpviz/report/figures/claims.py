"""Figures that check claims: revealing releases, cones, true deltas, chains and attacks."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dpviz.auditing.attack import Curve, EmpiricalCurve
from dpviz.auditing.exhibits import FROM_MODE, WITH, WITHOUT
from dpviz.core.number_text import decimals, numeral, percent
from dpviz.mechanisms import Mechanism
from dpviz.report.figures.axes import frame, log_axis
from dpviz.report.figures.theme import (
    BELOW,
    DASHES,
    FIRST_TONE,
    SECOND_TONE,
    SHARES,
    TRUE_COLOUR,
    WARNING_TONE,
    colour_of,
    curve,
    to_scale,
    told,
)

WORKS, FAILS = FIRST_TONE, WARNING_TONE
_STARTS = (FIRST_TONE, SECOND_TONE)
_RATES = "alarms {}, misses {}"


def _layout(figure: go.Figure, height: int) -> go.Figure:
    figure.update_layout(frame(height, legend=BELOW, hovermode="closest"), overwrite=True)
    return figure.update_xaxes(automargin=True)


def support_figure(table: pd.DataFrame, now: float) -> go.Figure:
    """Draw the share of releases that reveal their table, as counted and as computed exactly.

    Parameters
    ----------
    table : DataFrame
        `dpviz.auditing.exhibits.SUPPORT_COLUMNS`.
    now : float
        The current epsilon.
    """
    figure = go.Figure()
    figure.add_trace(
        curve(
            table["epsilon"], table["exact"], "epsilon {}: {}", "exact, 1 - exp(-epsilon/3)",
            line={"color": TRUE_COLOUR, "width": 2, "shape": "spline"},
        )
    )  # fmt: skip
    figure.add_trace(
        curve(
            table["epsilon"], table["share"], "epsilon {}: {}", "counted", mode="markers",
            marker={"color": FAILS, "size": 8},
            error_y={
                "type": "data", "symmetric": False, "array": table["high"] - table["share"],
                "arrayminus": table["share"] - table["low"], "color": FAILS, "thickness": 1.5,
            },
        )
    )  # fmt: skip
    figure.add_vline(x=now, line={"color": TRUE_COLOUR, "width": 1})
    values = [float(value) for value in table["epsilon"]]
    figure.update_xaxes(
        title="claimed epsilon",
        type="log",
        tickvals=values,
        ticktext=[numeral(v, 6) for v in values],
    )
    figure.update_yaxes(title="share of releases that reveal the table", range=[0, 1], **SHARES)
    return _layout(figure, 400)


def cone_figure(table: pd.DataFrame) -> go.Figure:
    """Draw releases at d = 2 and the cone of releases that the full table can produce.

    Parameters
    ----------
    table : DataFrame
        `dpviz.auditing.exhibits.CONE_COLUMNS`.
    """
    names = list(dict.fromkeys(table["mechanism"]))
    figure = make_subplots(
        rows=1, cols=len(names), subplot_titles=names, shared_yaxes=True, horizontal_spacing=0.1
    )
    for column, name in enumerate(names, start=1):
        part = table[table["mechanism"] == name]
        # The axis leaves out the far tail, which would squeeze the points near the cone's edge.
        reach = float(np.quantile(np.maximum(part["half_trace"].abs(), part["radius"]), 0.9))
        if part["outside"].any():
            figure.add_trace(
                go.Scatter(
                    x=[0, reach, reach], y=[0, reach, 0], fill="toself", mode="lines",
                    line={"width": 1, "color": TRUE_COLOUR}, fillcolor="rgba(127, 127, 127, 0.18)",
                    name="possible releases of the full table", hoverinfo="skip",
                ),
                row=1, col=column,
            )  # fmt: skip
        groups = (
            (part[part["table"] == WITH], "release " + WITH, WORKS, "circle", 5),
            (
                part[(part["table"] == WITHOUT) & ~part["outside"]],
                f"release, {WITHOUT}", _STARTS[1], "circle-open", 6,
            ),
            (part[part["outside"]], f"{WITHOUT}: impossible with it", FAILS, "x", 8),
        )  # fmt: skip
        for points, words, colour, marker, size in groups:
            if points.empty:
                continue
            figure.add_trace(
                go.Scatter(
                    x=points["half_trace"], y=points["radius"], mode="markers", name=words,
                    legendgroup=words, showlegend=column == 1, hoverinfo="skip",
                    marker={"color": colour, "symbol": marker, "size": size},
                ),
                row=1, col=column,
            )  # fmt: skip
        low = 0.0 - 0.12 * reach if part["outside"].any() else -reach
        figure.update_xaxes(title="half the trace", range=[low, reach], row=1, col=column)
        figure.update_yaxes(range=[0, reach], row=1, col=column)
        if column > 1:
            figure.update_yaxes(showticklabels=True, row=1, col=column)
    figure.update_yaxes(title="radius", row=1, col=1)
    return to_scale(_layout(figure, 440))


def turning_figure(rows: pd.DataFrame, table: pd.DataFrame) -> go.Figure:
    """Draw the rows of both tables and the direction published for each.

    Parameters
    ----------
    rows : DataFrame
        `dpviz.auditing.exhibits.turning_rows`.
    table : DataFrame
        `dpviz.auditing.exhibits.TURNING_COLUMNS`.
    """
    first, second = "feature 1", "feature 2"
    names = [WITH, WITHOUT]
    figure = make_subplots(
        rows=1, cols=2, subplot_titles=names, shared_yaxes=True, horizontal_spacing=0.06
    )
    for column, name in enumerate(names, start=1):
        part = table[table["table"] == name]
        numbers = part[["draw", "first", "second", "angle"]].to_numpy(dtype=np.float64)
        for number, (draw, x, y, angle) in enumerate(numbers):
            figure.add_trace(
                go.Scatter(
                    x=[-1.2 * x, 1.2 * x], y=[-1.2 * y, 1.2 * y],
                    mode="lines", name="published direction", legendgroup="direction",
                    showlegend=column == 1 and number == 0, line={"color": FAILS, "width": 3},
                    hovertemplate=f"{decimals(angle, 1)} degrees<extra>simulated release "
                                  f"{decimals(draw, 0)}</extra>",
                ),
                row=1, col=column,
            )  # fmt: skip
        # Both tables share the first two people. The third person has another row in each table.
        people = pd.concat([rows.iloc[:2], rows[rows["person"].str.endswith(name)]])
        figure.add_trace(
            curve(
                people[first], people[second], "({}, {})", "people", mode="markers+text",
                text=["first", "second", "third"],
                textposition=["bottom center", "middle right", "top center"],
                legendgroup="people", showlegend=column == 1,
                marker={"color": WORKS, "size": 11},
                hovertemplate="%{text}: %{hovertext}<extra></extra>",
            ),
            row=1, col=column,
        )  # fmt: skip
        figure.update_xaxes(title=first, range=[-0.3, 1.3], row=1, col=column)
        figure.update_yaxes(range=[-0.3, 1.3], row=1, col=column)
    figure.update_yaxes(title=second, row=1, col=1)
    return to_scale(_layout(figure, 380))


def delta_figure(table: pd.DataFrame, now: float) -> go.Figure:
    """Draw the true delta and the claimed delta against epsilon, on log axes.

    Parameters
    ----------
    table : DataFrame
        `dpviz.auditing.exhibits.DELTA_COLUMNS`.
    now : float
        The current epsilon.
    """
    figure = go.Figure()
    colours = dict(zip(dict.fromkeys(table["relation"]), (FAILS, WORKS), strict=False))
    dashes = dict(zip(dict.fromkeys(table["mechanism"]), DASHES, strict=False))
    for (mechanism, relation), part in table.groupby(["mechanism", "relation"], sort=False):
        figure.add_trace(
            curve(
                part["epsilon"], part["true_delta"], "epsilon {}: delta {}",
                f"{mechanism}, {relation}", digits=(3, 2),
                line={"color": colours[relation], "dash": dashes[mechanism], "width": 2},
            )
        )  # fmt: skip
    delta = float(table["claimed_delta"].iloc[0])
    figure.add_hline(y=delta, line={"color": TRUE_COLOUR, "dash": "dash", "width": 1})
    figure.add_annotation(
        # On a logarithmic axis, Plotly takes the positions of annotations as logarithms.
        x=0, xref="paper", xanchor="left", y=math.log10(delta), yanchor="bottom",
        text="claimed delta", showarrow=False, font={"size": 12},
    )  # fmt: skip
    # A line at an epsilon beyond all curves is left out, because it would stretch the axis.
    if table["epsilon"].min() <= now <= table["epsilon"].max():
        figure.add_vline(x=now, line={"color": TRUE_COLOUR, "width": 1})
    # The axis ends at most six decades below the claimed delta, because 0 has no logarithm.
    low = max(float(table["true_delta"].min()), delta * 1e-6, 1e-300)
    high = max(float(table["true_delta"].max()), delta)
    figure.update_xaxes(title="claimed epsilon", type="log")
    figure.update_yaxes(log_axis("true delta", math.log10(low) - 0.3, math.log10(high) + 0.3))
    return _layout(figure, 420)


def gibbs_figure(table: pd.DataFrame) -> go.Figure:
    """Draw the mean score of Markov chains after each sweep beside the exact mean.

    Parameters
    ----------
    table : DataFrame
        `dpviz.auditing.exhibits.GIBBS_COLUMNS`.
    """
    figure = go.Figure()
    for start, part in table.groupby("start", sort=False):
        colour = _STARTS[0 if start == FROM_MODE else 1]
        figure.add_trace(
            curve(
                part["sweep"], part["mean"], "sweep {}: {}", f"from {start}", digits=(6, 4),
                mode="lines+markers", line={"color": colour, "width": 2}, marker={"size": 6},
                error_y={"type": "data", "array": part["high"] - part["mean"], "thickness": 1.2},
            )
        )  # fmt: skip
    figure.add_hline(
        y=float(table["exact"].iloc[0]), line={"color": TRUE_COLOUR, "dash": "dash", "width": 1.5},
        annotation={"text": "exact", "font": {"size": 12}}, annotation_position="bottom right",
    )  # fmt: skip
    figure.update_xaxes(title="sweeps of the chain", dtick=1)
    figure.update_yaxes(title="mean score, as a share of the best score")
    return _layout(figure, 380)


def attack_figure(
    bound: Curve, mechanism: Mechanism, label: str, attack: EmpiricalCurve | None = None
) -> go.Figure:
    """Draw the trade-off of a membership test: misses against false alarms.

    Parameters
    ----------
    bound : Curve
    mechanism : Mechanism
    label : str
        Name of the mechanism, or of its claim.
    attack : EmpiricalCurve, optional
        Error rates that one attack reached, with their band.
    """
    colour = colour_of(mechanism)
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=[0, 1], y=[1, 0], mode="lines", name="guessing blindly",
            line={"color": TRUE_COLOUR, "dash": "dash", "width": 1}, hoverinfo="skip",
        )
    )  # fmt: skip
    if attack is not None:
        figure.add_trace(
            go.Scatter(
                x=[*attack.alpha, *attack.alpha[::-1]], y=[*attack.high, *attack.low[::-1]],
                fill="toself", mode="lines", line={"width": 0}, name="band of the attack",
                fillcolor="rgba(127, 127, 127, 0.25)", hoverinfo="skip",
            )
        )  # fmt: skip
        figure.add_trace(
            curve(
                attack.alpha, attack.beta, _RATES, "error rates of the attack",
                line={"color": TRUE_COLOUR, "width": 2},
            )
        )  # fmt: skip
    words = "exact" if bound.exact else "lower bound for every attacker"
    if attack is not None:
        words = "lowest error rates that the claim allows"
    figure.add_trace(
        curve(
            bound.alpha, bound.beta, _RATES, f"{label}: {words}",
            line={"color": colour, "width": 3, "dash": "solid" if bound.exact else "dot"},
        )
    )  # fmt: skip
    figure.update_xaxes(title="false alarms: the test says “in” for an absent person", range=[0, 1])
    figure.update_yaxes(title="misses: the test says “out” for a present person", range=[0, 1.02])
    return _layout(figure, 420)


def posterior_figure(
    table: pd.DataFrame, prior: float, mechanism: Mechanism, limit: float | None
) -> go.Figure:
    """Draw the belief after an alarm against the rate of false alarms.

    Parameters
    ----------
    table : DataFrame
        `dpviz.auditing.attack.ATTACK_COLUMNS`.
    prior : float
    mechanism : Mechanism
    limit : float or None
        The highest belief that the given epsilon allows without delta.
    """
    # The axis is logarithmic, so values of 0 are left out.
    table = table[table["alpha"] > 0]
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=table["alpha"], y=table["posterior"], mode="lines", showlegend=False,
            line={"color": colour_of(mechanism), "width": 3},
            hovertext=[
                f"alarms {numeral(alpha)}: {percent(posterior)}"
                for alpha, posterior in zip(table["alpha"], table["posterior"], strict=True)
            ],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    )  # fmt: skip
    for value, words in (
        (prior, "belief before the release"),
        (limit, "highest belief that epsilon allows without delta"),
    ):
        if value is not None:
            figure.add_hline(
                y=value, line={"color": TRUE_COLOUR, "dash": "dash", "width": 1},
                annotation={"text": words, "font": {"size": 12}},
                annotation_position="bottom right" if value == prior else "top right",
            )  # fmt: skip
    figure.update_xaxes(log_axis("false alarms of the test", -6, 0))
    figure.update_yaxes(title="belief after an alarm", range=[0, 1.02], **SHARES)
    return _layout(figure, 420)


_BOUNDS_OF_AN_AUDIT = (
    ("claimed", TRUE_COLOUR, "line-ew-open", 18),
    ("measured", WARNING_TONE, "triangle-up", 11),
    ("exact", FIRST_TONE, "circle-open", 11),
)


def audited_figure(table: pd.DataFrame, label: str) -> go.Figure:
    """Draw delta at each epsilon: the claim, a measured lower bound, and the exact value if known.

    Parameters
    ----------
    table : DataFrame
        Table with columns bound, at_epsilon, claimed, measured and exact.
    label : str
        Name of the mechanism.
    """
    rows = table[table["bound"] == "delta"]
    figure = go.Figure()
    for name, colour, symbol, size in _BOUNDS_OF_AN_AUDIT:
        audits = rows[rows[name].notna()]
        if audits.empty:
            continue
        figure.add_trace(
            go.Scatter(
                x=audits["at_epsilon"], y=audits[name].astype(float), mode="markers", name=name,
                marker={
                    "color": colour, "symbol": symbol, "size": size,
                    "line": {"width": 2, "color": colour},
                },
                hovertext=told(
                    "at epsilon {}: delta {}",
                    (audits["at_epsilon"], 3), (audits[name].astype(float), 3),
                ),
                hovertemplate="%{hovertext}<extra>" + name + "</extra>",
            )
        )  # fmt: skip
    figure.update_xaxes(title="epsilon", type="log")
    figure.update_yaxes(title=f"{label}: remaining delta", rangemode="tozero")
    return _layout(figure, 360)
