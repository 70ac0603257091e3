"""Two-dimensional pictures of rows in a released subspace."""

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
    """Return the orthogonal Q that makes ``frame @ Q`` closest to the target.

    Parameters
    ----------
    frame, target : ndarray of shape (d, k)

    Notes
    -----
    Q = U W' from the singular value decomposition of frame'target (Schoenemann
    1966). It turns and reflects inside the space and leaves the space as it is.
    """
    U, _, Wt = np.linalg.svd(frame.T @ target)
    Q: FloatArray = U @ Wt
    return Q


def coordinates(rows: FloatArray, frame: FloatArray, target: FloatArray, axes: str) -> FloatArray:
    """Return rows in a released space, shape (m, min(k, 2)).

    Parameters
    ----------
    rows : ndarray of shape (m, d)
    frame, target : ndarray of shape (d, k)
        Released and true components.
    axes : {"aligned", "raw"}
        Aligned to the true axes by orthogonal Procrustes, or as released with
        only the signs matched.
    """
    if axes == "aligned":
        shown = (frame @ procrustes(frame, target))[:, :2]
    else:
        # a component has no sign of its own: mirrored axes are no difference
        signs = np.sign(np.einsum("ij,ij->j", frame, target))
        # orthogonal to the true one, a component keeps the sign that it was released with
        signs[signs == 0] = 1
        shown = (frame * signs)[:, :2]
    drawn: FloatArray = rows @ shown
    return drawn


def published_table(
    pictures: Mapping[str, Picture], kinds: Sequence[str], count: int
) -> pd.DataFrame:
    """Return points of published pictures, one row a point: `PICTURE_COLUMNS`.

    Parameters
    ----------
    pictures : mapping
        By mechanism.
    kinds : sequence of str
        Names of labels; points whose label cannot be told have none.
    count : int
        Points of each.
    """
    parts = []
    for mechanism, picture in pictures.items():
        shown = points(picture, steady(count))
        # the last name is for -1: a point whose label noise hides
        names = np.array([*kinds, ""], dtype=object) if picture.plan.kinds > 1 else np.array([""])
        heights = generator(0, "strip", count).uniform(-1, 1, count)
        up = shown.places[:, 1] if picture.plan.axes == 2 else heights
        colours = shown.colours if picture.plan.kinds > 1 else np.zeros(count, dtype=int)
        parts.append(
            pd.DataFrame(
                {"mechanism": mechanism, "x": shown.places[:, 0], "y": up, "label": names[colours]}
            )
        )
    if not parts:
        return pd.DataFrame(columns=list(PICTURE_COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(PICTURE_COLUMNS)]


def picture_table(
    prepared: Prepared, results: list[Result], draw: int, axes: str, points: int
) -> pd.DataFrame:
    """Return the 2-D picture of each result, the exact one first.

    Parameters
    ----------
    prepared : Prepared
    results : list of Result
    draw : int
        Which draw of each mechanism to show, from 0.
    axes : {"aligned", "raw"}
    points : int
        How many rows to show; a fixed random sample of the table.

    Returns
    -------
    DataFrame
        Columns `PICTURE_COLUMNS`. For k = 1, y is a fixed random height that
        only keeps points apart.
    """
    rows, index = prepared.picture(points)
    labels = prepared.table.labels
    shown_labels = np.full(len(index), "all") if labels is None else np.asarray(labels)[index]
    k = results[0].components.shape[-1] if results else 1
    true = prepared.reference.eigenvectors[:, :k]
    # by a stream of its own, so that heights do not move when mechanisms change
    heights = generator(0, "strip", len(index)).uniform(-1, 1, len(index))
    parts = []
    # the exact one has no name, as no mechanism has an empty text
    frames = [("", true), *((r.mechanism.text, r.components[draw]) for r in results)]
    for name, frame in frames:
        drawn = coordinates(rows, frame, true, axes)
        parts.append(
            pd.DataFrame(
                {
                    "mechanism": name,
                    "x": drawn[:, 0],
                    "y": drawn[:, 1] if drawn.shape[1] > 1 else heights,
                    "label": shown_labels,
                },
                columns=list(PICTURE_COLUMNS),
            )
        )
    return pd.concat(parts, ignore_index=True)


# Labels -------------------------------------------------------------------------------------------


def places_shown(
    shown: Mapping[str, Any],
) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    """Return x, y and kind of each point of a published picture.

    Parameters
    ----------
    shown : mapping
        What a card holds of its picture; a kind below 0 is a point whose label noise hides.
    """
    points = np.array(shown["points"], dtype=float)
    if not len(points):
        return np.empty(0), np.empty(0), np.empty(0, dtype=np.intp)
    # on one axis heights only keep points apart
    steps = np.arange(len(points), dtype=float) * 0.618034
    apart: FloatArray = 1.8 * np.mod(steps, 1.0) - 0.9
    y = points[:, 1] if points.shape[1] > 2 else apart
    return points[:, 0], y, points[:, -1].astype(np.intp)


LABEL_COLOURS = (
    "#B64E10", "#3C6EC8", "#3F936E", "#9E6DF8", "#DB646C",
    "#75744B", "#8E5C92", "#B58545", "#657579", "#998A91",
)  # fmt: skip
MOST_MARKED = 12
"""Kinds of labels that are told apart in a picture; of more all are grey but the one picked."""

RAMP = ((68, 1, 84), (49, 104, 142), (53, 183, 121), (253, 231, 37))
"""Viridis at thirds, from the least number to the largest."""


def packed(values: FloatArray | NDArray[Any], kind: str) -> str:
    """Return numbers as base64 of their bytes, in a type of NumPy's such as ``<f4``."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def marks_of(kinds: Sequence[str]) -> list[str] | None:
    """Return the mark that stands in a picture for each kind: its own character or a letter of it.

    Parameters
    ----------
    kinds : sequence of str

    Returns
    -------
    list of str or None
        No two alike; None for more than `MOST_MARKED` kinds.
    """
    if len(kinds) > MOST_MARKED:
        return None
    columns = enumerate(zip(*kinds, strict=False))
    shared = next((place for place, letters in columns if len(set(letters)) > 1), 0)
    marks: list[str] = []
    for place, kind in enumerate(kinds):
        # what all names begin with tells nothing: "class 1" is 1
        rest = kind[shared:].strip() or kind.strip()
        letters = [letter for letter in rest if letter.isalnum()]
        tried = (*rest[:1].upper(), *"".join(letters).upper(), rest[:2], str(place))
        fits = (mark for mark in tried if mark not in marks)
        marks.append(next(fits, str(place)))
    return marks


def labels_of(prepared: Measured, index: NDArray[np.intp]) -> LabelCodes:
    """Return the labels of some rows: kinds, or numbers as shares of their range.

    Parameters
    ----------
    prepared : Measured
    index : ndarray of int
        Which rows.
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
        # one byte a row is more shades than an eye tells apart
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
        # one byte a row; kinds beyond it would share a colour in any case
        "codes": packed(np.minimum(kinds[1][index], 255), "u1"),
        "ends": None,
        "public": prepared.labels is not None,
    }
