"""What the board draws, as JSON: the truth once, and one frame for each epsilon.

`dpviz.report.tables.payload` says what a payload holds. It is assembled once, by `payload`, from
frames (`dpviz.report.tables.frame`) of the epsilons that are scrubbed over
(`dpviz.report.tables.scrub`). What of it anybody may see is listed by `publishable`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics import (
    chance_distance,
    chance_share,
    farthest_distance,
)
from dpviz.core.number_text import decades, decimals, numeral, parseable, percent, round_ticks
from dpviz.core.seeding import generator
from dpviz.core.settings import Settings
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.load import PlannedTable
from dpviz.preparation.prepared import Measured
from dpviz.report.tables.frame import (
    PictureRows,
    frame,
    short,
)
from dpviz.report.tables.payload import (
    BoardCell,
    BoardColumn,
    BoardLimits,
    Frame,
    Heights,
    Payload,
    Told,
    Truth,
)
from dpviz.report.tables.projection import (
    LABEL_COLOURS,
    RAMP,
    labels_of,
    packed,
)
from dpviz.report.tables.scrub import FARTHEST, GOAL
from dpviz.simulation.compare import Comparison

VERSION = 5
FIRST_COMPONENTS = 15
"""Components of a spectrum that are shown at first."""

_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)

# How far above and below the truth an eigenvalue axis reaches, in largest eigenvalues: what is
# beyond is marked as beyond, and the truth keeps its place whatever epsilon is.
_ABOVE, _BELOW = 6.0, 2.0
_MOST_MARKS = 20  # the renderer leaves out texts that would touch
_LOUD = 1e3  # the same where the axes are made for what is drawn

LINES = (
    "Noise alone reaches the edge; a lone true variance is all but lost below the threshold and "
    "found ever better above it."
)
"""What the two lines of a spectrum mean; see `dpviz.sampling.limits.FreeNoise.lone_overlap`."""


def payload(
    prepared: Measured,
    settings: Settings,
    shown: Sequence[BoardColumn],
    epsilons: Sequence[float],
    frames: Sequence[Frame],
    *,
    expected: Mapping[str, list[Told | None]] | None = None,
    least: str | None = None,
    steps: int | None = None,
    caution: str | None = None,
) -> Payload:
    """Return all that the board needs of one table and setting.

    Parameters
    ----------
    prepared : Measured
        Where its rows are not at hand, there are no pictures.
    settings : Settings
        With the current epsilon.
    shown : sequence of BoardColumn
        In order: those of `columns`, with colours.
    epsilons : sequence of float
        Every epsilon planned.
    frames : sequence of Frame
        Those at hand; others may be added to ``frames`` later.
    expected : mapping, optional
        `predicted` at ``epsilons``.
    least : str, optional
        `least_epsilons` in words.
    steps : int, optional
        How many epsilons there would be if draws were cheap.
    caution : str, optional
        What the answer must not be read without, in a few words.
    """
    k, d = settings.k, prepared.d
    picture = PictureRows(prepared, k)
    return {
        "version": VERSION,
        "table": {
            "name": prepared.name,
            "n": prepared.n,
            "d": d,
            "k": k,
            "delta": prepared.budget(settings).delta,
            "relation": settings.relation,
            "draws": settings.trials,
        },
        "now": settings.epsilon,
        "truth": _truth(prepared, picture, k),
        "labels": labels_of(prepared, picture.index),
        "limits": _limits(prepared, picture, k),
        "palette": {
            "labels": list(LABEL_COLOURS),
            "ramp": list(RAMP),
        },
        "levels": [
            {"share": share, "text": percent(share) if share < 1 else "", "dotted": share == GOAL}
            for share in (0.0, 0.5, GOAL, 1.0)
        ],
        "chance": {
            "share": percent(chance_share(prepared.reference, k)),
            "distance": chance_distance(d, k),
            "text": decimals(chance_distance(d, k), 2),
        },
        "ribbon": prepared.table.ribbon if isinstance(prepared, Prepared) else None,
        "publishable": not isinstance(prepared, Prepared) or prepared.table.publishable,
        "columns": list(shown),
        "epsilons": list(epsilons),
        "texts": [numeral(epsilon, 3) for epsilon in epsilons],
        "ticks": [
            (tick, numeral(tick), math.log10(tick).is_integer())
            for tick in _TICKS
            if epsilons[0] <= tick <= epsilons[-1]
        ],
        "beyond": (_beyond(epsilons[0] / 2), _beyond(2 * epsilons[-1])),
        "steps": steps,
        "caution": caution,
        "predicted": dict(expected or {}),
        "least": least,
        "frames": list(frames),
    }


def anybodys(prepared: Measured) -> bool:
    """Return whether there are no rows, or rows that anybody may see."""
    return isinstance(prepared, PlannedTable) or (
        isinstance(prepared, Prepared) and prepared.table.public
    )


def publishable(payload: Payload) -> Payload:
    """Return a payload with what is paid for of its table, and nothing else.

    It may be published where ``publishable`` says so.

    What is kept is listed here, part by part: the setting, what follows from it without the rows,
    and published pictures. Names of labels stay where they are public.

    Parameters
    ----------
    payload : Payload
    """
    labels, limits, chance = payload["labels"], payload["limits"], payload["chance"]
    kinds = labels["kinds"] if labels["public"] else None
    name = labels["name"] if labels["public"] else None
    axis = _heights(1, 0.0, 1.0, None)
    # Whose column is first follows from the recovered shares: by name it says nothing.
    columns = sorted(payload["columns"], key=lambda column: column["label"])
    return {
        "version": VERSION,
        "table": payload["table"],
        "now": payload["now"],
        "truth": {"eigenvalues": [], "picture": "", "heights": None, "text": ""},
        "labels": {
            "name": name,
            "kinds": kinds,
            "marks": labels["marks"] if labels["public"] else None,
            "codes": None,
            "ends": None,
            "public": labels["public"],
        },
        "limits": {
            "picture": (1.0, 1.0),
            "scale": 1.0,
            "spectrum": {"first": axis, "all": axis},
            "distance": limits["distance"],
            "lines": limits["lines"],
        },
        "palette": payload["palette"],
        "levels": payload["levels"],
        "chance": {"share": "", "distance": chance["distance"], "text": chance["text"]},
        "ribbon": payload["ribbon"],
        "publishable": payload["publishable"],
        "columns": columns,
        "epsilons": payload["epsilons"],
        "texts": payload["texts"],
        "ticks": payload["ticks"],
        "beyond": payload["beyond"],
        "steps": payload["steps"],
        "caution": payload["caution"],
        "predicted": {},
        "least": None,
        "frames": [publishable_frame(frame) for frame in payload["frames"]],
    }


def publishable_frame(frame: Frame) -> Frame:
    """Return a frame with what may be published of it; see `publishable`."""
    cells = {key: _publishable_cell(cell) for key, cell in frame["cells"].items()}
    return {
        "epsilon": frame["epsilon"],
        "draws": frame["draws"],
        "cells": {key: cells[key] for key in sorted(cells)},
        "skipped": frame["skipped"],
        "answer": {"recovery": "", "risk": None},  # it names the best, which only the truth tells
    }


def _publishable_cell(cell: BoardCell) -> BoardCell:
    # built anew from a list and not from the cell: what is added to cells later stays in the house
    status, texts = cell["status"], cell["texts"]
    return {
        "status": status,
        "recovery": None,
        "before": None,
        "distances": [],
        "distance": (0.0, 0.0, 0.0),
        "spectrum": {"released": False, "count": 0, "text": "", "lines": ""},
        "edges": None,
        "threshold": None,
        "picture": "",
        "published": cell["published"] if status["counts"] else None,
        "texts": {
            "recovery": "",
            "words": "",
            "said": "",
            "range": [],
            "before": "",
            "aim": "",
            "risk": texts["risk"],
            "distance": "",
            "claim": texts["claim"],
            "found": [],
        },
    }


def _truth(prepared: Measured, picture: PictureRows, k: int) -> Truth:
    """Return what exact PCA finds, and its picture."""
    eigenvalues = prepared.reference.eigenvalues
    rows = len(picture.index)
    heights = generator(0, "strip", rows).uniform(-1, 1, rows) if k == 1 else None
    return {
        "eigenvalues": [short(value) for value in eigenvalues],
        "picture": picture.packed(picture.true),
        "heights": None if heights is None else packed(heights, "<f4"),
        "text": numeral(float(eigenvalues.max()), 3),
    }


def _limits(prepared: Measured, picture: PictureRows, k: int) -> BoardLimits:
    """Return the axes that every column and every epsilon share: those of the truth."""
    d, eigenvalues = prepared.d, prepared.reference.eigenvalues
    largest, linear = float(eigenvalues.max()), linear_up_to(eigenvalues)
    # of the true picture, with some room: axes that hold still let a release be seen to move
    limit = 1.12 * np.abs(picture.places(picture.true, "aligned")).max(axis=0, initial=0.0)
    first = min(FIRST_COMPONENTS, d)
    # Noise leaves the first eigenvalues of many positive; of few, the last may turn negative.
    first_low = 0.0 if d > 2 * FIRST_COMPONENTS else -largest / 2
    first_linear = max(linear, float(eigenvalues[:first][-1]))
    return {
        "picture": (short(float(limit[0])), short(float(limit[-1] if k > 1 else 1.6))),
        "scale": picture.scale,
        "spectrum": {
            "first": _heights(first, first_low, _ABOVE * largest, first_linear),
            "all": _heights(d, -_BELOW * largest, _ABOVE * largest, linear),
        },
        "distance": farthest_distance(d, k),
        "lines": LINES,
    }


def linear_up_to(eigenvalues: FloatArray) -> float:
    """Return up to where an axis of variances is linear: the typical true one, which is sought."""
    positive = eigenvalues[eigenvalues > 0]
    return max(float(np.median(positive)), float(positive.max()) * 1e-4)


def spectra(
    comparison: Comparison,
    shown: Sequence[BoardColumn],
    expected: Mapping[str, Sequence[float]],
    *,
    linear: bool = False,
) -> Payload:
    """Return a board of whole eigenspectra at one setting, on axes that hold what is drawn.

    Parameters
    ----------
    comparison : Comparison
        Of any table, also of a plan.
    shown : sequence of BoardColumn
    expected : mapping of str to sequence of float
        The noisy eigenvalues that are predicted, by mechanism.
    linear : bool
        Whether the axis is linear all over.
    """
    prepared, settings = comparison.prepared, comparison.settings
    problem, budget = comparison.problem, comparison.budget
    found = frame(
        prepared, problem, budget.epsilon, comparison.results, comparison.skipped, most=problem.d
    )
    for key, values in expected.items():
        if key in found["cells"]:
            # four bytes are finer than any line
            found["cells"][key]["predicted"] = packed(np.asarray(values, dtype=float), "<f4")
    made = payload(prepared, settings, shown, [budget.epsilon], [found])
    low, high = _reach(comparison)
    turns = None if linear else linear_up_to(prepared.reference.eigenvalues)
    made["limits"]["spectrum"]["all"] = _heights(problem.d, low, high, turns)
    return made


def _reach(comparison: Comparison) -> tuple[float, float]:
    """Return the variances that all spectra of a comparison share.

    One mechanism whose noise is a million times the signal would press all others flat: beyond
    `_LOUD` times the largest true eigenvalue lines leave the axis, unless all of them would.
    """
    largest = float(comparison.prepared.reference.eigenvalues.max())
    reaches = []
    for result in comparison.results:
        values = result.captured_each if result.eigenvalues is None else result.eigenvalues
        lower, upper = result.edges or (0.0, 0.0)
        # the edges of the noise are drawn as well, and have to be inside
        reaches.append((min(float(values.min()), lower), max(float(values.max()), upper)))
    sizes = [max(high, -low) for low, high in reaches]
    limit = max(_LOUD * largest, min(sizes, default=0.0))
    inside = [reach for reach, size in zip(reaches, sizes, strict=True) if size <= limit]
    low = min([0.0, *(low for low, _ in inside)])
    high = max([largest, *(high for _, high in inside)])
    return low, high


def _heights(count: int, low: float, high: float, linear: float | None) -> Heights:
    """Return an axis of variances: what it spans, where it is linear, and its marks."""
    if linear is None:
        return _axis(count, low, high, None, [short(mark) for mark in round_ticks(0.0, high)])
    powers = decades(math.log10(linear), math.log10(high), _MOST_MARKS)
    return _axis(count, low, high, linear, [0.0, *powers])


def _axis(
    count: int, low: float, high: float, linear: float | None, marks: Sequence[float]
) -> Heights:
    return {
        "count": count,
        "low": float(low),
        "high": float(high),
        "linear": linear,
        "marks": [(mark, numeral(mark)) for mark in marks],
    }


def _beyond(epsilon: float) -> tuple[float, str] | None:
    """Return a round epsilon to go on to and its text, or None outside `FARTHEST`."""
    value = float(parseable(epsilon))
    return (value, numeral(value)) if FARTHEST[0] <= value <= FARTHEST[1] else None
