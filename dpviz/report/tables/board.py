"""Data of the Explore figure as JSON: exact PCA once, and one frame for each epsilon.

`dpviz.report.tables.payload` defines the form of a payload. `payload` assembles a payload from
frames (`dpviz.report.tables.frame`) at the epsilons of the slider (`dpviz.report.tables.scrub`).
`publishable` lists the parts that anybody may see.
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
"""Number of components in a spectrum that the figure shows at first."""

_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)

# These are the ends of the eigenvalue axis above and below 0, in largest true eigenvalues. Values
# farther out are only marked, so that the axis is the same at every epsilon.
_ABOVE, _BELOW = 6.0, 2.0
_MOST_MARKS = 20  # The renderer leaves out tick texts that would overlap.
_LOUD = 1e3  # Fitted axes leave out lines beyond this many largest eigenvalues.

LINES = (
    "Noise alone can give a variance up to the edge. A single true variance below the threshold is "
    "almost lost; further above the threshold, it is easier to find."
)
"""Meaning of the two lines of a spectrum; see `dpviz.sampling.limits.FreeNoise.lone_overlap`."""


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
    """Return all data that the comparison figure needs for one table and setting.

    Parameters
    ----------
    prepared : Measured
        The prepared table; without its rows there are no projections.
    settings : Settings
        Settings with the current epsilon.
    shown : sequence of BoardColumn
        Result of `columns` in its order, with colours.
    epsilons : sequence of float
        Every planned epsilon.
    frames : sequence of Frame
        Available frames; more frames may be added to ``frames`` later.
    expected : mapping, optional
        Result of `predicted` at ``epsilons``.
    least : str, optional
        Result of `least_epsilons` in words.
    steps : int, optional
        Number of epsilons that the slider would have if simulation were cheap.
    caution : str, optional
        Warning that must accompany the answer, in a few words.
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
    """Return whether the table has no rows, or rows that anybody may see."""
    return isinstance(prepared, PlannedTable) or (
        isinstance(prepared, Prepared) and prepared.table.public
    )


def publishable(payload: Payload) -> Payload:
    """Reduce a payload to what the privacy budget of its table covers.

    The result may be published if its entry ``publishable`` is true.

    The code lists every part that stays: the setting, facts that follow from the setting without
    the rows, and published maps. Names of labels stay if they are public.

    Parameters
    ----------
    payload : Payload
    """
    labels, limits, chance = payload["labels"], payload["limits"], payload["chance"]
    kinds = labels["kinds"] if labels["public"] else None
    name = labels["name"] if labels["public"] else None
    axis = _heights(1, 0.0, 1.0, None)
    # Sort features by name, because the order of columns would reveal the recovered shares.
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
    """Reduce a frame to the parts that may be published; see `publishable`."""
    cells = {key: _publishable_cell(cell) for key, cell in frame["cells"].items()}
    return {
        "epsilon": frame["epsilon"],
        "draws": frame["draws"],
        "cells": {key: cells[key] for key in sorted(cells)},
        "skipped": frame["skipped"],
        "answer": {"recovery": "", "risk": None},
    }


def _publishable_cell(cell: BoardCell) -> BoardCell:
    # List each publishable entry instead of copying all, so that later additions stay internal.
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
    """Return the results of exact PCA, with its projection."""
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
    """Return the axes of exact PCA, which all columns and all epsilons share."""
    d, eigenvalues = prepared.d, prepared.reference.eigenvalues
    largest, linear = float(eigenvalues.max()), linear_up_to(eigenvalues)
    # Fit the axes to the true projection with a margin. Fixed axes show how releases move.
    limit = 1.12 * np.abs(picture.places(picture.true, "aligned")).max(axis=0, initial=0.0)
    first = min(FIRST_COMPONENTS, d)
    # With many eigenvalues, noise leaves the first positive. With few, the last may be negative.
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
    """Return the variance up to which an axis is linear, which is the typical true variance."""
    positive = eigenvalues[eigenvalues > 0]
    return max(float(np.median(positive)), float(positive.max()) * 1e-4)


def spectra(
    comparison: Comparison,
    shown: Sequence[BoardColumn],
    expected: Mapping[str, Sequence[float]],
    *,
    linear: bool = False,
) -> Payload:
    """Return a payload of whole eigenspectra at one setting, on axes that fit the lines.

    Parameters
    ----------
    comparison : Comparison
        Comparison of a table or a plan.
    shown : sequence of BoardColumn
    expected : mapping of str to sequence of float
        Predicted noisy eigenvalues by mechanism.
    linear : bool
        Whether the whole axis is linear.
    """
    prepared, settings = comparison.prepared, comparison.settings
    problem, budget = comparison.problem, comparison.budget
    snapshot = frame(
        prepared, problem, budget.epsilon, comparison.results, comparison.skipped, most=problem.d
    )
    for key, values in expected.items():
        if key in snapshot["cells"]:
            # Four bytes per number are more precise than any drawn line.
            snapshot["cells"][key]["predicted"] = packed(np.asarray(values, dtype=float), "<f4")
    content = payload(prepared, settings, shown, [budget.epsilon], [snapshot])
    low, high = _reach(comparison)
    turns = None if linear else linear_up_to(prepared.reference.eigenvalues)
    content["limits"]["spectrum"]["all"] = _heights(problem.d, low, high, turns)
    return content


def _reach(comparison: Comparison) -> tuple[float, float]:
    """Return the range of variances for all spectra of a comparison.

    A mechanism with a million times more noise than signal would flatten all other spectra. So
    lines beyond `_LOUD` times the largest true eigenvalue leave the axis, unless all lines would.
    """
    largest = float(comparison.prepared.reference.eigenvalues.max())
    reaches = []
    for result in comparison.results:
        values = result.captured_each if result.eigenvalues is None else result.eigenvalues
        lower, upper = result.edges or (0.0, 0.0)
        # The chart also draws the ends of the noise spectrum, so they must lie inside the axis.
        reaches.append((min(float(values.min()), lower), max(float(values.max()), upper)))
    sizes = [max(high, -low) for low, high in reaches]
    limit = max(_LOUD * largest, min(sizes, default=0.0))
    inside = [reach for reach, size in zip(reaches, sizes, strict=True) if size <= limit]
    low = min([0.0, *(low for low, _ in inside)])
    high = max([largest, *(high for _, high in inside)])
    return low, high


def _heights(count: int, low: float, high: float, linear: float | None) -> Heights:
    """Return an axis of variances: its ends, its linear part, and its marks."""
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
    """Return a round epsilon that extends the axis, with its text, or None outside `FARTHEST`."""
    value = float(parseable(epsilon))
    return (value, numeral(value)) if FARTHEST[0] <= value <= FARTHEST[1] else None
