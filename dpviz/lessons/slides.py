"""Export lessons: an image for every stop of every step, and slides for a whole lesson."""

from __future__ import annotations

import base64
import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.files import atomic_write
from dpviz.core.number_text import numeral
from dpviz.lessons.languages import words
from dpviz.lessons.lesson import INVENTED, Lesson
from dpviz.lessons.person import SCALE_BARS
from dpviz.lessons.scene import scene
from dpviz.report.print import sheet, style, to_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDE, _TALL, _SIDE, _EDGE = 960, 540, 640, 24  # Sizes are in points. Charts lie left of _SIDE.
_INK, _FAINT, _OWN, _MARK = "#1c2530", "#c3ccd6", "#1f5f99", "#e76300"
_SURE, _OTHER, _ROWS = "#b8001d", "#b07a00", "#818d99"
_WRAP = {24.0: 22, 14.0: 37}  # Maximum number of letters in a line beside the chart, by font size.
_SHOWN = 260
_BAR = 20.0
"""Minimum length of a scale bar, in points."""
_ASKEW = (0.7, -0.35)
"""Initial rotation of a point cloud about the vertical, and its tilt, as on the animation page."""
_ARC = np.linspace(0.3, math.pi - 0.3, 9)
_FACE = np.array([(-0.35, -0.25), (0.35, -0.25),
                  *zip(0.5 * np.cos(_ARC), 0.1 + 0.4 * np.sin(_ARC), strict=True)])  # fmt: skip
"""Eyes and mouth of a face of radius one; the y axis points down."""


@dataclass(frozen=True)
class Slide:
    """A slide to draw on, in points from its upper left corner or on separate axes.

    Attributes
    ----------
    figure : Figure
    page : Axes
        Axes of the whole slide, in points; y points down.
    says : mapping of str to str
        Texts of the animation page in the lesson's language, keyed by the English text.
    """

    figure: Figure
    page: Axes
    says: Mapping[str, str]

    def word(self, text: str, **numbers: str) -> str:
        """Return a text in the lesson's language, after filling in its numbers."""
        return self.says.get(text, text).format(**numbers)

    def text(self, x: float, y: float, text: str, size: float = 14, ha: str = "left") -> None:
        """Write text on the page."""
        self.page.text(x, y, text, size=size, ha=ha, color=_INK)

    def dots(self, points: Any, radius: Any, colour: Any, *, hollow: bool = False) -> None:
        """Draw discs or rings on the page; the radius is in points."""
        _dots(self.page, points, radius, colour, hollow=hollow)

    def axes(self, left: float, wide: float, reach: float) -> Axes:
        """Return axes of equal scale, centred on the origin, that extend ``reach`` to each side."""
        bottom, tall = 60, _TALL - 100
        axes = self.figure.add_axes(
            (left / _WIDE, bottom / _TALL, wide / _WIDE, tall / _TALL), frameon=False,
            xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[], aspect="equal",
        )  # fmt: skip
        return axes


def _dots(on: Axes, points: Any, radius: Any, colour: Any, *, hollow: bool = False) -> None:
    x, y = np.reshape(points, (-1, 2)).T
    area = (2 * np.asarray(radius)) ** 2
    paint = {"facecolors": "none", "edgecolors": colour} if hollow else {"c": colour}
    on.scatter(x, y, area, linewidths=0.8 if hollow else 0, clip_on=False, **paint)


def _points(text: str) -> FloatArray:
    points: FloatArray = np.frombuffer(base64.b64decode(text), "<i2").astype(float) / 32767
    return points.reshape(-1, 2)


def _paints(text: str, palette: list[str]) -> list[str]:
    """Return a colour for each point; code 255 marks a point whose label noise hides."""
    codes = np.frombuffer(base64.b64decode(text), "u1").tolist()
    return [palette[code % len(palette)] if code < 255 else _FAINT for code in codes]


