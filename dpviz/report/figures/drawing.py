"""Drawings for notebooks and for papers: SVG and PDF, without a script or a host.

In a notebook they are an image element, which shows wherever HTML shows, also where it is only
read; the Plotly figures are a call away. In a paper they are a column wide, with 8 pt and lines
that are told apart without colour. One program draws both.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from dpviz.core.number_text import log_ticks, numeral, parseable, per_cent, round_ticks
from dpviz.report.figures.svg import image
from dpviz.report.figures.theme import Panel

_WIDE, _LINE = 640, 26  # pixels of a picture with one line per variant, and of a line


@dataclass(frozen=True)
class DrawingSize:
    """How large a picture is drawn.

    Attributes
    ----------
    width, line, labels : float
        Of the picture, of a line of text, and of the names before a line; pixels, or points.
    size : float
        Of the text.
    grey : str
        The text's colour.
    paper : bool
        Whether lines and marks are told apart by more than colour, with a key below.
    """

    width: float
    line: float
    labels: float
    size: float
    grey: str
    paper: bool = False


SCREEN = DrawingSize(_WIDE, _LINE, 222, 12, "#7F7F7F")
COLUMN = DrawingSize(240, 13, 104, 8, "#000000", paper=True)
"""Of a paper in two columns: 3 1/3 inches, and 8 pt."""

# Each differs from its neighbours without colour: the stroke, and the mark on it.
_STROKES = ((), (5.0, 2.0), (1.0, 1.6), (6.0, 1.6, 1.0, 1.6), (7.0, 3.0), (3.0, 1.5))
_MARKS = ("disc", "square", "ring", "frame")

# Advance widths of Helvetica from blank to ~ in thousandths, which every reader of PDF has.
_ADVANCES = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
)  # fmt: skip


def _wide(words: str) -> float:
    """Return how wide a text is in Helvetica, in sizes of it."""
    places = (ord(letter) - 32 for letter in words)
    return sum(_ADVANCES[at] if 0 <= at < len(_ADVANCES) else 556 for at in places) / 1000


@dataclass
class Drawing:
    """Lines, marks and texts, y downwards.

    Attributes
    ----------
    look : DrawingSize
    height : float
    words : str
        What it says, for those who do not see it.
    """

    look: DrawingSize
    words: str
    height: float = 0.0
    _strokes: list[tuple[list[tuple[float, float]], str, float, tuple[float, ...], float]] = field(
        default_factory=list
    )
    _marks: list[tuple[float, float, float, str, str]] = field(default_factory=list)
    _texts: list[tuple[float, float, str, str, float]] = field(default_factory=list)

    def stroke(
        self, points: Sequence[tuple[float, float]], colour: str, width: float,
        dash: tuple[float, ...] = (), opacity: float = 1.0,
    ) -> None:  # fmt: skip
        """Add a line through points."""
        self._strokes.append((list(points), colour, width, dash, opacity))

    def mark(self, x: float, y: float, size: float, colour: str, kind: str = "disc") -> None:
        """Add a mark: a disc, a square, a ring or a frame of that half width."""
        self._marks.append((x, y, size, colour, kind))

    def text(
        self, x: float, y: float, words: str, anchor: str = "start", size: float | None = None
    ) -> None:
        """Add a text; ``anchor`` is start, middle or end; of the look's size where none is said."""
        self._texts.append((x, y, words, anchor, size or self.look.size))

    def svg(self) -> str:
        """Return the picture as SVG."""
        look = self.look
        unit = "pt" if look.paper else ""
        family = "Helvetica, Arial, sans-serif" if look.paper else "sans-serif"
        inside = []
        for points, colour, width, dash, opacity in self._strokes:
            at = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            broken = (
                f' stroke-dasharray="{" ".join(parseable(one, 6) for one in dash)}"' if dash else ""
            )
            faint = f' opacity="{parseable(opacity, 6)}"' if opacity < 1 else ""
            inside.append(
                f'<polyline points="{at}" fill="none" stroke="{colour}" '
                f'stroke-width="{parseable(width, 6)}"{broken}{faint}/>'
            )
        for x, y, size, colour, kind in self._marks:
            full = kind in ("disc", "square")
            paint = f'fill="{colour if full else "#ffffff"}" stroke="{colour}"'
            if kind in ("disc", "ring"):
                inside.append(
                    f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{parseable(size, 6)}" {paint}/>'
                )
            else:
                inside.append(
                    f'<rect x="{x - size:.1f}" y="{y - size:.1f}" width="{parseable(2 * size, 6)}" '
                    f'height="{parseable(2 * size, 6)}" {paint}/>'
                )
        inside += [
            f'<text x="{x:.1f}" y="{y:.1f}" font-family="{family}" '
            f'font-size="{parseable(size, 6)}" fill="{look.grey}" '
            f'text-anchor="{anchor}">{escape(words)}</text>'
            for x, y, words, anchor, size in self._texts
        ]
        wide, tall = parseable(look.width, 6), parseable(self.height, 6)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" '
            f'width="{wide}{unit}" height="{tall}{unit}">{"".join(inside)}</svg>'
        )

    def pdf(self) -> bytes:
        """Return the picture as a PDF of one page; its text is Helvetica, and selectable."""
        return slides([self])

    def _content(self) -> bytes:
        """Return what a page of a PDF draws.

        Source
        ------
        ISO 32000-1: 8.5 (paths), 9.4 (text).
        """
        up, drawn = self.height, []
        for points, colour, width, dash, opacity in self._strokes:
            path = " ".join(
                f"{x:.2f} {up - y:.2f} {'l' if place else 'm'}"
                for place, (x, y) in enumerate(points)
            )
            shown = " ".join(parseable(one, 6) for one in dash)
            drawn.append(
                f"{_rgb(colour, opacity)} RG {parseable(width, 6)} w [{shown}] 0 d {path} S"
            )
        for x, y, size, colour, kind in self._marks:
            full = kind in ("disc", "square")
            inside = _rgb(colour if full else "#ffffff")
            path = _disc(x, up - y, size) if kind in ("disc", "ring") else (
                f"{x - size:.2f} {up - y - size:.2f} "
                f"{parseable(2 * size, 6)} {parseable(2 * size, 6)} re"
            )  # fmt: skip
            drawn.append(f"{inside} rg {_rgb(colour)} RG .8 w [] 0 d {path} b")
        for x, y, words, anchor, size in self._texts:
            # widths are of what is written, and the anchor goes by them
            plain = _plain(words)
            left = x - _SHARES[anchor] * size * _wide(plain)
            # which begin and end a text of PDF
            for mark in "\\()":
                plain = plain.replace(mark, f"\\{mark}")
            drawn.append(
                f"BT /F1 {parseable(size, 6)} Tf {_rgb(self.look.grey)} rg "
                f"{left:.2f} {up - y:.2f} Td ({plain}) Tj ET"
            )
        return "\n".join(drawn).encode("cp1252", "replace")

    def png(self, scale: float = 4.0) -> bytes:
        """Return the picture as PNG on white; each unit is so many pixels.

        Dashes and faint lines are drawn whole: no picture of a release has them.
        """
        held = BytesIO()
        self._raster(scale).save(held, "PNG")
        return held.getvalue()

    def _raster(self, scale: float) -> Any:
        from PIL import Image, ImageDraw, ImageFont

        whole = (math.ceil(self.look.width * scale), math.ceil(self.height * scale))
        drawn = Image.new("RGB", whole, "#ffffff")
        pen = ImageDraw.Draw(drawn)
        for points, colour, width, _, _ in self._strokes:
            pen.line(
                [(x * scale, y * scale) for x, y in points], colour, max(1, round(width * scale))
            )
        for x, y, r, colour, kind in self._marks:
            box = [(x - r) * scale, (y - r) * scale, (x + r) * scale, (y + r) * scale]
            inside = colour if kind in ("disc", "square") else "#ffffff"
            shape = pen.ellipse if kind in ("disc", "ring") else pen.rectangle
            shape(box, fill=inside, outline=colour, width=max(1, round(0.8 * scale)))
        for x, y, words, anchor, size in self._texts:
            font = ImageFont.load_default(size * scale)
            plain = _plain(words).translate(_LETTERS)
            bare = plain.translate(_BARE)  # the font that comes along has no more letters
            left = x * scale - _SHARES[anchor] * font.getlength(bare)
            pen.text((left, y * scale), bare, self.look.grey, font, "ls")
            for at, letter in enumerate(plain):
                if ord(letter) not in _BARE:
                    continue
                middle = left + font.getlength(bare[:at]) + font.getlength(bare[at]) / 2
                high = y * scale - (0.86 if letter.isupper() else 0.66) * size * scale
                r = 0.055 * size * scale
                for side in (-0.13, 0.13):
                    dot = middle + side * size * scale
                    pen.ellipse([dot - r, high - r, dot + r, high + r], fill=self.look.grey)
        return drawn

    def image(self) -> str:
        """Return the picture as an image element."""
        return image(self.svg(), self.words, "max-width:100%;height:auto")


