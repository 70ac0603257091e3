"""Pictures of a paper's experiment: measured curves, and reported beside measured numbers."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from dpviz.core.files import atomic_write, write_csv
from dpviz.core.number_text import log_ticks, numeral
from dpviz.papers.experiment import Chart, PrintedFrame
from dpviz.papers.measurements import Mean
from dpviz.papers.report import drawn, lines_table, markdown
from dpviz.papers.run import Findings
from dpviz.papers.said import Claim, ClaimAnswer, Stated, counted
from dpviz.report.figures.svg import image
from dpviz.report.figures.theme import DASHES, GREY, MARKERS, colour_of_key, scatter, told
from dpviz.report.tables.projection import LABEL_COLOURS

_COLUMNS = 3
_PANEL_HEIGHT = 300


# --- answers as marks -------------------------------------------------------------------------

MARKS: Mapping[ClaimAnswer, tuple[str, str]] = {
    ClaimAnswer.REPRODUCED: ("✓", "#21796e"),
    ClaimAnswer.IN_PART: ("◐", "#3f857c"),
    ClaimAnswer.STAND_IN: ("◇", "#3f857c"),
    ClaimAnswer.OTHER_REASON: ("≠", "#8a5a3c"),
    ClaimAnswer.BOUND: ("≤", "#6f6600"),
    ClaimAnswer.NO_DIFFERENCE: ("=", "#5b5b93"),
    ClaimAnswer.ORDER: ("↕", "#5b5b93"),
    ClaimAnswer.FEW_DRAWS: ("…", "#5f6773"),
    ClaimAnswer.NOT_REPRODUCED: ("✗", "#b8001d"),
    ClaimAnswer.NOT_HERE: ("–", "#5f6773"),
    ClaimAnswer.CONSTRUCTION: ("□", "#5f6773"),
    ClaimAnswer.PENDING: ("?", "#5f6773"),
}
"""A mark and a colour of each answer; the mark says it without the colour."""
_HOLLOW = (
    ClaimAnswer.FEW_DRAWS,
    ClaimAnswer.NOT_HERE,
    ClaimAnswer.CONSTRUCTION,
    ClaimAnswer.PENDING,
)

STYLE = """<style>
.dp-mark { display: inline-flex; width: 22px; height: 22px; border-radius: 4px; color: #fff;
  align-items: center; justify-content: center; font-size: 14px; line-height: 1;
  box-sizing: border-box; text-decoration: none; vertical-align: -4px; }
