"""The labels of a picture: their colours and shapes, and which of them each row has."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpviz.core.arrays import FloatArray
from dpviz.core.number_text import numeral
from dpviz.preparation.bounding import Prepared
from dpviz.preparation.prepared import Measured
from dpviz.report.tables.payload import (
    LabelCodes,
)

LABEL_COLOURS = (
    "#E76300", "#21796E", "#9A16F2", "#B08463", "#63638F",
    "#BB2C58", "#589A8F", "#BB63FF", "#8484B0", "#D10021",
)  # fmt: skip
LABEL_SHAPES = ("circle", "square", "triangle", "diamond", "cross", "down")
"""Taken in turn: no two of ten labels share a shape and are alike in colour."""

RAMP = ((68, 1, 84), (49, 104, 142), (53, 183, 121), (253, 231, 37))
"""Viridis at thirds, from the least number to the largest."""


def packed(values: FloatArray | NDArray[Any], kind: str) -> str:
    """Return numbers as base64 of their bytes, in a type of NumPy's such as ``<f4``."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


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
        return {"name": None, "kinds": None, "codes": None, "ends": None, "public": False}
    name, kinds = prepared.table.label_name, prepared.table.kinds
    if kinds is None:
        values = np.asarray(labels)[index].astype(float)
        low, high = float(values.min()), float(values.max())
        share = (values - low) / ((high - low) or 1.0)
        codes = packed(np.round(255 * share), "u1")
        return {
            "name": name,
            "kinds": None,
            "codes": codes,
            "ends": (numeral(low, 3), numeral(high, 3)),
            "public": False,
        }
    return {
        "name": name,
        "kinds": list(kinds[0]),
        "codes": packed(np.minimum(kinds[1][index], 255), "u1"),
        "ends": None,
        "public": prepared.labels is not None,
    }
