"""Lessons as files: each step as pictures and a looped animation, a lesson as slides."""

from __future__ import annotations

import base64
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.files import atomic_write
from dpviz.core.number_text import numeral
from dpviz.lessons.languages import words
from dpviz.lessons.lesson import INVENTED, Lesson
from dpviz.lessons.person import SCALE_BARS
from dpviz.lessons.scene import scene
from dpviz.report.figures.drawing import Drawing, DrawingSize, gif, slides
from dpviz.report.figures.theme import SymmetricLog

_SLIDE = DrawingSize(960, 20, 0, 14, "#1c2530")
_TALL, _SIDE, _EDGE = 540.0, 640.0, 24.0
_INK, _FAINT, _OWN, _MARK = "#1c2530", "#c3ccd6", "#1f5f99", "#e76300"
_SURE = "#b8001d"
_WRAP = {24.0: 24, 14.0: 42}  # letters of a line beside the picture, by size
_PASSED = 8
_SHOWN = 260


class _Box:
    """A part of a slide with equal scale on both axes, the origin at its middle."""

    def __init__(self, left: float, wide: float, reach: float, up: float = 0.0) -> None:
        self.x, self.y = left + wide / 2, (_TALL - 40) / 2 + up
        self.unit = min(wide, _TALL - 80) / 2 / reach

    def at(self, point: Sequence[float]) -> tuple[float, float]:
        return self.x + self.unit * float(point[0]), self.y - self.unit * float(point[1])


def _points(packed: str) -> FloatArray:
    found: FloatArray = np.frombuffer(base64.b64decode(packed), "<i2").astype(float) / 32767
    return found.reshape(-1, 2)


def _dots(on: Drawing, box: _Box, points: FloatArray, colours: Sequence[str], size: float) -> None:
    for point, colour in zip(points, colours, strict=True):
        on.mark(*box.at(point), size, colour)


def _board(on: Drawing, held: Mapping[str, Any], epsilon: float, says: Mapping[str, str]) -> None:
    payload = held["payload"]
    frames = payload["frames"]
    # the nearest frame on a logarithm, as the slider of the stage takes it
    frame = min(frames, key=lambda one: abs(math.log(one["epsilon"] / epsilon)))
    (key, cell), *_ = frame["cells"].items()
    label = next(one["label"] for one in payload["columns"] if one["key"] == key)
    half = (_SIDE - _EDGE) / 2
    names = (says.get("Exact PCA", "Exact PCA"), label)
    if "picture" not in held["options"]["rows"]:
        _spectrum(on, payload, cell)
        on.text(_EDGE, 20, f"{names[0]} / {label}")
    else:
        unit, paint = payload["limits"]["scale"], payload["palette"]["labels"]
        truth = unit * _points(payload["truth"]["picture"])
        codes = np.frombuffer(base64.b64decode(payload["labels"]["codes"]), "u1")
        reach = max(payload["limits"]["picture"])
        colours = [paint[code % len(paint)] for code in codes]
        for place, name in enumerate(names):
            box = _Box(_EDGE + place * half, half - 12, reach)
            on.text(_EDGE + place * half, 20, name)
            if held["publishable"]:
                said = cell["published"]
                if place == 0 or said is None:
                    continue
                points = _points(said["places"]) * np.array(said["reach"])
                marks = np.frombuffer(base64.b64decode(said["codes"] or ""), "u1")
                # 255 marks a point whose label noise hides
                some = [paint[one % len(paint)] if one < 255 else _FAINT for one in marks]
                box = _Box(_EDGE + half, half - 12, max(said["reach"]))
                _dots(on, box, points, some or [_OWN] * len(points), 2.4)
                continue
            drawn = unit * _points(cell["picture"]) if place else truth
            if place:
                _dots(on, box, truth, [_FAINT] * len(truth), 1.6)
            marked = drawn[payload.get("marked", [])]
            _rings(on, box, marked)
            _dots(on, box, drawn, colours, 2.4)
            if len(marked):
                x, y = box.at(marked[-1])
                on.mark(x, y, 4.4, _INK)
                on.text(x, y - 8, says.get("her", "her"), "middle")
            if "lines" in frame:
                _line(on, box, frame["lines"][key if place else "exact"], reach)
    if not held["publishable"]:
        kept = cell["texts"]
        on.text(_EDGE + half, _TALL - 24, f"{kept['recovery']} ", size=24)
        on.text(_EDGE + half + 90, _TALL - 24, says.get(kept["words"], kept["words"]))