def _rgb(colour: str, opacity: float = 1.0) -> str:
    """Return a colour on white as PDF writes it."""
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return " ".join(f"{1 - opacity * (1 - part):.3f}" for part in parts)


def _disc(x: float, y: float, r: float) -> str:
    """Return a circle of four curves, which leave it by 3e-4 of its radius at most."""
    c = 0.5523 * r
    return (
        f"{x + r:.2f} {y:.2f} m "
        f"{x + r:.2f} {y + c:.2f} {x + c:.2f} {y + r:.2f} {x:.2f} {y + r:.2f} c "
        f"{x - c:.2f} {y + r:.2f} {x - r:.2f} {y + c:.2f} {x - r:.2f} {y:.2f} c "
        f"{x - r:.2f} {y - c:.2f} {x - c:.2f} {y - r:.2f} {x:.2f} {y - r:.2f} c "
        f"{x + c:.2f} {y - r:.2f} {x + r:.2f} {y - c:.2f} {x + r:.2f} {y:.2f} c"
    )


_SHARES = {"start": 0.0, "middle": 0.5, "end": 1.0}
"""Of a text's width, what lies left of its anchor."""

_LETTERS = str.maketrans({"ß": "ss", "„": '"', "“": '"', "”": '"', "→": "->", "\u00a0": " "})
_BARE = str.maketrans("äöüÄÖÜ", "aouAOU")


