"""Two-dimensional projections of rows on a released subspace."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import numeral
from dpviz.core.seeding import generator
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.report.tables.payload import (
    LabelCodes,
)
from dpviz.simulation.compare import Result
from dpviz.simulation.picture.counting import Picture
from dpviz.simulation.picture.shown import points, steady

PICTURE_COLUMNS = ("mechanism", "x", "y", "label")


def procrustes(frame: FloatArray, target: FloatArray) -> FloatArray:
    """Return the orthogonal Q for which ``frame @ Q`` is closest to the target.

    Parameters
    ----------
    frame, target : ndarray of shape (d, k)

    Notes
    -----
    Q = U W' from the singular value decomposition of frame'target (Schoenemann 1966). Q turns and
    reflects only inside the space, so the space stays the same.
    """
    U, _, Wt = np.linalg.svd(frame.T @ target)
    Q: FloatArray = U @ Wt
    return Q


def coordinates(rows: FloatArray, frame: FloatArray, target: FloatArray, axes: str) -> FloatArray:
    """Return coordinates of rows in a released space, shape (m, min(k, 2)).

    Parameters
    ----------
    rows : ndarray of shape (m, d)
    frame, target : ndarray of shape (d, k)
        Released and true components.
    axes : {"aligned", "raw"}
        Aligned to the true axes by orthogonal Procrustes, or as released with matched signs.
    """
    if axes == "aligned":
        plane = (frame @ procrustes(frame, target))[:, :2]
    else:
        # The sign of a component is arbitrary, so choose it to agree with the true component.
        signs = np.sign(np.einsum("ij,ij->j", frame, target))
        # A component orthogonal to the true one keeps its sign, because no sign agrees better.
        signs[signs == 0] = 1
        plane = (frame * signs)[:, :2]
    places: FloatArray = rows @ plane
    return places


def published_table(
    pictures: Mapping[str, Picture], kinds: Sequence[str], count: int
) -> pd.DataFrame:
    """Return a table of the points of published maps, one row per point, with `PICTURE_COLUMNS`.

    Parameters
    ----------
    pictures : mapping
        Maps by mechanism.
    kinds : sequence of str
        Names of labels; points whose label is hidden by noise have no name.
    count : int
        Number of points in each map.
    """
    parts = []
    for mechanism, picture in pictures.items():
        sample = points(picture, steady(count))
        # The last name is for the code -1, which marks a point whose label is hidden by noise.
        names = np.array([*kinds, ""], dtype=object) if picture.plan.kinds > 1 else np.array([""])
        heights = generator(0, "strip", count).uniform(-1, 1, count)
        up = sample.places[:, 1] if picture.plan.axes == 2 else heights
        colours = sample.colours if picture.plan.kinds > 1 else np.zeros(count, dtype=int)
        parts.append(
            pd.DataFrame(
                {"mechanism": mechanism, "x": sample.places[:, 0], "y": up, "label": names[colours]}
            )
        )
    if not parts:
        return pd.DataFrame(columns=list(PICTURE_COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(PICTURE_COLUMNS)]


def picture_table(
    prepared: Prepared, results: list[Result], draw: int, axes: str, points: int
) -> pd.DataFrame:
    """Return the 2-D projection of each result, with the exact projection first.

    Parameters
    ----------
    prepared : Prepared
    results : list of Result
    draw : int
        Number of the simulated release of each mechanism to show, from 0.
    axes : {"aligned", "raw"}
    points : int
        Number of rows to show, a fixed random sample of the table.

    Returns
    -------
    DataFrame
        Table with `PICTURE_COLUMNS`. For k = 1, y is a fixed random height that only keeps points
        apart.
    """
    rows, index = prepared.picture(points)
    labels = prepared.table.labels
    shown_labels = np.full(len(index), "all") if labels is None else np.asarray(labels)[index]
    k = results[0].components.shape[-1] if results else 1
    true = prepared.reference.eigenvectors[:, :k]
    # Use a separate random stream, so that the points' heights do not depend on mechanisms.
    heights = generator(0, "strip", len(index)).uniform(-1, 1, len(index))
    parts = []
    # The exact projection has the empty name, because no mechanism has this name.
    frames = [("", true), *((r.mechanism.text, r.components[draw]) for r in results)]
    for name, frame in frames:
        places = coordinates(rows, frame, true, axes)
        parts.append(
            pd.DataFrame(
                {
                    "mechanism": name,
                    "x": places[:, 0],
                    "y": places[:, 1] if places.shape[1] > 1 else heights,
                    "label": shown_labels,
                },
                columns=list(PICTURE_COLUMNS),
            )
        )
    return pd.concat(parts, ignore_index=True)


# Labels -------------------------------------------------------------------------------------------


def places_shown(
    picture: Mapping[str, Any],
) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    """Return x, y and kind of each point of a published map.

    Parameters
    ----------
    picture : mapping
        The ``picture`` entry of a statement; a kind below 0 is a point whose label noise hides.
    """
    points = np.array(picture["points"], dtype=float)
    if not len(points):
        return np.empty(0), np.empty(0), np.empty(0, dtype=np.intp)
    # With one axis, the heights of points mean nothing. They only separate the points.
    steps = np.arange(len(points), dtype=float) * 0.618034
    apart: FloatArray = 1.8 * np.mod(steps, 1.0) - 0.9
    y = points[:, 1] if points.shape[1] > 2 else apart
    return points[:, 0], y, points[:, -1].astype(np.intp)


LABEL_COLOURS = (
    "#B64E10", "#3C6EC8", "#3F936E", "#9E6DF8", "#DB646C",
    "#75744B", "#8E5C92", "#B58545", "#657579", "#998A91",
)  # fmt: skip
MOST_MARKED = 12
"""Maximum number of kinds with a mark each; with more, all but the selected kind are grey."""

RAMP = ((68, 1, 84), (49, 104, 142), (53, 183, 121), (253, 231, 37))
"""Colours of Viridis at thirds, from the least number to the largest."""


def packed(values: FloatArray | NDArray[Any], kind: str) -> str:
    """Return numbers as base64 of their bytes, in a NumPy type such as ``<f4``."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def marks_of(kinds: Sequence[str]) -> list[str] | None:
    """Return each kind's mark in a chart: its own character or one of its letters.

    Parameters
    ----------
    kinds : sequence of str

    Returns
    -------
    list of str or None
        Distinct marks; None for more than `MOST_MARKED` kinds.
    """
    if len(kinds) > MOST_MARKED:
        return None
    columns = enumerate(zip(*kinds, strict=False))
    start = next((place for place, letters in columns if len(set(letters)) > 1), 0)
    marks: list[str] = []
    for place, kind in enumerate(kinds):
        # Drop a prefix that all label names share, so that "class 1" becomes "1".
        rest = kind[start:].strip() or kind.strip()
        letters = [letter for letter in rest if letter.isalnum()]
        candidates = (*rest[:1].upper(), *"".join(letters).upper(), rest[:2], str(place))
        fits = (mark for mark in candidates if mark not in marks)
        marks.append(next(fits, str(place)))
    return marks