def _rings(on: Drawing, box: _Box, points: FloatArray) -> None:
    for point in points:
        on.mark(*box.at(point), 4.4, _INK, "ring")


def _line(on: Drawing, box: _Box, line: Sequence[float], reach: float) -> None:
    """Draw a straight line Ax + By = C as far as a box reaches."""
    a, b, c = line
    # along the line; (a, b) is across it
    turned = np.array([-b, a]) / math.hypot(a, b)
    foot = np.array([a, b]) * c / (a * a + b * b)
    along = np.linspace(-2, 2, 401)[:, None] * reach * turned + foot
    inside = along[np.abs(along).max(axis=1) <= reach]
    if len(inside):
        on.stroke([box.at(inside[0]), box.at(inside[-1])], _INK, 2)


def _spectrum(on: Drawing, payload: Mapping[str, Any], cell: Mapping[str, Any]) -> None:
    first = payload["limits"]["spectrum"]["first"]
    count, up = first["count"], SymmetricLog(first["linear"]).forward
    raw = np.frombuffer(base64.b64decode(cell["spectrum"]["lines"]), "<f4")
    released = raw[: cell["spectrum"]["count"]][:count]

    def line(values: Sequence[float], colour: str, wide: float, dash: tuple[float, ...]) -> None:
        step = (_SIDE - 2 * _EDGE) / (count - 1)
        on.stroke(
            [
                (_EDGE + i * step, _TALL - 60 - (_TALL - 110) * up(v) / up(first["high"]))
                for i, v in enumerate(values)
            ],
            colour, wide, dash,
        )  # fmt: skip

    line(payload["truth"]["eigenvalues"][:count], "#7f8b97", 2, ())
    line(released.tolist(), _OWN, 2.5, ())
    if cell["threshold"] is not None:
        line([cell["threshold"]] * count, _INK, 1, (7, 4))


def _person(on: Drawing, held: Mapping[str, Any], place: int, says: Mapping[str, str]) -> None:
    mechanism = held["mechanisms"][0]
    if (
        "grain" not in mechanism
        or mechanism["at"][place] is None
        or "scale" not in mechanism["at"][place]
    ):
        return
    scale = mechanism["at"][place]["scale"]
    x, y = held["row"]
    turn = math.atan2(y, x)
    c, s = math.cos(turn), math.sin(turn)
    noise = np.array(mechanism["noise"], dtype=float) * scale / mechanism["grain"]
    along = c * c * noise[:, 0] + 2 * c * s * noise[:, 1] + s * s * noise[:, 2]
    across = s * s * noise[:, 0] - 2 * c * s * noise[:, 1] + c * c * noise[:, 2]
    cone, squared = held["view"] == "cone", x * x + y * y
    reach = 1.15 * max(1.4, mechanism["sizes"] * scale * (0.7 if cone else 1) + 1)
    box = _Box(_EDGE, _SIDE - 2 * _EDGE, reach)
    between = -c * s * noise[:, 0] + (c * c - s * s) * noise[:, 1] + c * s * noise[:, 2]
    if cone:  # half the trace across, the radius up; with her nothing lies beyond the line
        box.x, box.y, box.unit = _EDGE + 20, _TALL - 70, (_TALL - 110) / reach
        on.stroke([box.at((0, reach)), box.at((0, 0)), box.at((reach, 0))], _FAINT, 1)
        on.stroke([box.at((0, 0)), box.at((reach, reach))], _INK, 1.5)

    def draw(row: int, shift: float, *, within: bool) -> None:
        one, other, both = along[row] + shift, across[row], between[row]
        spot = ((one + other) / 2, math.hypot((one - other) / 2, both)) if cone else (one, other)
        left, top = box.at(spot)
        if not (_EDGE <= left <= _SIDE - 10 and 30 <= top <= _TALL - 40):
            return
        if within:
            on.mark(left, top, 2.2, _OWN)
        elif mechanism["oneSided"] and (one < 0 or other < 0 or one * other < both * both):
            on.stroke([(left - 4, top - 4), (left + 4, top + 4)], _SURE, 2)
            on.stroke([(left - 4, top + 4), (left + 4, top - 4)], _SURE, 2)
        else:
            on.mark(left, top, 2.6, "#b07a00", "ring")

    for row in range(_SHOWN):
        draw(len(noise) - 1 - row, -squared if cone else 0.0, within=False)
        draw(row, 0.0 if cone else squared, within=True)
    on.mark(_EDGE + 6, _TALL - 24, 4, _OWN)
    on.text(_EDGE + 16, _TALL - 19, says.get("with her", "with her"))
    on.mark(_EDGE + 126, _TALL - 24, 4, "#b07a00", "ring")
    on.text(_EDGE + 136, _TALL - 19, says.get("without her", "without her"))
    _scale_bar(on, box.unit, says)


