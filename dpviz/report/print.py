"""Charts for print by Matplotlib: a column wide, 8 pt, readable without colour.

Papers, privacy cards, plans and notebooks without scripts show these charts. Matplotlib is
imported with the first chart, and a user's own Matplotlib settings change no byte.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from html import escape
from io import BytesIO
from threading import RLock
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from dpviz.core.number_text import log_ticks, numeral, per_cent, round_ticks
from dpviz.core.platform import need
from dpviz.report.figures.axes import apart
from dpviz.report.figures.theme import Panel
from dpviz.report.tables.projection import LABEL_COLOURS, places_shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 240
"""Column width of a paper in points: 3 1/3 inches."""

_LOCK = RLock()  # Matplotlib's settings apply to all threads, so one thread draws at a time.
_STYLE = {
    "font.size": 8, "axes.labelsize": 8, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "legend.fontsize": 8, "axes.linewidth": 0.5, "xtick.major.width": 0.5,
    "ytick.major.width": 0.5, "xtick.major.size": 2, "ytick.major.size": 2,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    # Embed the fonts in the file, and keep its texts searchable.
    "pdf.fonttype": 42, "svg.fonttype": "none",
    # Set these values, so that the same chart always gives a file with the same bytes.
    "svg.hashsalt": "dpviz",
}  # fmt: skip
_UNDATED = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
# Line style and marker distinguish neighbouring lines without colour.
_STROKES = ("-", (0, (5, 2)), (0, (1, 1.6)), (0, (6, 1.6, 1, 1.6)), (0, (7, 3)), (0, (3, 1.5)))
_MARKS = ("ko", "ks", "kD", "k^")
_CLEAR, _DROWNED, _EDGE = "#1f5fa8", "#8a93a0", "#b8001d"
_MOST_FEATURES, _MOST_COMPONENTS, _MOST_VARIANCES = 12, 3, 9


@contextmanager
def style() -> Iterator[None]:
    """Use only our Matplotlib settings, whatever settings the user has.

    Raises
    ------
    NotAvailable
        If Matplotlib is not installed.
    """
    need("matplotlib")
    import matplotlib as mpl

    with _LOCK, mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        yield


_P = ParamSpec("_P")
_R = TypeVar("_R")


def _styled(draw: Callable[_P, _R]) -> Callable[_P, _R]:
    @wraps(draw)
    def drawn(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with style():
            return draw(*args, **kwargs)

    return drawn


def sheet(width: float, height: float, words: str, **more: Any) -> Figure:
    """Return an empty figure.

    Parameters
    ----------
    width, height : float
        Points.
    words : str
        Alternative text of the figure, which is also its title in a file.
    """
    from matplotlib.figure import Figure

    return Figure((width / 72, height / 72), label=words, **more)


def _axes(height: float, words: str, width: float = WIDTH) -> tuple[Figure, Axes]:
    figure = sheet(width, height, words, layout="constrained")
    return figure, figure.add_subplot()


def to_bytes(kind: str, *figures: Figure, dpi: float = 288) -> bytes:
    """Return a figure as a file, or several figures as the pages of a PDF.

    Parameters
    ----------
    kind : {"svg", "pdf", "png"}
    *figures : Figure
    dpi : float
        Resolution of a PNG in pixels per inch.
    """
    file, metadata = BytesIO(), {**_UNDATED[kind], "Title": figures[0].get_label()}
    with style():
        if kind == "pdf":
            from matplotlib.backends.backend_pdf import PdfPages

            with PdfPages(file, metadata=metadata) as pages:
                for figure in figures:
                    pages.savefig(figure)
        else:
            figures[0].savefig(file, format=kind, dpi=dpi, metadata=metadata)
    return file.getvalue()


def inline(figure: Figure) -> str:
    """Return a figure as an SVG element with alternative text."""
    svg = to_bytes("svg", figure).decode()
    # Remove the style element, because its rules would apply to the whole page.
    svg = re.sub(r"<defs>\s*<style.*?</defs>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    words = escape(str(figure.get_label()))
    return svg.replace("<svg", f'<svg role="img" aria-label="{words}"', 1)


def image(figure: Figure, words: str = "", style: str = "width:100%;max-width:480px") -> str:
    """Return an image as an image element, because some pages strip SVG elements."""
    data = base64.b64encode(to_bytes("svg", figure)).decode()
    words = escape(words or str(figure.get_label()))
    return f'<img src="data:image/svg+xml;base64,{data}" alt="{words}" style="{style}">'


def _ticks(axis: Any, low: float, high: float, *, log: bool = False, most: int = 5) -> None:
    """Place ticks at round numbers and format them as everywhere in dpviz."""
    if low < high:
        ticks = log_ticks(*np.log10([low, high])) if log else round_ticks(low, high, most)
    else:
        ticks = [low]
    axis.set_ticks(ticks, [numeral(tick, 3) for tick in ticks])
    axis.set_ticks([], minor=True)


@_styled
def ranges(
    table: pd.DataFrame, panels: Sequence[Panel], title: str, *, log: bool = False
) -> Figure:
    """Draw one line for each variant, with a point inside its range.

    Parameters
    ----------
    table : DataFrame
        Table with columns mechanism, mean, low and high; without numbers a line stays empty.
    panels : sequence of Panel
    title : str
        Name of the quantity that is drawn.
    log : bool
        Whether the axis is logarithmic; then all numbers are positive.
    """
    figure, axes = _axes(44 + 13 * len(panels), f"{title}, one line per mechanism")
    rows = table.dropna(subset=["mean", "low", "high"])
    axes.set_xscale("log" if log else "linear")
    for row, panel in enumerate(panels):
        mine = rows.loc[rows["mechanism"] == panel.key, ["mean", "low", "high"]]
        for mean, low, high in mine.to_numpy(dtype=float):
            axes.plot([low, high], [row, row], "k-", linewidth=0.8)
            axes.plot([mean], [row], "ko", markersize=4)
    if len(rows):
        _ticks(axes.xaxis, float(rows["low"].min()), float(rows["high"].max()), log=log, most=4)
    axes.set_yticks(range(len(panels)), [panel.label[:26] for panel in panels])
    axes.set(ylim=(len(panels) - 0.5, -0.5))
    figure.supxlabel(title, fontsize=8)
    return figure


@_styled
def curves(bands: pd.DataFrame, panels: Sequence[Panel], title: str, *, log: bool) -> Figure:
    """Draw one measure's means along an axis with two standard errors, a line per variant.

    Parameters
    ----------
    bands : DataFrame
        `dpviz.report.tables.curves.BAND_COLUMNS`.
    panels : sequence of Panel
    title : str
        Names of the quantities on both axes.
    log : bool
        Whether the x axis is logarithmic; then all its values are positive.
    """
    drawn_panels = [panel for panel in panels if (bands["mechanism"] == panel.key).any()]
    figure, axes = _axes(130 + 12 * -(-len(drawn_panels) // 2), f"{title}, one line per mechanism")
    for number, panel in enumerate(drawn_panels):
        x, mean, se = bands.loc[bands["mechanism"] == panel.key, ["x", "mean", "se"]].to_numpy().T
        axes.errorbar(
            x.astype(float), mean.astype(float), 2 * np.nan_to_num(se.astype(float)),
            fmt=_MARKS[number % len(_MARKS)], linestyle=_STROKES[number % len(_STROKES)],
            linewidth=0.8, elinewidth=0.6, markersize=3.2, label=panel.label[:20],
            markerfacecolor="w" if number % 2 else "k",
        )  # fmt: skip
    axes.set_xscale("log" if log else "linear")
    if drawn_panels:
        _ticks(axes.xaxis, float(bands["x"].min()), float(bands["x"].max()), log=log, most=6)
        _ticks(axes.yaxis, *axes.get_ylim(), most=6)
        figure.legend(loc="outside lower center", ncols=2, handlelength=3.4)
    axes.set_xlabel(title)
    return figure


def _largest(vectors: Sequence[Sequence[float]]) -> list[int]:
    """Return the indices of the features with the largest loadings, in order."""
    size = np.abs(np.array(vectors)).max(axis=0)
    return sorted(np.argsort(-size, kind="stable")[:_MOST_FEATURES].tolist())


def _cut(name: str) -> str:
    # Shorten a name in its middle, because some names differ only at their end.
    return name if len(name) <= 18 else f"{name[:10]}…{name[-7:]}"


def _clear(value: float, bar: float | None) -> bool:
    return bar is not None and abs(value) > bar


@_styled
def loadings(use: Mapping[str, Any]) -> Figure:
    """Draw the loadings of a release's first components with their bars, side by side.

    Parameters
    ----------
    use : mapping
        The ``use`` entry of a privacy card. With many features, only those with the largest
        loadings are drawn. Loadings with hollow marks cannot be distinguished from 0.
    """
    vectors = use["loadings"][:_MOST_COMPONENTS]
    places = _largest(vectors)
    figure = sheet(
        90 + 110 * len(vectors), 40 + 12 * len(places), "Loadings with error bars",
        layout="constrained",
    )  # fmt: skip
    every = np.atleast_1d(figure.subplots(1, len(vectors), sharex=True, sharey=True))
    for axes, number, vector, bars in zip(every, range(1, 9), vectors, use["bars"], strict=False):
        axes.axvline(0, color=_DROWNED, linewidth=0.6)
        for row, at in enumerate(places):
            clear = _clear(vector[at], bars[at])
            colour = _CLEAR if clear else _DROWNED
            ends = np.clip(vector[at] + np.array([-1, 1]) * (bars[at] or 0.0), -1, 1)
            axes.plot(ends, [row, row], color=colour, linewidth=0.8)
            axes.plot([vector[at]], [row], "o", color=colour, mfc=colour if clear else "w", ms=5)
        axes.set_title(f"component {number}", fontsize=8)
    _ticks(every[0].xaxis, -1, 1, most=3)
    every[0].set(xlim=(-1.08, 1.08), ylim=(len(places) - 0.5, -0.5))
    every[0].set_yticks(range(len(places)), [_cut(use["features"][at]) for at in places])
    return figure


def scale_of(use: Mapping[str, Any]) -> tuple[float, str]:
    """Return the divisor for printing released variances, and the resulting unit in words.

    Variances are shares of the released total, unless noise leaves a total that is not above 0.
    """
    whole = use["total_variance"]
    if whole > 0:
        return whole / 100, "% of the released total variance"
    return 1.0, "in squared units, because the released total variance is not above 0"


@_styled
def scree(use: Mapping[str, Any]) -> Figure:
    """Draw the variance that each component of a release explains, and the edge of the noise.

    Parameters
    ----------
    use : mapping
        The ``use`` entry. Components that can be interpreted alone have a bar; others no higher
        than the edge of the noise are grey. A step shorter than the edge is noise.
    """
    one, told_in = scale_of(use)
    shares = [value / one for value in use["variances"]][:_MOST_VARIANCES]
    edge, readable = use["noise_edge"] / one, use["readable_components"]
    figure, axes = _axes(170, "Explained variance by component", max(200, 90 + 27 * len(shares)))
    for place, share in enumerate(shares, 1):
        clear = place <= readable
        # A component with the next one's eigenvalue has no direction of its own, but is not noise.
        axes.bar(place, max(share, 0.0), 0.6, color=_CLEAR if clear or share > edge else _DROWNED)
        if clear:
            bar = use["variance_bars"][place - 1] / one
            axes.errorbar(place, share, bar, color="k", linewidth=1)
            text = f"{numeral(share, 2)} ± {numeral(bar, 2)}"
            axes.annotate(
                text, (place, share + bar), (0, 2), textcoords="offset points", ha="center"
            )
    axes.axhline(edge, color=_EDGE, linewidth=1, linestyle="--")
    axes.annotate(
        f"noise edge {numeral(edge, 2)}", (1, edge), (2, 0), ("axes fraction", "data"),
        "offset points", va="center",
    )  # fmt: skip
    axes.set_xticks(range(1, len(shares) + 1))
    _ticks(axes.yaxis, 0, axes.get_ylim()[1])
    axes.set_xlabel(f"component; height: {told_in}")
    return figure


@_styled
def biplot(use: Mapping[str, Any]) -> Figure | None:
    """Draw the loadings of two released components as arrows, without any row.

    Parameters
    ----------
    use : mapping
        The ``use`` entry. A ring ends an arrow that neither component distinguishes from 0.

    Returns
    -------
    Figure or None
        None unless at least two components can be interpreted alone.
    """
    if use["readable_components"] < 2:
        return None
    vectors, bars = use["loadings"][:2], use["bars"][:2]
    figure, axes = _axes(260, "Loadings of components 1 and 2 as arrows", 340)
    largest = _largest(vectors)
    one, told_in = scale_of(use)
    share = [numeral(value / one, 2) for value in use["variances"][:2]]
    if use["total_variance"] > 0:
        share, told_in = [per_cent(text) for text in share], told_in.removeprefix("% ")
    sides: dict[bool, list[tuple[float, float, str]]] = {False: [], True: []}
    for at in largest:
        x, y = vectors[0][at], vectors[1][at]
        clear = any(_clear(v[at], b[at]) for v, b in zip(vectors, bars, strict=True))
        colour = _CLEAR if clear else _DROWNED
        axes.plot([0, x], [0, y], color=colour, linewidth=1)
        axes.plot([x], [y], "o", color=colour, mfc=colour if clear else "w", ms=5)
        sides[x >= 0].append((y, x, _cut(use["features"][at])))
    reach = max(abs(vector[at]) for vector in vectors for at in largest) or 1.0
    for right, ends in sides.items():  # Write each point's name beside it, without overlap.
        edge = 1.15 * reach if right else -1.15 * reach
        for (y, x, name), up in zip(
            ends, apart([end[0] for end in ends], 0.16 * reach), strict=True
        ):
            axes.plot([x, edge], [y, up], color=_DROWNED, linewidth=0.4)
            axes.text(edge, up, f" {name} ", ha="left" if right else "right", va="center")
    axes.axhline(0, color=_DROWNED, linewidth=0.5)
    axes.axvline(0, color=_DROWNED, linewidth=0.5)
    axes.set(xlim=(-2 * reach, 2 * reach), xticks=[], yticks=[], aspect="equal")
    axes.set(xlabel=f"component 1: {share[0]} {told_in}\ndrawn from released numbers alone; no "
                    "point is a person")  # fmt: skip
    axes.set_ylabel(f"component 2: {share[1]}")
    return figure


@_styled
def published(picture: Mapping[str, Any]) -> Figure:
    """Draw a published map: points that stand for people, with stamp and labels.

    Parameters
    ----------
    picture : mapping
        The ``picture`` entry of a privacy card.
    """
    (x, y, kinds), labels = places_shown(picture), picture["labels"]
    stamp = f"published: {picture['stamp']}"
    figure, axes = _axes(170, f"Published picture of {len(x)} points: {stamp}", 270)
    for kind in sorted({*kinds.tolist()}):
        mine = kinds == kind
        labelled = bool(labels) and kind >= 0
        axes.scatter(
            x[mine], y[mine], 7, linewidths=0,
            color=LABEL_COLOURS[kind % len(LABEL_COLOURS)] if labelled else
            _DROWNED if labels else _CLEAR,
            label=labels[kind][:18] if labelled and kind < 10 else None,
        )  # fmt: skip
    axes.set(xlim=(-1, 1), ylim=(-1, 1), xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(True)
    axes.axhline(0, color=_DROWNED, linewidth=0.4)
    axes.axvline(0, color=_DROWNED, linewidth=0.4)
    keys = axes.get_legend_handles_labels()
    figure.legend(*keys, loc="outside right upper", title=stamp, handletextpad=0)
    return figure


@_styled
def room(table: pd.DataFrame, least: float | None, most: float, goal: float) -> Figure:
    """Draw gain and harm along epsilon, with the range between; see `figures.room.room_figure`.

    Parameters
    ----------
    table : DataFrame
    least : float or None
    most, goal : float
    """
    figure = sheet(330, 250, "How much structure a release keeps, and how much a suspicion gains, "
                             "by epsilon",
                   layout="constrained")  # fmt: skip
    gain, harm = figure.subplots(2, 1, sharex=True)
    x = table["epsilon"]
    gain.fill_between(x, 100 * table["low"], 100 * table["mean"], color=_CLEAR, alpha=0.2)
    gain.plot(x, 100 * table["mean"], color=_CLEAR)
    gain.axhline(100 * goal, color="k", linewidth=0.6, linestyle=":")
    harm.plot(x, 100 * table["after"], color=_EDGE)
    ends = sorted((min(least or np.inf, x.iloc[-1]), min(most, x.iloc[-1])))
    for axes in (gain, harm):
        axes.axvspan(*ends, color=_CLEAR if least and least <= most else _EDGE, alpha=0.15)
        if least is not None:
            axes.axvline(least, color="k", linewidth=0.8)
    gain.set(ylim=(0, 103), ylabel="structure kept, %\nmean, and 95 % of releases")
    harm.set(xscale="log", ylim=(0, 100), xlabel="epsilon",
             ylabel="1 suspicion in 100\nbecomes at most")  # fmt: skip
    _ticks(harm.xaxis, float(x.iloc[0]), float(x.iloc[-1]), log=True)
    return figure
