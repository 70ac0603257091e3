"""Charts of a paper's experiment: measured curves, and reported next to measured numbers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from dpviz.core.files import atomic_write, write_csv
from dpviz.core.number_text import numeral
from dpviz.papers.experiment import Chart, PrintedFrame
from dpviz.papers.measurements import Mean
from dpviz.papers.report import drawn, lines_table, markdown
from dpviz.papers.run import Findings
from dpviz.papers.said import Claim, ClaimAnswer, Stated
from dpviz.report.figures.axes import frame, log_axis
from dpviz.report.figures.theme import (
    BELOW,
    DASHES,
    GREY,
    MARKERS,
    colour_of_key,
    scatter,
    told,
    wrapped,
)
from dpviz.report.tables.projection import LABEL_COLOURS

_COLUMNS = 3
_PANEL_HEIGHT, _FRAME_HEIGHT = 300, 190


# --- answers as marks -------------------------------------------------------------------------

REPRODUCED, IN_PART, NOT_REPRODUCED, NOT_TESTED = (
    "reproduced", "holds in part or with limits", "not reproduced", "cannot be tested here",
)  # fmt: skip
MARKS = {REPRODUCED: "✓", IN_PART: "~", NOT_REPRODUCED: "✗", NOT_TESTED: "?"}
"""Four kinds of answers, each with a mark that is readable without colour."""
_KINDS = {
    ClaimAnswer.REPRODUCED: REPRODUCED,
    ClaimAnswer.CONSTRUCTION: REPRODUCED,
    ClaimAnswer.NOT_REPRODUCED: NOT_REPRODUCED,
    ClaimAnswer.FEW_DRAWS: NOT_TESTED,
    ClaimAnswer.NOT_HERE: NOT_TESTED,
    ClaimAnswer.PENDING: NOT_TESTED,
}

STYLE = """<style>
.dp-mark { display: inline-flex; width: 27px; height: 27px; border-radius: 4px; color: #1c2530;
  align-items: center; justify-content: center; font-size: 16px; line-height: 1;
  box-sizing: border-box; text-decoration: none !important; vertical-align: -6px; }
