"""What means and bounds taken from the data give away, of invented tables with one row out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpviz.auditing.exhibits import WITH, WITHOUT
from dpviz.core.arrays import FloatArray
from dpviz.core.settings import Settings
from dpviz.datasets import Table
from dpviz.datasets.builtin.school import the_class
from dpviz.preparation.bounding import prepare

MEAN_COLUMNS = ("feature", "sum_of_known", "published_mean", "recovered", "true")
BOUND_COLUMNS = ("table", "largest_known", "published_bound")


# What exploring gives away -----------------------------------------------------------

# The invented class of thirty; the attacker knows all rows but the last.
_FEATURES, _PEOPLE = the_class()


def _published(rows: FloatArray, center: str) -> tuple[FloatArray, float]:
    """Return the mean and the row bound that preparing a table makes public."""
    settings = replace(Settings(), center=center, row_bound="max", scale="none", domain="ball")
    prepared = prepare(Table("invented class", rows.copy(), _FEATURES), settings)
    return prepared.transform.center, prepared.row_bound


def mean_leak_table() -> pd.DataFrame:
    """Return how the mean of a table gives the last row away to who knows the others.

    Returns
    -------
    DataFrame
        `MEAN_COLUMNS`: n times the published mean less the sum of the known rows is the last row.
    """
    mean, _ = _published(_PEOPLE, "mean")
    known = _PEOPLE[:-1].sum(axis=0)
    recovered = len(_PEOPLE) * mean - known
    return pd.DataFrame(
        {
            "feature": _FEATURES,
            "sum_of_known": known,
            "published_mean": mean,
            "recovered": recovered,
            "true": _PEOPLE[-1],
        }
    )[list(MEAN_COLUMNS)]


def bound_leak_table() -> pd.DataFrame:
    """Return how a row bound taken from the data tells whether the last person is in it.

    Returns
    -------
    DataFrame
        `BOUND_COLUMNS`: with the person the bound is the length of their row; with the row zeroed
        it is the longest known one. An observer who knows that one is never wrong.
    """
    known = float(np.linalg.norm(_PEOPLE[:-1], axis=1).max())
    zeroed = _PEOPLE.copy()
    zeroed[-1] = 0.0
    rows = [
        (table, known, _published(people, "none")[1])
        for table, people in ((WITH, _PEOPLE), (WITHOUT, zeroed))
    ]
    return pd.DataFrame(rows, columns=list(BOUND_COLUMNS))


DECLARED = {"homework": 6.0, "sport": 6.0, "phone": 16.0}
"""The largest value of each feature that somebody could declare beforehand."""


@dataclass(frozen=True, eq=False)
class Leak:
    """The table, what is printed of it, and what that tells.

    Attributes
    ----------
    features : tuple of str
    rows : ndarray of shape (people, features)
        Invented; the last is the one that the attacker does not know.
    axes : list of int
        The two features that a picture shows.
    mean, recovered : ndarray of shape (features,)
        The mean as printed, and the last row as computed from it and the others.
    bound_with, bound_without : float
        The longest row with the last one and with it zeroed.
    declared_bound : float
        The length of the longest row that the declared limits allow.
    """

    features: tuple[str, ...]
    rows: FloatArray
    axes: list[int]
    mean: FloatArray
    recovered: FloatArray
    bound_with: float
    bound_without: float
    declared_bound: float


def leak() -> Leak:
    """Return the example, computed."""
    means, bounds = mean_leak_table(), bound_leak_table()["published_bound"]
    return Leak(
        features=_FEATURES,
        rows=_PEOPLE.copy(),
        axes=[2, 0],
        mean=means["published_mean"].to_numpy(),
        recovered=means["recovered"].to_numpy(),
        bound_with=float(bounds.iloc[0]),
        bound_without=float(bounds.iloc[1]),
        declared_bound=float(np.linalg.norm([DECLARED[name] for name in _FEATURES])),
    )