def _plain(words: str) -> str:
    """Return a text in letters that Helvetica has."""
    return words.replace("ε", "epsilon").replace("δ", "delta").replace("\u202f", "\u00a0")


def gif(pictures: Sequence[Drawing], times: Sequence[int]) -> bytes:
    """Return pictures one after the other, without end.

    Parameters
    ----------
    pictures : sequence of Drawing
        Of one size.
    times : sequence of int
        Milliseconds that each is shown.
    """
    first, *rest = (picture._raster(1.0).quantize(64) for picture in pictures)
    held = BytesIO()
    first.save(
        held, "GIF", save_all=True, append_images=rest, duration=list(times), loop=0, optimize=False
    )
    return held.getvalue()


def slides(pictures: Sequence[Drawing]) -> bytes:
    """Return a PDF with a page for each picture.

    Source
    ------
    ISO 32000-1: 7.5 (structure).
    """
    kids = " ".join(f"{4 + 2 * place} 0 R" for place in range(len(pictures)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pictures)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for picture in pictures:
        content = picture._content()
        objects += [
            "<< /Type /Page /Parent 2 0 R /MediaBox "
            f"[0 0 {parseable(picture.look.width, 6)} {parseable(picture.height, 6)}] "
            f"/Contents {len(objects) + 2} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            f"<< /Length {len(content)} >>\nstream\n".encode() + content + b"\nendstream",
        ]
    found, places = b"%PDF-1.4\n", []
    for number, one in enumerate(objects, 1):
        places.append(len(found))
        found += f"{number} 0 obj\n".encode() + one + b"\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    last = f"xref\n0 {len(places) + 1}\n0000000000 65535 f \n{table}"
    last += f"trailer\n<< /Size {len(places) + 1} /Root 1 0 R >>\nstartxref\n{len(found)}\n%%EOF\n"
    return found + last.encode()


def _style(look: DrawingSize, place: int) -> tuple[tuple[float, ...], str]:
    """Return dash and mark of the line at a place."""
    if not look.paper:
        return (), "disc"
    return _STROKES[place % len(_STROKES)], _MARKS[place % len(_MARKS)]


def ranges_picture(
    table: pd.DataFrame,
    panels: Sequence[Panel],
    title: str,
    *,
    log: bool = False,
    look: DrawingSize = SCREEN,
) -> Drawing:
    """Return a point inside its range for each variant, one line each.

    Parameters
    ----------
    table : DataFrame
        Columns mechanism, mean, low and high; a variant without a number has an empty line.
    panels : sequence of Panel
    title : str
        What the numbers are.
    log : bool
        Whether the axis is logarithmic; all numbers are then positive.
    look : DrawingSize
    """
    picture = Drawing(look, f"{title}, one line per mechanism")
    known = table.dropna(subset=["mean", "low", "high"])
    numbers = known[["mean", "low", "high"]].to_numpy(dtype=float)
    if not len(numbers):
        return picture

    def forward(value: float) -> float:
        return math.log10(value) if log else value

    ends = (float(numbers.min()), float(numbers.max()))
    low, high = (forward(end) for end in ends)
    room = (high - low) or 1.0
    left, right = look.labels + look.size, look.width - 32 * look.size / 12

    def at(value: float) -> float:
        return left + (right - left) * (forward(value) - low) / room

    dot = 5 * look.size / 12
    for number, panel in enumerate(panels):
        y = look.line * (number + 0.85)
        picture.text(look.labels, y + look.size / 3, panel.label[: 26 if look.paper else 34], "end")
        for mean, lowest, highest in numbers[(known["mechanism"] == panel.key).to_numpy()]:
            ink, faint = ("#000000", 1.0) if look.paper else (panel.colour, 0.5)
            width = 0.8 if look.paper else 3.0
            picture.stroke([(at(lowest), y), (at(highest), y)], ink, width, opacity=faint)
            picture.mark(at(mean), y, dot, ink)
    bottom = look.line * (len(panels) + 0.85)
    ticks: Sequence[float] = list(dict.fromkeys(ends))
    if look.paper and low < high:
        ticks = log_ticks(low, high) if log else round_ticks(low, high, 4)
        picture.stroke([(left, bottom - 6), (right, bottom - 6)], look.grey, 0.5)
    for end in ticks:
        if look.paper:
            picture.stroke([(at(end), bottom - 6), (at(end), bottom - 4)], look.grey, 0.5)
        picture.text(at(end), bottom + look.size / 3, numeral(end, 3), "middle")
    picture.text((left + right) / 2, bottom + 1.6 * look.size, title, "middle")
    picture.height = bottom + 2.3 * look.size
    return picture


def curves_picture(
    bands: pd.DataFrame,
    panels: Sequence[Panel],
    title: str,
    *,
    log: bool,
    look: DrawingSize = SCREEN,
) -> Drawing:
    """Return the mean of one metric along one axis, a line per variant.

    Parameters
    ----------
    bands : DataFrame
        `dpviz.report.tables.curves.BAND_COLUMNS`.
    panels : sequence of Panel
    title : str
        What is drawn against what.
    log : bool
        Whether the axis is logarithmic; all its values are then positive.
    look : DrawingSize
        On paper each mean has its standard error twice, and a key says which line is whose; on a
        screen a line is named at its end.
    """
    picture = Drawing(look, f"{title}, one line per mechanism")
    if bands.empty:
        return picture
    plot = _CurvePlot(bands, look, log=log)
    foot = plot.high + plot.tall + 1.4 * look.size
    if look.paper:
        _draw_ticks(picture, plot, foot)
        foot += 1.3 * look.size
    else:
        _write_ends(picture, plot, foot)
    picture.text(plot.left + plot.wide / 2, foot, title, "middle")
    known = [panel for panel in panels if (plot.variants == panel.key).any()]
    if look.paper:
        for number, panel in enumerate(known):
            _draw_with_errors(picture, plot, panel, number, foot)
        picture.height = foot + (0.9 + 1.3 * -(-len(known) // 2)) * look.size
        return picture
    ends = []
    for panel in known:
        points = plot.points(panel.key)
        picture.stroke(points, panel.colour, 2.0, _style(look, 0)[0])
        ends.append((points[-1][1], panel.label[:24]))
    lowest = 0.0
    for end, label in sorted(ends):  # names that would touch move down
        lowest = max(end + 4, lowest + 12)
        picture.text(plot.left + plot.wide + 6, lowest, label)
    picture.height = foot + look.size
    return picture


class _CurvePlot:
    """Where the means of `curves_picture` lie on its page."""

    def __init__(self, bands: pd.DataFrame, look: DrawingSize, *, log: bool) -> None:
        self.log, self.variants = log, bands["mechanism"].to_numpy()
        self.x = bands["x"].to_numpy(dtype=float)
        self.means, errors = (bands[name].to_numpy(dtype=float) for name in ("mean", "se"))
        self.errors = 2 * np.nan_to_num(errors) if look.paper else np.zeros_like(errors)
        self.bottom = float((self.means - self.errors).min())
        self.top = float((self.means + self.errors).max())
        self.left, self.high = 4 * look.size, 4 / 3 * look.size
        self.wide = look.width - (self.left + 4 if look.paper else 200)
        self.tall = 11 * look.size if look.paper else 180.0
        forward = np.log10(self.x) if log else self.x
        self.ends = float(forward.min()), float(forward.max())
        wide = (self.ends[1] - self.ends[0]) or 1.0
        self.across = self.left + self.wide * (forward - self.ends[0]) / wide

    def up(self, value: float) -> float:
        return self.high + self.tall * (
            1 - (value - self.bottom) / ((self.top - self.bottom) or 1.0)
        )

    def points(self, key: str) -> list[tuple[float, float]]:
        """Return the line of a variant."""
        mine = self.variants == key
        pairs = zip(self.across[mine], self.means[mine], strict=True)
        return [(float(a), self.up(float(b))) for a, b in pairs]


def _draw_ticks(picture: Drawing, plot: _CurvePlot, foot: float) -> None:
    """Draw both axes with their ticks, as on paper."""
    look, left, floor = picture.look, plot.left, plot.high + plot.tall
    picture.stroke([(left, plot.high), (left, floor), (left + plot.wide, floor)], look.grey, 0.5)
    up = plot.up
    for tick in round_ticks(plot.bottom, plot.top, 6) if plot.top > plot.bottom else [plot.top]:
        picture.stroke([(left - 2, up(tick)), (left, up(tick))], look.grey, 0.5)
        picture.text(left - 4, up(tick) + look.size / 3, numeral(tick, 3), "end")
    first, last = plot.ends
    if first == last:
        return
    for tick in log_ticks(first, last) if plot.log else round_ticks(first, last):
        place = (math.log10(tick) if plot.log else tick) - first
        where = left + plot.wide * place / (last - first)
        picture.stroke([(where, floor), (where, floor + 2)], look.grey, 0.5)
        picture.text(where, foot, numeral(tick, 3), "middle")


def _write_ends(picture: Drawing, plot: _CurvePlot, foot: float) -> None:
    """Write the ends of both axes, as on a screen."""
    left = plot.left
    picture.text(left - 4, plot.high + 4, numeral(plot.means.max(), 3), "end")
    picture.text(left - 4, plot.high + plot.tall, numeral(plot.means.min(), 3), "end")
    picture.text(left, foot, numeral(plot.x.min(), 3))
    picture.text(left + plot.wide, foot, numeral(plot.x.max(), 3), "end")


def _draw_with_errors(
    picture: Drawing, plot: _CurvePlot, panel: Panel, number: int, foot: float
) -> None:
    """Draw a line in black with its standard errors twice, and its entry in the key."""
    look, ink = picture.look, "#000000"
    dash, kind = _style(look, number)
    points, mine = plot.points(panel.key), plot.variants == panel.key
    picture.stroke(points, ink, 0.8, dash)
    for (at, place), mean, error in zip(points, plot.means[mine], plot.errors[mine], strict=True):
        picture.stroke([(at, plot.up(mean - error)), (at, plot.up(mean + error))], ink, 0.6)
        picture.mark(at, place, 1.6, ink, kind)
    row, column = divmod(number, 2)
    start, y = plot.left + column * (plot.wide / 2), foot + (1.5 + 1.3 * row) * look.size
    picture.stroke([(start, y - 2.6), (start + 26, y - 2.6)], ink, 0.8, dash)
    picture.mark(start + 13, y - 2.6, 1.6, ink, kind)
    picture.text(start + 30, y, panel.label[:20])


_RELEASED = DrawingSize(0, 0, 118, 11, "#1c2530")
_CLEAR, _DROWNED = "#1f5fa8", "#8a93a0"
_INK, _EDGE = "#1c2530", "#b8001d"
_MOST_FEATURES, _MOST_COMPONENTS, _MOST_VARIANCES = 12, 3, 9


def _largest(vectors: Sequence[Sequence[float]]) -> list[int]:
    """Return the places of the features with the largest loadings, in order."""
    size = [max(abs(vector[at]) for vector in vectors) for at in range(len(vectors[0]))]
    return sorted(sorted(range(len(size)), key=lambda at: -size[at])[:_MOST_FEATURES])


def _clear(value: float, bar: float | None) -> bool:
    return bar is not None and abs(value) > bar


def loadings_picture(use: Mapping[str, Any]) -> Drawing:
    """Return the loadings of the first components of a release with their bars, side by side.

    Parameters
    ----------
    use : mapping
        What a card says can be read from its release; of many features those with the largest
        loadings are drawn. Hollow marks cannot be told from 0.
    """
    shown = use["loadings"][:_MOST_COMPONENTS]
    places = _largest(shown)
    wide, high, left = 150, 15 if len(places) < 9 else 12, _RELEASED.labels
    bottom = 24 + high * len(places)
    look = replace(_RELEASED, width=left + wide * len(shown))
    picture = Drawing(look, "Loadings with their bars", bottom + 16)
    for row, at in enumerate(places):
        picture.text(left - 8, 29 + high * row, _cut(use["features"][at]), "end")
    for column, (vector, bars) in enumerate(zip(shown, use["bars"], strict=False)):
        middle, unit = left + wide * column + wide / 2, (wide - 26) / 2
        picture.text(middle, 11, f"component {column + 1}", "middle")
        picture.stroke([(middle, 16), (middle, bottom)], _DROWNED, 1)
        for tick in (-1, 0, 1):
            picture.text(middle + unit * tick, bottom + 12, numeral(tick, 2), "middle")
        for row, at in enumerate(places):
            x, y, bar = middle + unit * vector[at], 25 + high * row, bars[at]
            clear = _clear(vector[at], bar)
            colour = _CLEAR if clear else _DROWNED
            if bar is not None:
                ends = [max(-1, min(1, vector[at] + side * bar)) for side in (-1, 1)]
                picture.stroke([(middle + unit * end, y) for end in ends], colour, 1)
            picture.mark(x, y, 3.4, colour, "disc" if clear else "ring")
    return picture


def variances_picture(use: Mapping[str, Any]) -> Drawing:
    """Return how much each component of a release explains, and the noise edge.

    Parameters
    ----------
    use : mapping
        As in `loadings_picture`. What can be interpreted by itself has a bar; what is no higher
        than the noise edge is grey. A step shorter than the edge is noise.
    """
    shares = [100 * value / use["total_variance"] for value in use["variances"]][:_MOST_VARIANCES]
    bar, edge = (100 * use[key] / use["total_variance"] for key in ("variance_bar", "noise_edge"))
    readable = use["readable_components"]
    tops = [share + bar * (at < readable) for at, share in enumerate(shares)]
    left, step, top, base = 26.0, 27.0, 26.0, 176.0
    across = left + step * len(shares)
    picture = Drawing(
        replace(_RELEASED, width=across + 84), "Explained variance by component", base + 34
    )

    most = max(*tops, edge)

    def at_height(share: float) -> float:
        return float(base - (base - top) * max(share, 0.0) / most)

    for place, share in enumerate(shares):
        x, told = left + step * (place + 0.5), place < readable
        # one as high as the next is no direction of its own, but no noise either
        colour = _CLEAR if told or share > edge else _DROWNED
        picture.stroke([(x, base), (x, at_height(share))], colour, 16)
        picture.text(x, base + 14, str(place + 1), "middle")
        if told:
            picture.stroke([(x, at_height(share - bar)), (x, at_height(share + bar))], _INK, 1.4)
            said = f"{numeral(share, 2)} ± {numeral(bar, 2)}"
            picture.text(
                x + 4, at_height(share + bar) - 5, said, "middle" if place else "start", 10
            )
    picture.stroke([(left, base), (across, base)], _DROWNED, 1)
    picture.stroke([(left, at_height(edge)), (across, at_height(edge))], _EDGE, 1.2, (4.0, 3.0))
    picture.text(across + 4, at_height(edge) + 4, f"noise edge {numeral(edge, 2)}", size=10)
    picture.text(left, base + 28, "component; height: % of the released total")
    return picture


def biplot_picture(use: Mapping[str, Any]) -> Drawing | None:
    """Return the loadings of two released components as arrows; no row is in it.

    Parameters
    ----------
    use : mapping
        As in `loadings_picture`. A ring ends an arrow that neither component tells from 0.

    Returns
    -------
    Picture or None
        None where not two components can be interpreted by themselves.
    """
    if use["readable_components"] < 2:
        return None
    vectors, bars = use["loadings"][:2], use["bars"][:2]
    places = _largest(vectors)
    wide, room, high = 280.0, 132.0, 300.0
    look = replace(_RELEASED, width=wide + 2 * room)
    picture = Drawing(look, "Loadings of components 1 and 2 as arrows", high)
    x0, y0, unit = room + wide / 2, (high - 16) / 2 + 4, 125.0
    reach = max(abs(vector[at]) for vector in vectors for at in places) or 1.0
    picture.stroke([(room, y0), (room + wide, y0)], _DROWNED, 0.6)
    picture.stroke([(x0, y0 - unit - 8), (x0, y0 + unit + 8)], _DROWNED, 0.6)
    share = [100 * value / use["total_variance"] for value in use["variances"][:2]]
    picture.text(room + wide, y0 - 5, f"component 1: {per_cent(numeral(share[0], 2))}", "end")
    picture.text(x0 + 5, 12, f"component 2: {per_cent(numeral(share[1], 2))} of the released total")
    sides: dict[bool, list[tuple[float, float, int]]] = {False: [], True: []}
    for at in places:
        x, y = (unit * vector[at] / reach for vector in vectors)
        clear = any(_clear(v[at], b[at]) for v, b in zip(vectors, bars, strict=True))
        colour = _CLEAR if clear else _DROWNED
        picture.stroke([(x0, y0), (x0 + x, y0 - y)], colour, 1.2)
        picture.mark(x0 + x, y0 - y, 3.2, colour, "disc" if clear else "ring")
        sides[x >= 0].append((y0 - y, x0 + x, at))
    for right, ends in sides.items():  # names stand beside, none on another
        edge, step = room + wide + 6 if right else room - 6, look.size + 3
        lowest = 26.0 - step
        for left_over, (y, x, at) in zip(range(len(ends) - 1, -1, -1), sorted(ends), strict=True):
            lowest = min(max(y, lowest + step), high - 8 - step * left_over)
            picture.stroke([(x, y), (edge, lowest)], _DROWNED, 0.4)
            picture.text(
                edge + (2 if right else -2), lowest + 4, _cut(use["features"][at]),
                "start" if right else "end",
            )  # fmt: skip
    picture.text(
        look.width / 2, high - 2, "drawn from released numbers alone: nobody's row", "middle"
    )
    return picture


def _cut(name: str) -> str:
    # names that differ at their end alone are told apart
    return name if len(name) <= 18 else f"{name[:10]}…{name[-7:]}"