.dp-m0, .dp-m2 { color: #fff !important; } .dp-m0 { background: #21796e; }
.dp-m1 { background: #cfe0dd; color: #1c2530 !important; } .dp-m2 { background: #b8001d; }
.dp-m3 { background: #dde3ea; color: #1c2530 !important; }
a.dp-mark:focus-visible { outline: 3px solid #2b6cb0; outline-offset: 2px; }
.dp-mark.here { outline: 3px solid #a86800; outline-offset: 0; }
.dp-key { display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 15px; margin: 4px 0; }
.dp-key > span { display: flex; gap: 6px; align-items: center; }
.dp-paper { font-size: 16px; margin: 0 0 14px; }
.dp-bar { display: flex; height: 29px; margin: 3px 0 6px; }
.dp-bar span { border-radius: 0; width: auto; height: 100%; justify-content: start; padding: 0 7px;
  font-weight: 600; min-width: 0; border-right: 1px solid Canvas; overflow: hidden; }
.dp-squares { display: flex; flex-wrap: wrap; gap: 4px; }
.dp-claims { border-collapse: collapse; width: 100%; font-size: 15px; }
.dp-claims .dp-here td { background: #2f74b522; }
.dp-claims th { text-align: left; font-weight: 600; font-size: 15px; }
.dp-claims small { font-size: 15px; line-height: 1.3; opacity: .85; }
.dp-claims th, .dp-claims td { padding: 5px 10px 5px 0; border-bottom: 1px solid #8886;
  vertical-align: top; }
.dp-claims th:nth-child(1) { width: 9%; } .dp-claims th:nth-child(2) { width: 28%; }
.dp-claims th:nth-child(3) { width: 21%; } .dp-claims th:nth-child(4) { width: 15%; }
@media (max-width: 700px) {
  .dp-claims thead { display: none; }
  .dp-claims tr { display: block; border-bottom: 1px solid #8886; padding: 6px 0; }
  .dp-claims td { display: block; border: 0; padding: 1px 0; }
}
</style>"""


def kind_of(answer: ClaimAnswer) -> str:
    """Return the kind of an answer, one of the four kinds of `MARKS`."""
    return _KINDS.get(answer, IN_PART)


def counts_of(claims: Sequence[Claim]) -> dict[str, int]:
    """Count the claims by kind of answer, without claims that hold by construction."""
    counts = Counter(kind_of(claim.answer) for claim in claims if claim.counts)
    return {kind: counts[kind] for kind in MARKS}


def mark_html(
    answer: ClaimAnswer, address: str = "", title: str = "", *, here: bool = False
) -> str:
    """Return an answer's mark: a coloured square, as a link if it has an address."""
    kind = kind_of(answer)
    look = f'class="dp-mark dp-m{list(MARKS).index(kind)}{" here" if here else ""}"'
    if not address:
        return f'<span {look} aria-hidden="true">{MARKS[kind]}</span>'
    words = escape(title, quote=True)
    return f'<a {look} href="{escape(address, quote=True)}" target="_self" title="{words}" aria-label="{words}">{MARKS[kind]}</a>'  # noqa: E501


def key_html() -> str:
    """Return the legend of the answers' marks."""
    items = "".join(
        f'<span><span class="dp-mark dp-m{place}" aria-hidden="true">{mark}</span> {kind}</span>'
        for place, (kind, mark) in enumerate(MARKS.items())
    )
    return f'{STYLE}<div class="dp-key">{items}</div>'


def paper_html(name: str, claims: Sequence[tuple[Claim, str, bool]], most: int) -> str:
    """Return a paper's claims as a bar of squares; a click on a square opens its experiment.

    Parameters
    ----------
    name : str
    claims : sequence of (Claim, str, bool)
        Claims as printed, each with the address of its experiment and whether it is shown.
    most : int
        Number of claims that fill a line, which is the same for all papers.
    """
    kinds = list(MARKS)
    ordered_claims = sorted(claims, key=lambda one: kinds.index(kind_of(one[0].answer)))
    counts = counts_of([claim for claim, _, _ in claims])
    bar = "".join(
        f'<span class="dp-mark dp-m{place}" style="flex:0 0 {100 * count / most:.2f}%" '
        f'title="{kind}">{count}</span>'
        for place, (kind, count) in enumerate(counts.items())
        if count
    )
    marks = "".join(
        mark_html(claim.answer, address, f"{claim.place}: {claim.item}: {claim.answer}", here=here)
        for claim, address, here in ordered_claims
    )
    return (
        f'<div class="dp-paper"><b>{escape(name)}</b> {sum(counts.values())} claims'
        f', one square each<div class="dp-bar">{bar}</div>'
        f'<div class="dp-squares">{marks}</div></div>'
    )


def claims_html(claims: Sequence[Claim], key: str = "") -> str:
    """Return claims as a table: place, printed text, measured value, answer, reason.

    The row of the claim with the key ``key`` is marked.
    """
    heads = ("where", "printed in the paper", "our mean ± 95 % interval", "answer, coverage", "why")
    rows = []
    for claim in claims:
        quote = f"{escape(claim.item)}<br><small>“{escape(claim.quote)}”</small>"
        if claim.stated:
            quote += f"<br><b>{escape(claim.stated)}</b>"
        cover = (
            "" if claim.coverage in ("", "all", "none") else f"<br><small>{claim.coverage}</small>"
        )
        number = escape(_short(claim)) or "–"
        cells = (
            escape(claim.place), quote, number,
            f"{mark_html(claim.answer)} {escape(str(claim.answer))}{cover}", escape(claim.reason),
        )  # fmt: skip
        mark = ' class="dp-here" aria-current="true"' if claim.key == key else ""
        rows.append(f"<tr{mark}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in heads)
    return (
        f'{STYLE}<table class="dp-claims"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


_LONG = 180


def _short(claim: Claim) -> str:
    """Return the measured text, shortened if long, with the number of simulated releases."""
    # Add the number of releases only if all lines share it, because it would otherwise be wrong.
    draws = {line.mean.draws for line in claim.lines if line.mean and line.mean.draws > 1}
    text = claim.measured if len(claim.measured) <= _LONG else claim.measured[:_LONG] + "…"
    return f"{text} · {max(draws):,} draws" if len(draws) == 1 and text else text


# --- exhibits: printed and measured in the same axes --------------------------------------------

Row = tuple[str, Stated, Mean]


def exhibit_place(place: str, claims: Sequence[Claim]) -> str:
    """Return an experiment's place, with the quantity if all numbers of a table share it."""
    kinds = {claim.item.partition(" of ")[0] for claim in claims if exhibit_rows([claim])}
    # Only numbers of a table share a quantity. In a text, each number is a claim of its own.
    is_table = place.startswith("Table") and len(kinds) == 1
    return f"{place}, {kinds.pop()}" if is_table else place


def claim_sentence(claim: Claim) -> str:
    """Return a claim's answer, the claim, and what was printed and measured, in Markdown."""
    here = f" Here: {_short(claim)}." if claim.measured else ""
    text = f"{str(claim.answer).capitalize()}:** {claim.item}. Paper: {claim.stated or claim.quote}"
    return f"**{text}.{here}"


def order_sentence(rows: Sequence[Row]) -> str:
    """Return where the paper's lowest number of a table lies among the measured numbers."""
    name, cell, mean = min(rows, key=lambda row: row[1].value)
    lower = sum(row[2].value < mean.value for row in rows)
    order = f"{lower} of {len(rows)} are lower" if lower else "it is still the lowest"
    values = f"{numeral(cell.value, 3)}. Here it has **{numeral(mean.value, 3)}**"
    return f"In the paper, **{name}** is lowest with {values}, and {order}."


def exhibit_rows(claims: Sequence[Claim]) -> list[Row]:
    """Return the printed numbers that were measured, in the order of the table."""
    return [
        (_row_name(claim.item), line.stated, line.mean)
        for claim in claims
        for line in claim.lines
        if line.stated is not None and line.mean is not None and math.isfinite(line.mean.value)
    ]


def _row_name(item: str) -> str:
    """Return a row's name: the words after "of", because the words before "of" name the table."""
    name = item.partition(" of ")[2].partition(", over")[0] or item
    name = name.removeprefix("the ").removeprefix("a ")
    return name[0].upper() + name[1:]


def table_figure(rows: Sequence[Row]) -> go.Figure:
    """Draw a table of the paper as one chart with printed and measured numbers.

    Parameters
    ----------
    rows : sequence of (str, Stated, Mean)
        Table rows, which the chart sorts by the measured number, with the least on top.
    """
    rows = sorted(rows, key=lambda row: row[2].value)
    names = [
        f"{wrapped(name, 26)}<br>{numeral(cell.value, 3)} → {numeral(mean.value, 3)}"
        for name, cell, mean in rows
    ]
    paper_values = [(cell.value, cell.error) for _, cell, _ in rows]
    means = [(mean.value, mean.half) for _, _, mean in rows]
    figure = go.Figure()
    for words, symbol, numbers in (
        ("printed, with error bars", "circle-open", paper_values),
        ("measured, with 95 % interval", "circle", means),
    ):
        values, errors = zip(*numbers, strict=True)
        figure.add_trace(
            scatter(
                x=values, y=list(range(len(rows))), mode="markers", name=words, cliponaxis=False,
                error_x={"type": "data", "array": errors, "thickness": 1.5, "width": 0},
                marker={"symbol": symbol, "size": 10, "color": GREY, "line": {"width": 2}},
                hovertext=told("{}", (values, 3)), hovertemplate="%{hovertext}",
            )
        )  # fmt: skip
    for place, ((first, _), (last, _)) in enumerate(zip(paper_values, means, strict=True)):
        figure.add_shape(
            type="line", x0=first, x1=last, y0=place, y1=place, line={"color": GREY, "width": 3},
            opacity=0.5, layer="below",
        )  # fmt: skip
    # Start the axis at 0, so that lengths of bars are proportional to the numbers.
    figure.update_xaxes(rangemode="tozero", automargin=True)
    figure.update_yaxes(
        tickvals=list(range(len(rows))), ticktext=names, autorange="reversed", automargin=True
    )
    lines = sum(name.count("<br>") + 1 for name in names)
    return figure.update_layout(frame(110 + 24 * lines, top=10, legend=BELOW), overwrite=True)


# --- charts of one experiment -----------------------------------------------------------------


def chart_panels(points: pd.DataFrame, chart: Chart) -> list[str]:
    """Return the panels of a chart that have points, in the order of measurement."""
    return list(dict.fromkeys(_points_of(points, chart)["panel"]))


def chart_figure(
    points: pd.DataFrame,
    chart: Chart,
    panels: Sequence[str] | None = None,
    frames: Sequence[PrintedFrame] = (),
) -> go.Figure:
    """Draw one quantity against x, with one panel per data set and the interval of each mean.

    Parameters
    ----------
    points : DataFrame
        `dpviz.papers.measurements.Measurements.table`.
    chart : Chart
    panels : sequence of str, optional
        Panels to draw; by default `chart_panels`.
    frames : sequence of PrintedFrame
        Printed frames, used instead of panels, in the paper's order. The frames hold axis marks but
        no curves, because the paper's text has only the marks. A frame without data is empty and
        says so.
    """
    lines = _points_of(points, chart)
    frames_by_panel = {frame.panel: frame for frame in frames}
    panels = [*frames_by_panel] or (chart_panels(points, chart) if panels is None else panels)
    wide = max(1, min(_COLUMNS, len(panels)))
    rows = max(1, math.ceil(len(panels) / wide))
    many = len(panels) > 1  # For one panel, a grid takes ten times as long as a plain figure.
    there = set(lines["panel"])
    titles = [
        panel if panel in there or not frames else f"{panel}: no data available" for panel in panels
    ]
    figure = (
        make_subplots(
            rows=rows,
            cols=wide,
            subplot_titles=titles,
            horizontal_spacing=0.08,
            vertical_spacing=min(0.2, 0.22 / rows + 0.02),
        )
        if many
        else go.Figure(layout={"annotations": [_TITLE | {"text": title} for title in titles]})
    )
    # If lines are settings or formulas instead of mechanisms, use the colours of labels.
    plain = [colour_of_key(series.key) == GREY for series in chart.series]
    colours = [
        LABEL_COLOURS[number % len(LABEL_COLOURS)] if all(plain) else colour_of_key(series.key)
        for number, series in enumerate(chart.series)
    ]
    # Marker and dash distinguish lines of the same colour.
    places = [
        number if all(plain) else colours[:number].count(colour)
        for number, colour in enumerate(colours)
    ]
    names: set[str] = set()
    for place, panel in enumerate(panels):
        here = lines[lines["panel"] == panel]
        cell = {"row": place // wide + 1, "col": place % wide + 1} if many else {}
        for series, colour, among in zip(chart.series, colours, places, strict=True):
            line = here[here["series"] == series.name].sort_values("x")
            if not line.empty:
                figure.add_trace(
                    _curve(line, series.name, (colour, among), series.name not in names), **cell
                )
                names.add(series.name)
        limits = lines if chart.share_y else here
        bars = pd.concat([limits["mean"], limits["mean_low"], limits["mean_high"]]).dropna()
        # Axis titles take width, so only the first panel of each row has one.
        title = "" if place % wide else chart.y_label
        marks = frames_by_panel.get(panel, PrintedFrame(panel))
        if here.empty:
            figure.add_trace(scatter(x=[None], y=[None], showlegend=False), **cell)
        x_title = "" if frames and place < len(panels) - wide else chart.x_label
        figure.update_xaxes(**_axis(x_title, here["x"], chart.log_x, marks.x), **cell)
        figure.update_yaxes(**_axis(title, bars, chart.log_y, marks.y, chart.share_y), **cell)
    high = _PANEL_HEIGHT if not frames else _FRAME_HEIGHT
    legend = {"orientation": "h", "yanchor": "top", "y": -75 / (high * rows), "x": 0}
    layout = frame(high * rows + 110, legend=legend, hovermode="closest")
    return figure.update_layout(layout, overwrite=True)


# Place the panel title where Plotly's `make_subplots` places titles.
_TITLE = {
    "x": 0.5, "y": 1.0, "xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom",
    "showarrow": False, "font": {"size": 16},
}  # fmt: skip


def _points_of(points: pd.DataFrame, chart: Chart) -> pd.DataFrame:
    return points[(points["quantity"] == chart.quantity) & points["x"].notna()]


def _curve(line: pd.DataFrame, name: str, look: tuple[str, int], legend: bool) -> dict[str, Any]:
    colour, place = look
    above = (line["mean_high"] - line["mean"]).fillna(0.0)
    return scatter(
        x=line["x"],
        y=line["mean"],
        error_y={
            "type": "data",
            "array": above,
            "arrayminus": (line["mean"] - line["mean_low"]).fillna(0.0),
            "thickness": 1.2,
            "width": 3,
        },
        mode="lines+markers",
        name=name,
        legendgroup=name,
        showlegend=legend,
        line={
            "color": colour,
            "dash": DASHES[place % len(DASHES)],
            "width": 2,
        },
        marker={"symbol": MARKERS[place % len(MARKERS)], "size": 7},
        hovertext=told("{}: {}", (line["x"], 4), (line["mean"], 4)),
        hovertemplate="%{hovertext}<extra>" + name + "</extra>",
    )


def _axis(
    title: str, values: pd.Series, log: bool, marks: Sequence[float], fixed: bool = False
) -> dict[str, Any]:
    """Return kind, limits and ticks of an axis that shows the given values and printed marks."""
    if marks:
        ends = [*marks, *values]
        room = 0.04 * (max(ends) - min(ends))
        return {
            "title": title, "type": "linear", "range": [min(ends) - room, max(ends) + room],
            "tickvals": marks, "ticktext": [numeral(mark) for mark in marks],
        }  # fmt: skip
    visible = values[values > 0] if log else values
    if visible.empty:
        return {"title": title, "type": "linear"}
    low, high = float(visible.min()), float(visible.max())
    if not log:
        room = 0.05 * (high - low)
        plain = {"title": title, "type": "linear"}
        return plain | ({"range": [low - room, high + room]} if fixed else {})
    first, last = math.log10(low), math.log10(high)
    room = 0.05 * max(last - first, 0.2)
    return log_axis(title, first - room, last + room)


def write_report(reproduction: Findings, folder: Path) -> list[Path]:
    """Write the report, the lines, the measured points and the charts of an experiment.

    Parameters
    ----------
    reproduction : Findings
    folder : Path
        Existing folder for the files.

    Returns
    -------
    list of Path
        The files: ``KEY.md``, ``KEY-lines.csv``, ``KEY-points.csv`` and one ``KEY-CHART.html`` for
        each chart, which needs the ``plotly.min.js`` beside it and no network.
    """
    key = reproduction.experiment.key
    report = folder / f"{key}.md"
    with atomic_write(report) as aside:
        aside.write_text(markdown(reproduction, level=1), encoding="utf-8")
    lines, points = folder / f"{key}-lines.csv", folder / f"{key}-points.csv"
    for path, table in ((lines, lines_table(reproduction)), (points, reproduction.points)):
        with atomic_write(path) as aside:
            write_csv(table, aside)
    files = [report, lines, points]
    library = folder / "plotly.min.js"
    if not library.is_file():  # Without this copy, the first chart would write the file itself.
        with atomic_write(library) as aside:
            aside.write_text(get_plotlyjs(), encoding="utf-8")
    for chart in drawn(reproduction):
        path = folder / f"{key}-{chart.name}.html"
        figure = chart_figure(reproduction.points, chart)
        with atomic_write(path) as aside:
            figure.write_html(aside, include_plotlyjs="directory", full_html=True)
        files.append(path)
    return files
