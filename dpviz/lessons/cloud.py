"""The invented class as a cloud in space, and the view from which it is widest: its PCA picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.datasets.builtin.school import TYPICAL, the_class

_REACH = 2.5
"""Hours of the row bound that the class is prepared with; a longer row is shortened to it."""

_IN_THE_DISK = ("sport", "phone")


@dataclass(frozen=True, eq=False)
class Cloud:
    """The class round its own mean, and its exact components.

    Attributes
    ----------
    features : tuple of str
    rows : ndarray of shape (people, 3)
        Hours a day less their mean; the last is hers.
    components : ndarray of shape (3, 3)
        In columns, the one along which the rows spread most first.
    kept : float
        The share of the variance that a picture of the first two shows.
    """

    features: tuple[str, ...]
    rows: FloatArray
    components: FloatArray
    kept: float


def cloud() -> Cloud:
    """Return the class as a cloud."""
    features, rows = the_class()
    centred = rows - rows.mean(axis=0)
    _, lengths, turned = np.linalg.svd(centred, full_matrices=False)
    spread = np.square(lengths)
    return Cloud(features, centred, turned.T, float(spread[:2].sum() / spread.sum()))


def in_the_disk() -> FloatArray:
    """Return two features of the class as a release sees them, shape (people, 2), hers last.

    Centred on what is typical, shortened to the row bound, in units of it: each row is in the unit
    disk, and nothing about this preparation comes from the rows.
    """
    features, rows = the_class()
    chosen = [features.index(name) for name in _IN_THE_DISK]
    centred = (rows[:, chosen] - TYPICAL[chosen]) / _REACH
    shortened: FloatArray = centred / np.maximum(1.0, np.linalg.norm(centred, axis=1))[:, None]
    return shortened