def _board(on: Slide, scene: Mapping[str, Any], epsilon: float) -> None:
    board = scene["boards"][scene["stop"]["board"]]
    payload = board["payload"]
    # The nearest frame is chosen on a log scale, as the slider of the animation page does.
    frame = min(payload["frames"], key=lambda one: abs(math.log(one["epsilon"] / epsilon)))
    (key, cell), *_ = frame["cells"].items()
    label = next(one["label"] for one in payload["columns"] if one["key"] == key)
    half, exact = (_SIDE - _EDGE) / 2, on.word("Exact PCA")
    if "picture" not in board["options"]["rows"]:
        _spectrum(on, payload, cell)
        on.text(_EDGE, 20, f"{exact} / {label}")
    else:
        on.text(_EDGE, 20, exact)
        on.text(_EDGE + half, 20, label)
        palette = payload["palette"]["labels"]
        if board["publishable"]:
            _picture(on, cell["published"], palette, half)
        else:
            _clouds(on, payload, frame, key, half)
    if not board["publishable"]:
        on.text(_EDGE + half, _TALL - 24, cell["texts"]["recovery"], size=24)
        on.text(_EDGE + half + 100, _TALL - 24, on.word(cell["texts"]["words"]))


def _picture(on: Slide, data: Mapping[str, Any] | None, palette: list[str], half: float) -> None:
    """Draw the published chart in the right half; the left half stays empty."""
    if data is not None:
        points = _points(data["places"]) * np.array(data["reach"])
        paints = _paints(data["codes"] or "", palette) or _OWN
        _dots(on.axes(_EDGE + half, half - 12, max(data["reach"])), points, 2.4, paints)


def _clouds(
    on: Slide, payload: Mapping[str, Any], frame: Mapping[str, Any], key: str, half: float
) -> None:
    """Draw all rows along the exact components, and beside them along the released components."""
    unit, reach = payload["limits"]["scale"], max(payload["limits"]["picture"])
    truth = unit * _points(payload["truth"]["picture"])
    paints = _paints(payload["labels"]["codes"], payload["palette"]["labels"])
    for place, name in enumerate(("exact", key)):
        axes = on.axes(_EDGE + place * half, half - 12, reach)
        points = unit * _points(frame["cells"][key]["picture"]) if place else truth
        if place:
            _dots(axes, truth, 1.6, _FAINT)
        _dots(axes, points, 2.4, paints)
        people = points[payload.get("marked", [])]
        _dots(axes, people, 4.4, _INK, hollow=True)
        if len(people):
            _dots(axes, people[-1], 4.4, _INK)
            axes.annotate(on.word("her"), people[-1], (0, 8), textcoords="offset points",
                          ha="center", color=_INK, size=14)  # fmt: skip
        if "lines" in frame:  # The frame contains the line A x + B y = C.
            a, b, c = frame["lines"][name]
            foot = np.array([a, b]) * c / (a * a + b * b)
            axes.axline(foot, foot + np.array([-b, a]), color=_INK, linewidth=2)


def _spectrum(on: Slide, payload: Mapping[str, Any], cell: Mapping[str, Any]) -> None:
    """Draw exact and released eigenvalues, and the edge of the noise spectrum."""
    first = payload["limits"]["spectrum"]["first"]
    count, high = first["count"], first["high"]
    axes = on.axes(_EDGE, _SIDE - 2 * _EDGE, 1.0)
    axes.set_aspect("auto")
    axes.set_yscale("symlog", linthresh=first["linear"])
    axes.set(
        xlim=(0, count - 1), ylim=(min(0.0, first.get("low", 0.0)), high), xticks=[], yticks=[]
    )
    values = np.frombuffer(base64.b64decode(cell["spectrum"]["lines"]), "<f4")
    axes.plot(payload["truth"]["eigenvalues"][:count], color="#7f8b97", linewidth=2)
    axes.plot(values[: cell["spectrum"]["count"]][:count], color=_OWN, linewidth=2.5)
    if cell["threshold"] is not None:
        axes.axhline(cell["threshold"], color=_INK, linewidth=1, dashes=(7, 4))
    axes.minorticks_off()