.dp-mark.hollow { background: none !important; border: 1.5px solid currentColor; color: inherit; }
a.dp-mark:focus-visible { outline: 3px solid #2b6cb0; outline-offset: 2px; }
.dp-squares { display: flex; flex-wrap: wrap; gap: 6px 14px; margin: 2px 0 10px; }
.dp-squares > span { display: inline-flex; flex-direction: column; gap: 3px; font-size: 13px; }
.dp-squares > span > span { display: flex; flex-wrap: wrap; gap: 4px; }
.dp-key { display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 14px; margin: 4px 0; }
.dp-claims { border-collapse: collapse; width: 100%; font-size: 15px; }
.dp-claims th { text-align: left; font-weight: 600; font-size: 14px; }
.dp-claims small { font-size: 13px; line-height: 1.3; opacity: .85; }
.dp-claims th, .dp-claims td { padding: 5px 10px 5px 0; border-bottom: 1px solid #8886;
  vertical-align: top; }
.dp-phone { display: none; }
.dp-exhibit { display: flex; flex-wrap: wrap; gap: 12px 28px; }
.dp-exhibit > div { flex: 1 1 330px; min-width: 0; }
.dp-exhibit h2, .dp-phone h2 { margin: 0; padding: 0; font-size: 16px; }
.dp-exhibit p, .dp-phone p { margin: 0 0 4px; font-size: 14px; opacity: .85; }
.dp-exhibit img, .dp-phone img { width: 100%; height: auto; display: block; color-scheme: inherit; }
.dp-claims th:nth-child(1) { width: 9%; } .dp-claims th:nth-child(2) { width: 28%; }
.dp-claims th:nth-child(3) { width: 21%; } .dp-claims th:nth-child(4) { width: 15%; }
@media (max-width: 700px) {
  .dp-word { display: none; }
  .dp-exhibit { display: none; }
  .dp-phone { display: block; }
  .dp-key { gap: 4px 12px; }
  .dp-claims thead { display: none; }
  .dp-claims tr { display: block; border-bottom: 1px solid #8886; padding: 6px 0; }
  .dp-claims td { display: block; border: 0; padding: 1px 0; }
}
</style>"""


def mark_html(answer: ClaimAnswer, address: str = "", title: str = "") -> str:
    """Return an answer's mark: a square of its colour, or a link that looks like one."""
    mark, colour = MARKS[answer]
    hollow = " hollow" if answer in _HOLLOW else ""
    look = f'class="dp-mark{hollow}" style="background:{colour}"'
    if not address:
        return f'<span {look} aria-hidden="true">{mark}</span>'
    said = escape(title, quote=True)
    return f'<a {look} href="{escape(address, quote=True)}" target="_self" title="{said}" aria-label="{said}">{mark}</a>'  # noqa: E501


def key_html(claims: Sequence[Claim]) -> str:
    """Return how many claims have each answer, each with its mark."""
    items = "".join(
        f'<span title="{escape(str(answer), quote=True)}">{mark_html(answer)} <b>{count}</b> '
        f"<span class='dp-word'>{escape(str(answer))}"
        f"{', not counted' if answer is ClaimAnswer.CONSTRUCTION else ''}</span></span>"
        for answer, count in counted(claims).items()
    )
    return f'{STYLE}<div class="dp-key">{items}</div>'


def squares_html(claims: Sequence[tuple[Claim, str]]) -> str:
    """Return a paper's claims in printing order, each a square that opens its exhibit.

    Parameters
    ----------
    claims : sequence of (Claim, str)
        With the address of the exhibit.
    """
    groups: list[tuple[str, list[str]]] = []
    for claim, address in claims:
        place = claim.place
        # in printing order: a place that comes again later is named again
        if not groups or groups[-1][0] != place:
            groups.append((place, []))
        title = f"{place}: {claim.item}: {claim.answer}"
        groups[-1][1].append(mark_html(claim.answer, address, title))
    body = "".join(
        f"<span>{escape(place)}<span>{''.join(marks)}</span></span>" for place, marks in groups
    )
    return f'{STYLE}<div class="dp-squares">{body}</div>'


def claims_html(claims: Sequence[Claim]) -> str:
    """Return claims as a table: where, what is printed, what we measure, answer, why."""
    heads = ("where", "the paper prints", "we measure ± 95 %", "answer, coverage", "why")
    rows = []
    for claim in claims:
        printed = f"{escape(claim.item)}<br><small>“{escape(claim.quote)}”</small>"
        if claim.stated:
            printed += f"<br><b>{escape(claim.stated)}</b>"
        cover = (
            "" if claim.coverage in ("", "all", "none") else f"<br><small>{claim.coverage}</small>"
        )
        measured = escape(_short(claim)) or "–"
        cells = (
            escape(claim.place), printed, measured,
            f"{mark_html(claim.answer)} {escape(str(claim.answer))}{cover}", escape(claim.reason),
        )  # fmt: skip
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in heads)
    return (
        f'{STYLE}<table class="dp-claims"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


_LONG = 180


def _short(claim: Claim) -> str:
    """Return what was measured with the number of draws, or its beginning where it is long."""
    # said where all lines have as many; else no one number is true
    draws = {line.mean.draws for line in claim.lines if line.mean and line.mean.draws > 1}
    text = claim.measured if len(claim.measured) <= _LONG else claim.measured[:_LONG] + "…"
    return f"{text} · {max(draws):,} draws" if len(draws) == 1 and text else text


# --- exhibits: printed left, measured right, in the same axes ---------------------------------

_ROW, _LINE, _LEFT, _WIDE, _LETTERS_WIDE = 27, 15, 214, 640, 31
Row = tuple[str, Stated, Mean]


def exhibit_place(place: str, claims: Sequence[Claim]) -> str:
    """Return where rows stand, and what the numbers of a table are if all are of one kind."""
    kinds = {claim.item.partition(" of ")[0] for claim in claims if exhibit_rows([claim])}
    # elsewhere each is a statement of its own
    named = place.startswith("Table") and len(kinds) == 1
    return f"{place}, {kinds.pop()}" if named else place


def exhibit_rows(claims: Sequence[Claim]) -> list[Row]:
    """Return the printed numbers that were measured, in the order of the table."""
    return [
        (_row_name(claim.item), line.stated, line.mean)
        for claim in claims
        for line in claim.lines
        if line.stated is not None and line.mean is not None and math.isfinite(line.mean.value)
    ]


def _row_name(item: str) -> str:
    """Return the name of a row: what stands before "of" is that of the table."""
    name = item.partition(" of ")[2].partition(", over")[0] or item
    name = name.removeprefix("the ").removeprefix("a ")
    return name[0].upper() + name[1:]


def table_exhibit(rows: Sequence[Row], place: str) -> str:
    """Return a table of the paper as marks with errors, and ours beside it on the same axis.

    Parameters
    ----------
    rows : sequence of (str, Stated, Mean)
        In the order of the table.
    place : str
        "Table 4".
    """
    names = [textwrap.wrap(name, _LETTERS_WIDE) for name, _, _ in rows]
    tops = list(accumulate((_ROW + _LINE * (len(name) - 1) for name in names), initial=0))
    axis = _Axis.of(rows, _LEFT, _WIDE - 132)
    drawn = []
    for ours in (False, True):
        parts = []
        for name, top, (_, stated, mean) in zip(names, tops, rows, strict=False):
            y = top + 18
            if ours:
                x = axis(stated.value)
                parts.append(
                    f'<path d="M{x} {y - 9}v18" stroke="currentColor" stroke-dasharray="2 2"/>'
                )
            parts.append(
                axis.mark(y, mean if ours else stated)
                + _text(_WIDE - 2, y + 5, _with_error(mean if ours else stated), "end")
                + "".join(_text(0, y + 5 + _LINE * line, words) for line, words in enumerate(name))
            )
        bottom = tops[-1] + 10
        label = "measured" if ours else "printed"
        drawn.append(_svg(_WIDE, bottom + 20, axis.ticks(bottom) + "".join(parts), label))
    return _pair(
        f"The paper: {place}", "Printed, with its errors, in its own order.", drawn[0],
        "We, on the same axis", "Bars: 95 % of the mean. Dashed: what is printed.", drawn[1],
        ("Hollow: printed. Full: measured, with its 95 %.", _on_a_phone(rows)),
    )  # fmt: skip


_PHONE, _TALL = 390, 44


def _on_a_phone(rows: Sequence[Row]) -> str:
    """Return printed and measured in one plot, a row's name above its marks."""
    axis = _Axis.of(rows, 8, _PHONE - 8)
    parts = []
    for place, (name, stated, mean) in enumerate(rows):
        y = _TALL * place
        both = f"{numeral(stated.value, 4)} → {numeral(mean.value, 4)}"
        parts.append(
            _text(0, y + 16, textwrap.shorten(name, 34, placeholder="…"))
            + _text(_PHONE - 2, y + 16, both, "end")
            + axis.mark(y + 31, stated)
            + axis.mark(y + 31, mean)
        )
    bottom = _TALL * len(rows) + 2
    return _svg(_PHONE, bottom + 20, axis.ticks(bottom) + "".join(parts), "printed and measured")


@dataclass(frozen=True)
class _Axis:
    """The axis that printed and measured numbers share."""

    low: float
    high: float
    left: float
    right: float

    @classmethod
    def of(cls, rows: Sequence[Row], left: float, right: float) -> _Axis:
        pairs = [(stated.value, stated.error) for _, stated, _ in rows]
        pairs += [(mean.value, mean.half) for _, _, mean in rows]
        # from 0, so that lengths compare as the numbers do
        low = min(0.0, *(value - error for value, error in pairs))
        return cls(low, max(value + error for value, error in pairs), left, right)

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.left + share * (self.right - self.left), 1)

    def mark(self, y: float, of: Stated | Mean) -> str:
        """Return a number with its error: hollow where it is printed."""
        fill = "currentColor" if isinstance(of, Mean) else "none"
        left, right = self(of.value - _error(of)), self(of.value + _error(of))
        return (
            f'<path d="M{left} {y}H{right}" stroke="currentColor" stroke-width="1.5"/>'
            f'<circle cx="{self(of.value)}" cy="{y}" r="5" stroke="currentColor" '
            f'stroke-width="2" fill="{fill}"/>'
        )

    def ticks(self, bottom: float) -> str:
        """Return the lines and numbers of round places."""
        return "".join(
            f'<path d="M{self(t)} 2V{bottom}" stroke="currentColor" opacity=".18"/>'
            + _text(self(t), bottom + 15, numeral(t), "middle")
            for t in _ticks(self.low, self.high)
        )


def _error(of: Stated | Mean) -> float:
    return of.half if isinstance(of, Mean) else of.error


def _with_error(of: Stated | Mean) -> str:
    return numeral(of.value, 4) + (f" ± {numeral(_error(of), 2)}" if _error(of) else "")


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def _pair(
    head: str, told: str, left: str, other: str, said: str, right: str, phone: tuple[str, str]
) -> str:
    """Return two pictures side by side, and the one that takes their place on a phone."""
    words, small = phone
    return (
        f'{STYLE}<div class="dp-exhibit"><div><h2>{escape(head)}</h2>{left}<p>{escape(told)}</p>'
        f"</div><div><h2>{escape(other)}</h2>{right}<p>{escape(said)}</p></div></div>"
        f'<div class="dp-phone"><h2>{escape(head)}, and we</h2>{small}<p>{escape(words)}</p></div>'
    )


_INK = (
    "<style>svg{color:#1c2530;font-family:'Source Sans 3','Source Sans Pro',sans-serif}"
    "@media (prefers-color-scheme:dark){svg{color:#e6e9ee}}</style>"
)


def _svg(width: float, height: float, body: str, label: str) -> str:
    """Return a picture; the page takes no drawing as markup, and so gets it as an image."""
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height:.1f}" '
        f'font-size="13" fill="currentColor">{_INK}{body}</svg>'
    )
    return image(svg, label, "width:100%;height:auto")