def _scale_bar(on: Drawing, unit: float, says: Mapping[str, str]) -> None:
    """Draw what a length is, as the clouds zoom with their noise."""
    enough = (bar for bar in SCALE_BARS if bar[0] * unit >= _BAR)
    rows, text, count = next(enough, SCALE_BARS[-1])
    right, y = _SIDE - 10, _TALL - 24
    left = right - rows * unit
    on.stroke([(left, y), (right, y)], _INK, 2)
    for end in (left, right):
        on.stroke([(end, y - 4), (end, y + 4)], _INK, 2)
    on.text(left - 8, y + 5, says.get(text, text).format(count=count), "end")


_BAR = 20.0
"""A scale bar is at least so long."""

_FACE = [(-0.35, 0.25), (0.35, 0.25)] + [
    (0.5 * math.cos(turn), -0.1 - 0.4 * math.sin(turn))
    for turn in np.linspace(0.3, math.pi - 0.3, 9)
]
"""Eyes and mouth of a face of radius one."""


def _faces(on: Drawing, held: Mapping[str, Any], stop: int, says: Mapping[str, str]) -> None:
    epsilon = held["stops"][stop]["epsilon"]
    frame = min(held["frames"], key=lambda one: abs(math.log(one["epsilon"] / epsilon)))
    step = (_TALL - 90) / 10
    for place in range(100):
        x, y = _EDGE + (place % 10 + 0.5) * step, 34 + (place // 10 + 0.5) * step
        filled = min(1.0, max(0.0, frame["count"] - place))
        ink, size = _INK if filled else _FAINT, 0.38 * step
        if place < held["before"]:
            on.mark(x, y, 1.2 * size, _MARK, "ring")
        on.mark(x, y, size, ink, "ring")
        if filled:  # a part of a person is a smaller disc
            on.mark(x, y, size * math.sqrt(filled), _OWN)
        for along, up in _FACE:
            on.mark(x + along * size, y - up * size, 0.1 * size, ink)
    ringed, text = "ringed: {count} of 100 before the release", "{count} of 100"
    told = says.get(ringed, ringed).format(count=held["beforeText"])
    on.text(_EDGE + 10 * step, _TALL - 22, told, "end")
    on.text(_EDGE, _TALL - 18, says.get(text, text).format(count=frame["text"]), size=24)


def _people(on: Drawing, held: Mapping[str, Any], stop: int, says: Mapping[str, str]) -> None:
    gap = 20.0
    wide = (_SIDE - 2 * _EDGE + gap) / len(held["crowds"]) - gap
    # one size of a person for all crowds: areas are to be compared
    most = max(crowd["people"] for crowd in held["crowds"])
    step = math.sqrt(wide * (_TALL - 100) / most)
    across = int(wide / step)
    for place, crowd in enumerate(held["crowds"]):
        left = _EDGE + place * (wide + gap)
        for i in range(int(crowd["people"])):
            at = (left + (i % across + 0.5) * step, 30 + (i // across + 0.5) * step)
            own = i < held["own"]
            on.mark(*at, 0.3 * step, _OWN if place else _INK, "disc" if own else "ring")
        known = numeral(crowd["epsilon"]) if place <= stop else "?"
        text = says.get("{count} pupils, ε {epsilon}", "{count} pupils, ε {epsilon}")
        on.text(left, _TALL - 20, text.format(count=held["texts"][place], epsilon=known))


_ASKEW = (0.7, -0.35)
"""How a cloud is turned at first, as its picture on the stage is: round the upright, and tilted."""


def _cloud(on: Drawing, held: Mapping[str, Any], stop: int, says: Mapping[str, str]) -> None:
    (c, s), (d, t) = ((math.cos(turn), math.sin(turn)) for turn in _ASKEW)
    rows = np.array(held["rows"])
    view = np.array([[c, s, 0.0], [t * s, -t * c, d]])
    if held["stops"][stop]["widest"]:
        view = np.array(held["components"])[:2]
    reach = 1.1 * float(np.linalg.norm(rows, axis=1).max())
    box = _Box(_EDGE, _SIDE - 2 * _EDGE, reach)
    for name, end in zip(held["features"], 0.55 * reach * view.T, strict=True):
        on.stroke([box.at((0, 0)), box.at(end)], _FAINT, 1)
        on.text(*box.at(1.08 * end), says.get(name, name), "middle")
    for number, place in enumerate(rows @ view.T, 1):
        on.mark(*box.at(place), 6, _OWN if number == len(rows) else "#818d99")


def _leak(on: Drawing, held: Mapping[str, Any], stop: int, says: Mapping[str, str]) -> None:
    at = held["stops"][stop]
    reach = 1.08 * (held["declared"] if at["declared"] else held["within"])
    # one unit for both axes: a length is seen as the length that it is
    unit = min((_SIDE - 2 * _EDGE) / reach, (_TALL - 100) / (0.62 * reach))
    corner = (_EDGE + 20, _TALL - 50)

    def place(row: Sequence[float]) -> tuple[float, float]:
        return corner[0] + unit * row[0], corner[1] - unit * row[1]

    ends = [(corner[0], 40.0), corner, (_SIDE - _EDGE, corner[1])]
    on.stroke(ends, _INK, 1)
    on.text(corner[0], _TALL - 30, says.get(held["features"][0], held["features"][0]))
    on.text(_EDGE, 32, says.get(held["features"][1], held["features"][1]))
    for number, row in enumerate(held["rows"], 1):
        on.mark(*place(row), 6, _OWN if number == len(held["rows"]) else "#818d99")
    if at["shown"] == "mean":
        x, y = place(held["mean"])
        on.stroke([(x - 9, y), (x + 9, y)], _MARK, 4)
        on.stroke([(x, y - 9), (x, y + 9)], _MARK, 4)
        text = says.get("computed: {row}", "computed: {row}")
        x, y = place(held["recovered"])
        on.text(x, y + 26, text.format(row=held["recoveredText"]), "middle")
    elif at["shown"] == "bound":
        bounds = (
            [("declared {bound}", "declared")] if at["declared"]
            else [("with her {bound}", "within"), ("without {bound}", "without")]
        )  # fmt: skip
        for text, name in bounds:
            turns = np.linspace(0, math.asin(min(1, 0.6 * reach / held[name])), 60)
            arc = [place((held[name] * math.cos(t), held[name] * math.sin(t))) for t in turns]
            on.stroke(arc, _MARK, 2.5, () if name != "without" else (7, 5))
            said = says.get(text, text).format(bound=held[f"{name}Text"])
            on.text(arc[-1][0] - 6, arc[-1][1] + 14, said, "end")


def _picture(
    on: Drawing, held: Mapping[str, Any], stop: int, epsilon: float | None, says: Any
) -> None:
    kind = held["kind"]
    at = held["stops"][stop] if "stops" in held else {}
    if kind == "board":
        _board(on, held["boards"][at["board"]], epsilon or at["epsilon"], says)
    elif kind == "person":
        _person(on, held["persons"][at["person"]], at["at"], says)
    else:
        {"faces": _faces, "people": _people, "cloud": _cloud, "leak": _leak}[kind](
            on, held, stop, says
        )


def _slide(
    lesson: Lesson, step: int, held: Mapping[str, Any], stop: int, epsilon: float | None = None
) -> Drawing:
    """Return one slide: the picture at a stop, or on the way at an epsilon, and what is said."""
    at, asked, says = lesson.steps[step], lesson.question_at(step), words(lesson.language)
    say = lesson.filled(at.say)
    on = Drawing(_SLIDE, say, _TALL)
    _picture(on, held, stop, epsilon, says)
    line = 40.0

    def write(text: str, size: float) -> None:
        nonlocal line
        for part in textwrap.wrap(text, _WRAP[size]):
            on.text(_SIDE + 16, line, part, size=size)
            line += 1.3 * size
        line += 14

    on.text(_SIDE + 16, line - 20, f"{lesson.number} {lesson.title}")
    line += 14
    write(say if asked is None else asked.ask, 24.0)
    if asked is not None:
        write(say, 14.0)
    now = lesson.state(step, stop).settings.epsilon if epsilon is None else epsilon
    if at.scene not in INVENTED:
        on.text(_SIDE - 30, 20, f"ε {numeral(now)}", "end")
    if (stop or len(lesson.moves(step)) == 0) and epsilon is None:
        if asked is not None:
            write(asked.then[0 if asked.axis is not None else int(asked.right)], 14.0)
        write(lesson.filled(at.why), 14.0)
    elif asked is not None:
        for option in asked.options:
            write(f"- {option}", 14.0)
    return on


def _held(lesson: Lesson, step: int) -> dict[str, Any]:
    found = scene(lesson, step)
    return {**found, "texts": list(map(lesson.written, found.get("texts", ())))}


def _film(
    lesson: Lesson, step: int, held: Mapping[str, Any], stops: Sequence[Drawing]
) -> Iterator[tuple[Drawing, int]]:
    """Yield pictures of a step's moves with the milliseconds that each is shown."""
    states = [lesson.state(step, made).settings.epsilon for made in range(len(stops))]
    for stop, epsilon in enumerate(states):
        yield stops[stop], 2_000
        later = states[stop + 1] if stop + 1 < len(states) else epsilon
        if held["kind"] == "board" and later != epsilon:
            # even on a logarithm, as the slider moves
            for between in np.geomspace(epsilon, later, _PASSED + 2)[1:-1]:
                yield _slide(lesson, step, held, stop, float(between)), 150


def _stops(lesson: Lesson, step: int, held: Mapping[str, Any]) -> list[Drawing]:
    return [_slide(lesson, step, held, stop) for stop in range(len(lesson.moves(step)) + 1)]


def step_files(lesson: Lesson, step: int) -> dict[str, bytes]:
    """Return a step, from 0, as files by their names: every stop as SVG and PNG, its move as GIF.

    Parameters
    ----------
    lesson : Lesson
        In the language that is wanted.
    step : int
    """
    held, files = _held(lesson, step), {}
    stops = _stops(lesson, step, held)
    for stop, drawn in enumerate(stops, 1):
        name = f"{lesson.number}.{step + 1}.{stop}"
        files[f"{name}.svg"], files[f"{name}.png"] = drawn.svg().encode(), drawn.png(2.0)
    moving = list(_film(lesson, step, held, stops))
    files[f"{lesson.number}.{step + 1}.gif"] = gif(
        [drawn for drawn, _ in moving], [time for _, time in moving]
    )
    return files


def lesson_slides(lesson: Lesson) -> bytes:
    """Return a lesson as a PDF, a page for each stop of each step."""
    steps = range(len(lesson.steps))
    return slides([one for step in steps for one in _stops(lesson, step, _held(lesson, step))])


def export(lesson: Lesson, folder: Path) -> list[Path]:
    """Write a lesson: every stop as PNG and SVG, every step as a GIF, all of it as PDF slides.

    Parameters
    ----------
    lesson : Lesson
        In the language that is wanted.
    folder : path
        Made where it is not there.

    Returns
    -------
    list of path
        What was written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{lesson.number}.pdf": lesson_slides(lesson)}
    for step in range(len(lesson.steps)):
        files |= step_files(lesson, step)
    for name, content in files.items():
        with atomic_write(folder / name) as path:
            path.write_bytes(content)
    return [folder / name for name in files]