def _person(on: Slide, scene: Mapping[str, Any]) -> None:
    """Draw releases with and without the person, along her row and across her row."""
    person, place = scene["persons"][scene["stop"]["person"]], scene["stop"]["at"]
    mechanism = person["mechanisms"][0]
    scale = (mechanism["at"][place] or {}).get("scale")
    if "grain" not in mechanism or scale is None:
        return
    x, y = person["row"]
    turn, square = math.atan2(y, x), x * x + y * y
    basis = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
    noise = np.array(mechanism["noise"], dtype=float) * scale / mechanism["grain"]
    matrices = basis @ noise[:, [0, 1, 1, 2]].reshape(-1, 2, 2) @ basis.T
    along, across, between = matrices[:, 0, 0], matrices[:, 1, 1], matrices[:, 0, 1]
    cone = person["view"] == "cone"
    reach = 1.15 * max(1.4, mechanism["sizes"] * scale * (0.7 if cone else 1) + 1)
    axes = on.axes(_EDGE, _SIDE - 2 * _EDGE, reach)
    if cone:  # The x axis is half of a release's trace. The y axis is its radius.
        axes.set(xlim=(-0.04 * reach, 1.3 * reach), ylim=(-0.02 * reach, reach))
        axes.plot([0, 0, reach], [reach, 0, 0], color=_FAINT, linewidth=1)
        axes.plot([0, reach], [0, reach], color=_INK, linewidth=1.5)
    mine, others = np.arange(_SHOWN), len(noise) - 1 - np.arange(_SHOWN)
    for rows, within in ((others, False), (mine, True)):
        shift = square if within and not cone else -square if cone and not within else 0.0
        one, other, both = along[rows] + shift, across[rows], between[rows]
        spots = np.stack(
            [(one + other) / 2, np.hypot((one - other) / 2, both)] if cone else [one, other], axis=1
        )
        low, high = np.array([axes.get_xlim(), axes.get_ylim()]).T
        inside = ((spots >= low) & (spots <= high)).all(axis=1)
        if within:
            _dots(axes, spots[inside], 2.2, _OWN)
            continue
        sure = (one < 0) | (other < 0) | (one * other < both * both)
        sure &= bool(mechanism["oneSided"])
        _dots(axes, spots[inside & ~sure], 2.6, _OTHER, hollow=True)
        axes.plot(*spots[inside & sure].T, "x", color=_SURE, markersize=8, markeredgewidth=2)
    on.dots((_EDGE + 6, _TALL - 24), 4, _OWN)
    on.text(_EDGE + 16, _TALL - 19, on.word("with her"))
    on.dots((_EDGE + 126, _TALL - 24), 4, _OTHER, hollow=True)
    on.text(_EDGE + 136, _TALL - 19, on.word("without her"))
    start, right = axes.get_xlim()
    _scale_bar(on, min((_SIDE - 2 * _EDGE) / (right - start), 440 / np.ptp(axes.get_ylim())))


def _scale_bar(on: Slide, unit: float) -> None:
    """Draw a scale bar, because the chart zooms with the noise."""
    enough = (bar for bar in SCALE_BARS if bar[0] * unit >= _BAR)
    rows, text, count = next(enough, SCALE_BARS[-1])
    right, y = _SIDE - 10, _TALL - 24
    on.page.plot([right - rows * unit, right], [y, y], "|-", color=_INK, linewidth=2, markersize=8)
    on.text(right - rows * unit - 8, y + 5, on.word(text, count=count), ha="right")


def _faces(on: Slide, scene: Mapping[str, Any]) -> None:
    """Draw a hundred equal suspects; fill as many faces as are members."""
    epsilon = scene["stop"]["epsilon"]
    frame = min(scene["frames"], key=lambda one: abs(math.log(one["epsilon"] / epsilon)))
    step = (_TALL - 90) / 10
    size = 0.38 * step
    down, across = np.divmod(np.arange(100), 10)
    places = np.stack([_EDGE + (across + 0.5) * step, 34 + (down + 0.5) * step], axis=1)
    parts = np.clip(frame["count"] - np.arange(100), 0, 1)  # A partial person has a smaller disc.
    on.dots(places[: math.ceil(scene["before"])], 1.2 * size, _MARK, hollow=True)
    on.dots(places[parts > 0], size * np.sqrt(parts[parts > 0]), _OWN)
    for part, ink in ((parts > 0, _INK), (parts == 0, _FAINT)):
        on.dots(places[part], size, ink, hollow=True)
        on.dots(places[part][:, None] + size * _FACE, 0.1 * size, ink)
    legend = on.word("ringed: {count} of 100 before the release", count=scene["beforeText"])
    on.text(_EDGE + 10 * step, _TALL - 22, legend, ha="right")
    on.text(_EDGE, _TALL - 18, on.word("{count} of 100", count=frame["text"]), size=24)