def _ticks(low: float, high: float) -> list[float]:
    """Return about four round places between two ends."""
    if not high > low:
        return [low]
    step = 10 ** math.floor(math.log10((high - low) / 2))
    while (high - low) / step > 5:
        step *= 2 if (high - low) / step <= 10 else 2.5
    first = math.ceil(low / step)
    return [round(step * k, 12) for k in range(first, math.floor(high / step) + 1)]


_CELL_HIGH = 150
_ACROSS = {True: 3, False: 2}  # panels side by side, where there are more than four


def curves_exhibit(
    points: pd.DataFrame,
    chart: Chart,
    frames: Sequence[PrintedFrame],
    place: str,
    legend: Sequence[str],
) -> str:
    """Return a figure's printed frame, and our curves in the same axes.

    A paper's curves are not in its text: what stands left is the frame with its
    marks, legend and order, grey where its data is absent. Panels that were
    measured and are not printed follow.

    Parameters
    ----------
    points : DataFrame
    chart : Chart
    frames : sequence of PrintedFrame
        In the order of the paper.
    place : str
    legend : sequence of str
        As printed.
    """
    wanted = _drawn(points, chart)
    across = _ACROSS[len(frames) > 4]
    theirs, mine, small = (
        _cells(wanted, chart, frames, ours, width, columns)
        for ours, width, columns in (
            (False, _WIDE, across), (True, _WIDE, across), (True, _PHONE, 1),
        )
    )  # fmt: skip
    frame = (
        f"The frames and their marks; the curves are not in its text. Legend: {', '.join(legend)}."
    )
    measured = "Means with 95 % intervals. " + _legend(chart, wanted)
    return _pair(
        f"The paper: {place}", frame, theirs, "We, on the same axes", measured, mine,
        (f"The printed frames, with our curves in them. {measured}", small),
    )  # fmt: skip