def labels_of(prepared: Measured, index: NDArray[np.intp]) -> LabelCodes:
    """Return the labels of the given rows: kinds, or numbers as shares of their range.

    Parameters
    ----------
    prepared : Measured
    index : ndarray of int
        Indices of the rows.
    """
    labels = prepared.table.labels if isinstance(prepared, Prepared) else None
    if labels is None or not isinstance(prepared, Prepared):
        return {
            "name": None, "kinds": None, "marks": None, "codes": None, "ends": None,
            "public": False,
        }  # fmt: skip
    name, kinds = prepared.table.label_name, prepared.table.kinds
    if kinds is None:
        values = np.asarray(labels)[index].astype(float)
        low, high = float(values.min()), float(values.max())
        # One byte per row gives more shades of colour than an eye can distinguish.
        share = (values - low) / ((high - low) or 1.0)
        codes = packed(np.round(255 * share), "u1")
        return {
            "name": name,
            "kinds": None,
            "marks": None,
            "codes": codes,
            "ends": (numeral(low, 3), numeral(high, 3)),
            "public": False,
        }
    return {
        "name": name,
        "kinds": list(kinds[0]),
        "marks": marks_of(kinds[0]),
        # One byte per label is enough, because more labels would share colours in any case.
        "codes": packed(np.minimum(kinds[1][index], 255), "u1"),
        "ends": None,
        "public": prepared.labels is not None,
    }