def _people(on: Slide, scene: Mapping[str, Any]) -> None:
    """Draw crowds of people; the crowd of this class is filled."""
    gap = 20.0
    wide = (_SIDE - 2 * _EDGE + gap) / len(scene["crowds"]) - gap
    # One person has the same size in all crowds, so that their areas can be compared.
    step = math.sqrt(wide * (_TALL - 100) / max(crowd["people"] for crowd in scene["crowds"]))
    for place, crowd in enumerate(scene["crowds"]):
        start, people = _EDGE + place * (wide + gap), int(crowd["people"])
        down, across = np.divmod(np.arange(people), int(wide / step))
        spots = np.stack([start + (across + 0.5) * step, 30 + (down + 0.5) * step], axis=1)
        ink, own = (_OWN if place else _INK), int(min(scene["own"], people))
        on.dots(spots[:own], 0.3 * step, ink)
        on.dots(spots[own:], 0.3 * step, ink, hollow=True)
        epsilon = numeral(crowd["epsilon"]) if place <= scene["at"] else "?"
        text = on.word("{count} pupils, ε {epsilon}", count=scene["texts"][place], epsilon=epsilon)
        on.text(start, _TALL - 20, text)


def _cloud(on: Slide, scene: Mapping[str, Any]) -> None:
    """Draw rows of three features, seen obliquely or along the directions of largest variance."""
    (c, s), (d, t) = ((math.cos(turn), math.sin(turn)) for turn in _ASKEW)
    rows, view = np.array(scene["rows"]), np.array([[c, s, 0.0], [t * s, -t * c, d]])
    if scene["stop"]["widest"]:
        view = np.array(scene["components"])[:2]
    reach = 1.1 * float(np.linalg.norm(rows, axis=1).max())
    axes = on.axes(_EDGE, _SIDE - 2 * _EDGE, reach)
    for name, (x, y) in zip(scene["features"], 0.55 * reach * view.T, strict=True):
        axes.plot([0, x], [0, y], color=_FAINT, linewidth=1)
        axes.text(1.08 * x, 1.08 * y, on.word(name), ha="center", color=_INK, size=14)
    _dots(axes, rows @ view.T, 6, [*[_ROWS] * (len(rows) - 1), _OWN])


def _leak(on: Slide, scene: Mapping[str, Any]) -> None:
    """Draw rows of two features, and what a mean or a bound reveals about the last row."""
    at, rows = scene["stop"], np.array(scene["rows"], dtype=float)
    reach = 1.08 * (scene["declared"] if at["declared"] else scene["within"])
    axes = on.axes(_EDGE, _SIDE - 2 * _EDGE, reach)
    # Both axes use the same unit, so that lengths in the chart are true.
    axes.set(xlim=(-0.03 * reach, reach), ylim=(-0.03 * reach, 0.62 * reach))
    axes.plot([0, 0, reach], [0.62 * reach, 0, 0], color=_INK, linewidth=1)
    axes.text(0, -0.06 * reach, on.word(scene["features"][0]), color=_INK, size=14)
    axes.text(0, 0.64 * reach, on.word(scene["features"][1]), color=_INK, size=14)
    _dots(axes, rows, 6, [*[_ROWS] * (len(rows) - 1), _OWN])
    if at["shown"] == "mean":
        axes.plot(*scene["mean"], "+", color=_MARK, markersize=18, markeredgewidth=4)
        label = on.word("computed: {row}", row=scene["recoveredText"])
        axes.annotate(label, scene["recovered"], (0, -26), textcoords="offset points", ha="center",
                      color=_INK, size=14)  # fmt: skip
    elif at["shown"] == "bound":
        bounds = (
            [("declared {bound}", "declared")] if at["declared"]
            else [("with her {bound}", "within"), ("without {bound}", "without")]
        )  # fmt: skip
        for text, name in bounds:
            turns = np.linspace(0, math.asin(min(1, 0.6 * reach / scene[name])), 60)
            x, y = scene[name] * np.cos(turns), scene[name] * np.sin(turns)
            axes.plot(
                x, y, color=_MARK, linewidth=2.5, linestyle="--" if name == "without" else "-"
            )
            axes.annotate(on.word(text, bound=scene[f"{name}Text"]), (x[-1], y[-1]), (-6, -14),
                          textcoords="offset points", ha="right", color=_INK, size=14)  # fmt: skip