def _cells(
    wanted: pd.DataFrame,
    chart: Chart,
    frames: Sequence[PrintedFrame],
    ours: bool,
    wide: float,
    columns: int,
) -> str:
    """Return all panels in one picture."""
    cells = []
    for place, frame in enumerate(frames):
        here = wanted[wanted["panel"] == frame.panel]
        cell = _cell(here, chart, frame, ours, wide / columns)
        x, y = round((place % columns) * wide / columns, 1), (place // columns) * _CELL_HIGH
        cells.append(f'<g transform="translate({x} {y})">{cell}</g>')
    high = math.ceil(len(frames) / columns) * _CELL_HIGH
    return _svg(wide, high, "".join(cells), chart.title)


def _legend(chart: Chart, wanted: pd.DataFrame) -> str:
    seen = set(wanted["series"])
    names = [f"{_LETTERS[n]} {s.name}" for n, s in enumerate(chart.series) if s.name in seen]
    return ", ".join(names) + "."


_LETTERS = "abcdefghijklmnop"


def _cell(here: pd.DataFrame, chart: Chart, frame: PrintedFrame, ours: bool, width: float) -> str:
    """Return one panel: an empty frame with its marks, or our curves in it."""
    left, top, wide, high = 46, 20, width - 62, _CELL_HIGH - 52
    bottom, absent = top + high, here.empty
    xs = [*frame.x, *here["x"]] or [0.0, 1.0]
    ys = [*frame.y, *here["mean"]] or [0.0, 1.0]
    one = _scaled(xs, chart.log_x and not frame.x, left, left + wide)
    two = _scaled(ys, chart.log_y and not frame.y, bottom, top)
    grey = ' fill="currentColor" fill-opacity=".13"' if absent else ' fill="none"'
    parts = [
        f'<text x="{left}" y="14" font-weight="600">{escape(frame.panel)}'
        f"{': data absent' if absent and ours else ''}</text>"
        f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" stroke="currentColor"'
        f' stroke-opacity=".5"{grey}/>'
    ]
    measured = ours and not absent  # its ends are marked where the paper's text tells no marks
    for mark in frame.x or ((min(xs), max(xs)) if measured else ()):
        parts.append(
            f'<path d="M{one(mark)} {bottom}v4" stroke="currentColor"/><text x="{one(mark)}" '
            f'y="{bottom + 17}" text-anchor="middle" font-size="11">{numeral(mark)}</text>'
        )
    for mark in frame.y or ((min(ys), max(ys)) if measured else ()):
        parts.append(
            f'<path d="M{left} {two(mark)}h-4" stroke="currentColor"/><text x="{left - 6}" '
            f'y="{two(mark) + 4}" text-anchor="end" font-size="11">{numeral(mark, 2)}</text>'
        )
    return "".join([*parts, *(_lines(here, chart, one, two, bottom) if ours else ())])


def _lines(
    here: pd.DataFrame,
    chart: Chart,
    one: Callable[[float], float],
    two: Callable[[float], float],
    bottom: float,
) -> list[str]:
    """Return the curves of a panel, each with its letter at its end, on places of their own."""
    parts, ends = [], []
    for place, series in enumerate(chart.series):
        line = here[here["series"] == series.name].sort_values("x")
        if line.empty:
            continue
        colour = colour_of_key(series.key)
        colour = LABEL_COLOURS[place % len(LABEL_COLOURS)] if colour == GREY else colour
        path = "L".join(f"{one(x)} {two(y)}" for x, y in zip(line["x"], line["mean"], strict=True))
        last = line.iloc[-1]
        parts.append(f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
        ends.append((two(last["mean"]), one(last["x"]), _LETTERS[place]))
    ends.sort()
    levels = list(accumulate((y for y, _, _ in ends), lambda above, y: max(y, above + 11)))
    over = max([0.0, *(level - bottom for level in levels)])  # letters stand within
    for level, (_, x, letter) in zip(levels, ends, strict=True):
        parts.append(f'<text x="{x + 3}" y="{level - over + 4}" font-size="11">{letter}</text>')
    return parts


def _scaled(
    values: Sequence[float], log: bool, low: float, high: float
) -> Callable[[float], float]:
    shown = [math.log10(v) for v in values if v > 0] if log else list(values)
    first, last = min(shown), max(shown)
    room = 0.04 * ((last - first) or 1.0)
    first, last = first - room, last + room

    def at(value: float) -> float:
        here = math.log10(max(value, 1e-300)) if log else value
        return round(low + (here - first) / (last - first) * (high - low), 1)

    return at


# --- charts of one experiment -----------------------------------------------------------------


def chart_panels(points: pd.DataFrame, chart: Chart) -> list[str]:
    """Return the panels of a chart that have points, in the order measured."""
    return list(dict.fromkeys(_drawn(points, chart)["panel"]))


def chart_figure(
    points: pd.DataFrame, chart: Chart, panels: Sequence[str] | None = None
) -> go.Figure:
    """Draw one quantity along x, a panel per data set, with the interval of each mean.

    Parameters
    ----------
    points : DataFrame
        `dpviz.papers.measurements.Measurements.table`.
    chart : Chart
    panels : sequence of str, optional
        Default `chart_panels`.
    """
    wanted = _drawn(points, chart)
    panels = chart_panels(points, chart) if panels is None else panels
    wide = max(1, min(_COLUMNS, len(panels)))
    rows = max(1, math.ceil(len(panels) / wide))
    many = len(panels) > 1  # a grid of one takes ten times as long as the figure
    figure = (
        make_subplots(
            rows=rows,
            cols=wide,
            subplot_titles=panels,
            vertical_spacing=min(0.2, 0.22 / rows + 0.02),
            horizontal_spacing=0.08,
        )
        if many
        else go.Figure(layout={"annotations": [_TITLE | {"text": panel} for panel in panels]})
    )
    # A chart that compares no mechanisms, but settings or formulas, has the labels' colours.
    plain = [colour_of_key(series.key) == GREY for series in chart.series]
    colours = [
        LABEL_COLOURS[number % len(LABEL_COLOURS)] if all(plain) else colour_of_key(series.key)
        for number, series in enumerate(chart.series)
    ]
    # Marker and dash tell those of one colour apart.
    places = [
        number if all(plain) else colours[:number].count(colour)
        for number, colour in enumerate(colours)
    ]
    named: set[str] = set()
    for place, panel in enumerate(panels):
        here = wanted[wanted["panel"] == panel]
        cell = {"row": place // wide + 1, "col": place % wide + 1} if many else {}
        for series, colour, among in zip(chart.series, colours, places, strict=True):
            line = here[here["series"] == series.name].sort_values("x")
            if not line.empty:
                figure.add_trace(
                    _curve(line, series.name, (colour, among), series.name not in named), **cell
                )
                named.add(series.name)
        limits = wanted if chart.share_y else here
        figure.update_xaxes(title_text=chart.x_label, **_axis(here["x"], chart.log_x), **cell)
        bars = pd.concat([limits["mean"], limits["mean_low"], limits["mean_high"]])
        figure.update_yaxes(**_axis(bars.dropna(), chart.log_y, fixed=chart.share_y), **cell)
    # a column of its own axis titles costs width: the first of each row says it for all
    figure.update_yaxes(title_text=chart.y_label, **({"col": 1} if many else {}))
    figure.update_layout(
        overwrite=True,
        height=_PANEL_HEIGHT * rows + 110,
        margin={"l": 10, "r": 10, "t": 40, "b": 10},
        legend={"orientation": "h", "yanchor": "top", "y": -75 / (_PANEL_HEIGHT * rows), "x": 0},
        hovermode="closest",
    )
    return figure


# As `make_subplots` writes it.
_TITLE = {
    "x": 0.5, "y": 1.0, "xref": "paper", "yref": "paper", "xanchor": "center", "yanchor": "bottom",
    "showarrow": False, "font": {"size": 16},
}  # fmt: skip


def _drawn(points: pd.DataFrame, chart: Chart) -> pd.DataFrame:
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


def _axis(values: pd.Series, log: bool, fixed: bool = False) -> dict[str, Any]:
    """Return the kind, limits and ticks of an axis that shows these values."""
    shown = values[values > 0] if log else values
    if shown.empty:
        return {"type": "linear"}
    low, high = float(shown.min()), float(shown.max())
    if not log:
        room = 0.05 * (high - low)
        return {"type": "linear"} | ({"range": [low - room, high + room]} if fixed else {})
    first, last = math.log10(low), math.log10(high)
    room = 0.05 * max(last - first, 0.2)
    ticks = log_ticks(first - room, last + room)
    return {
        "type": "log",
        "range": [first - room, last + room],
        "tickvals": ticks,
        "ticktext": [numeral(tick, 6) for tick in ticks],
    }


def write_report(reproduction: Findings, folder: Path) -> list[Path]:
    """Write the report, the lines, the measured points and the pictures of an experiment.

    Parameters
    ----------
    reproduction : Findings
    folder : Path
        Must exist.

    Returns
    -------
    list of Path
        The files: ``KEY.md``, ``KEY-lines.csv``, ``KEY-points.csv`` and one
        ``KEY-CHART.html`` for each picture, which needs the ``plotly.min.js``
        beside it and no network.
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
    if not library.is_file():  # else the first picture would write it, in place
        with atomic_write(library) as aside:
            aside.write_text(get_plotlyjs(), encoding="utf-8")
    for chart in drawn(reproduction):
        path = folder / f"{key}-{chart.name}.html"
        figure = chart_figure(reproduction.points, chart)
        with atomic_write(path) as aside:
            figure.write_html(aside, include_plotlyjs="directory", full_html=True)
        files.append(path)
    return files