_SCENES: Mapping[str, Callable[[Slide, Mapping[str, Any]], None]] = {
    "person": _person, "faces": _faces, "people": _people, "cloud": _cloud, "leak": _leak,
}  # fmt: skip


def slides(lesson: Lesson, step: int) -> list[Figure]:
    """Return the slides of a step, from 0, with chart and texts at each stop.

    Parameters
    ----------
    lesson : Lesson
        The lesson, in the language of the slides.
    step : int
    """
    content = scene(lesson, step)
    own = {**content, "texts": list(map(lesson.written, content.get("texts", ())))}
    return [_slide(lesson, step, own, stop) for stop in range(len(lesson.moves(step)) + 1)]


def _slide(lesson: Lesson, step: int, content: Mapping[str, Any], stop: int) -> Figure:
    at, quiz, last = lesson.steps[step], lesson.question_at(step), stop or not lesson.moves(step)
    say, epsilon = lesson.filled(at.say), lesson.state(step, stop).settings.epsilon
    scene = {**content, "at": stop, "stop": content["stops"][stop] if "stops" in content else {}}
    with style():
        figure = sheet(_WIDE, _TALL, say)
        page = figure.add_axes((0, 0, 1, 1), xlim=(0, _WIDE), ylim=(_TALL, 0), frameon=False)
        page.set(xticks=[], yticks=[])
        on = Slide(figure, page, words(lesson.language))
        if scene["kind"] == "board":
            _board(on, scene, scene["stop"].get("epsilon") or epsilon)
        else:
            _SCENES[scene["kind"]](on, scene)
        if at.scene not in INVENTED:
            on.text(_SIDE - 30, 20, f"ε {numeral(epsilon)}", ha="right")
        on.text(_SIDE + 16, 20, f"{lesson.number} {lesson.title}")
        texts = [(say, 24.0)] if quiz is None else [(quiz.ask, 24.0), (say, 14.0)]
        if last:
            if quiz is not None:
                texts.append((quiz.then[0 if quiz.axis is not None else int(quiz.right)], 14.0))
            texts.append((lesson.filled(at.why), 14.0))
        elif quiz is not None:
            texts += [(f"- {option}", 14.0) for option in quiz.options]
        line = 54.0
        for text, size in texts:
            for part in textwrap.wrap(text, _WRAP[size]):
                on.text(_SIDE + 16, line, part, size=size)
                line += 1.3 * size
            line += 14
    return figure


def step_files(lesson: Lesson, step: int) -> dict[str, bytes]:
    """Return the files of a step, from 0, by name: every stop as SVG and PNG.

    Parameters
    ----------
    lesson : Lesson
        The lesson, in the language of the slides.
    step : int
    """
    return {
        f"{lesson.number}.{step + 1}.{stop}.{kind}": to_bytes(kind, figure, dpi=144)
        for stop, figure in enumerate(slides(lesson, step), 1)
        for kind in ("svg", "png")
    }


def lesson_slides(lesson: Lesson) -> bytes:
    """Return a lesson as a PDF, a page for each stop of each step."""
    steps = range(len(lesson.steps))
    return to_bytes("pdf", *(figure for step in steps for figure in slides(lesson, step)))


def export(lesson: Lesson, folder: Path) -> list[Path]:
    """Write a lesson as files: every stop as PNG and SVG, and all stops as PDF slides.

    Parameters
    ----------
    lesson : Lesson
        The lesson, in the language of the slides.
    folder : path
        Target folder, created if missing.

    Returns
    -------
    list of path
        Paths of the written files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{lesson.number}.pdf": lesson_slides(lesson)}
    for step in range(len(lesson.steps)):
        files |= step_files(lesson, step)
    for name, content in files.items():
        with atomic_write(folder / name) as path:
            path.write_bytes(content)
    return [folder / name for name in files]
